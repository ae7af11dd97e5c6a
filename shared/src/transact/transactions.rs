//! [`Store::transact_with_retry`]: sends the steps of a decision as one transaction, and decides again after a conflict.

use super::attempt::Attempt;
use super::reads::{Known, Reads};
use super::step::Step;
use crate::error::{Error, Failure, Source};
use crate::layout::Layout;
use crate::protocol::attempts::OpenAttempt;
use crate::protocol::change::Settled;
use crate::protocol::deliver::{Delivery, Refusal, read_rows};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, Verdict};
use crate::protocol::memory::WriteId;
use crate::protocol::refusal::Role;
use crate::protocol::send::{Reason, Send, depends_on_the_data, is_reason};
use crate::protocol::settle::{made, while_open};
use crate::store::Store;
use std::collections::BTreeSet;
use tracing::debug;

impl Store {
    /// Reads the items, decides, and applies all steps of the decision in one transaction, or none. After a conflict,
    /// decides again on the items in the refusal. Sends one `BatchGetItem`, then one `TransactWriteItems` per attempt.
    /// An item of more than 4 MB in memory is not kept while its write is on its way; it may be read again.
    ///
    /// `decide` adds steps to the attempt. It must be pure. `Ok(answer)` applies them all or none, then becomes the
    /// answer of the call. Without a step, nothing is sent. `Err(Error::Refused(reason))` writes nothing and becomes
    /// the error of the call.
    ///
    /// Each read is strongly consistent, but not all items are read at the same moment. A transaction is applied only
    /// if every item created, updated, deleted or [checked](Attempt::check) by it is still as observed. An
    /// [edit](Attempt::edit) demands its conditions and no version. So add a check for each item on which the decision
    /// depends without a write to it; [`Attempt::check_rest`] adds all of them. An item that is only
    /// [remembered](Reads::remembered) needs none: it is demanded as it was seen. An answer without a step and a refusal
    /// check nothing. If another copy of the same request may be at work, read again before you believe a refusal.
    ///
    /// A refused attempt may still be applied by a second copy, as when only an add refused it. The next attempt
    /// excludes it. This costs a write of its own if the new decision writes to none of the same items. A refused create
    /// cannot be excluded in this way in a table where rows may vanish, nor the first change of another program's row. A
    /// decision that then changes other items is [`Failure::OutcomeUnknown`].
    ///
    /// The page of the [crate](crate) has an example with a refusal. If the decision never refuses, the only error is a
    /// failure. So `?` makes it a [`Failure`]:
    ///
    /// ```
    /// # use fencepost::{Failure, Reads, Record, Store, Table};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Record)]
    /// # #[record(key = "accountId")]
    /// # struct Account { balance: u64 }
    /// async fn open(store: &Store, accounts: &Table<Account>, id: &str) -> Result<bool, Failure> {
    ///     let mut reads = Reads::new();
    ///     let account = reads.item("account", accounts, id);
    ///     let opened = store.transact_with_retry(reads, |attempt| {
    ///         let is_free = attempt.get(account)?.is_none();
    ///         if is_free {
    ///             attempt.put_if_absent(account, &Account { balance: 0 })?;
    ///         }
    ///         Ok(is_free)
    ///     });
    ///     Ok(opened.await?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`]: the decision refused; nothing was written. [`Error::Failed`]: see [`Failure`].
    pub async fn transact_with_retry<A, R>(
        &self,
        reads: Reads,
        decide: impl Fn(&mut Attempt) -> Result<A, Error<R>>,
    ) -> Result<A, Error<R>> {
        let (sender, call) = (self.sender(), &self.call());
        let rows = reads.into_rows(sender)?;
        let relies_on_token = rows.iter().any(|row| row.layout.demands_values());
        // All its sends have one window.
        let mut delivery = Delivery::of(sender, call, relies_on_token);
        let mut attempt = Attempt::new(rows, sender);
        // The answers of the open attempts.
        let mut earlier: Vec<(WriteId, A)> = Vec::new();
        loop {
            let asked = attempt.to_be_read();
            let read_first = read(&delivery, &mut attempt, asked).await;
            unless_landed(&attempt, read_first)?;
            if let Some((landed, _)) = attempt.attempts.landed {
                let answer = earlier.into_iter().find_map(|(id, answer)| (id == landed).then_some(answer));
                return answer
                    .ok_or_else(|| Failure::OutcomeUnknown { source: "an earlier attempt was applied".into() }.into());
            }
            attempt.attempts.check_remembered()?;
            attempt.begin(sender.clock.now());
            let decided = decide(&mut attempt);
            let writes = decided.is_ok() && attempt.has_steps();
            // Only a write may rest on remembered rows, and it demands them.
            let remembered = if writes { attempt.demand_remembered() } else { attempt.to_be_read_again() };
            if !remembered.is_empty() {
                let read = read(&delivery, &mut attempt, remembered).await;
                unless_landed(&attempt, read)?;
                continue;
            }
            let answer = decided.map_err(|error| match error {
                Error::Failed(failure) => Error::Failed(attempt.attempts.failed(failure)),
                refused @ Error::Refused(_) => refused,
            })?;
            if !writes {
                return Ok(answer);
            }
            let id = attempt.attempts.id;
            let is_applied = commit(&mut delivery, &mut attempt).await;
            if unless_landed(&attempt, is_applied)? == Some(true) {
                return Ok(answer);
            }
            if attempt.attempts.is_open(id) {
                earlier.push((id, answer));
            }
        }
    }
}

/// The outcome of a part of the change. `None` if it failed after a row had shown an earlier attempt as applied.
fn unless_landed<T>(attempt: &Attempt, outcome: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match outcome {
        Err(_) if attempt.attempts.landed.is_some() => Ok(None),
        outcome => outcome.map(Some).map_err(|failure| attempt.attempts.failed(failure)),
    }
}

/// Sends the steps until it is proved whether they were applied. If not, the attempt knows the refusing rows.
async fn commit(delivery: &mut Delivery<'_>, attempt: &mut Attempt) -> Result<bool, Failure> {
    let steps = attempt.take_steps()?;
    let writes: Vec<_> = steps.iter().filter_map(Step::writes).collect();
    let mut without_burn = Vec::new();
    while let Some(open) = attempt.attempts.take_one_beside(&writes) {
        if burn_open(delivery, attempt, &open).await? {
            attempt.attempts.stay_open(without_burn);
            return Ok(false);
        }
        // There is no burn of a step that adopts a row, nor of a create where rows may vanish. Without a change, a copy of
        // the open attempt would be the only one, as after an answer without a step.
        if steps.iter().any(Step::changes) {
            return Err(Failure::OutcomeUnknown { source: "an earlier attempt may still be applied".into() });
        }
        without_burn.push(open);
    }
    attempt.attempts.stay_open(without_burn);
    attempt.let_go_of_large_rows(&steps);
    let token = delivery.sender.new_token();
    let (sender, requests) = (delivery.sender, &steps);
    // Where versions may repeat, only this token keeps a copy from being applied again.
    let keeps_token = steps.iter().any(|step| step.layout.demands_values());
    let send = |send: Send| {
        let mismatches = if keeps_token { 0 } else { send.mismatches };
        let (token, items) =
            (format!("{token}{mismatches:02}"), requests.iter().map(|step| step.request.clone()).collect());
        sender.transact(items, token, send)
    };
    match delivery.until_proved(send).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(refusal)) => refused(delivery, attempt, &steps, refusal).await,
        Err(Failure::Rejected { source })
            if depends_on_the_data(&source, |step| steps.get(step).is_none_or(Step::is_exact)) =>
        {
            rejected(delivery, attempt, &steps, source).await
        }
        Err(failure) => Err(failure),
    }
}

/// A rejected transaction was not applied, but a copy of it may be when the data are others, so it is burned. Returns
/// whether the row of the burn shows that such a copy was applied.
async fn rejected(
    delivery: &mut Delivery<'_>,
    attempt: &mut Attempt,
    steps: &[Step],
    source: Source,
) -> Result<bool, Failure> {
    let sent = steps.iter().enumerate().filter_map(|(at, step)| Some((is_reason(&source, at), step.sent()?)));
    let mut sent: Vec<_> = sent.collect();
    // An item without room may have none for the burn either.
    sent.sort_by_key(|(is_reason, _)| *is_reason);
    let writes: Vec<_> = sent.into_iter().map(|(_, write)| write).collect();
    let (attempts, site) = attempt.parts();
    match delivery.burn(attempts, &writes, &site).await {
        Ok(Some((Verdict::Landed(_), _))) => Ok(true),
        Ok(Some((verdict, _))) if verdict.is_final() => Err(Failure::Rejected { source }),
        _ => Err(Failure::OutcomeUnknown { source }),
    }
}

/// Settles a cancellation, and gives the attempt the refusing rows. Returns whether its steps were applied.
async fn refused(
    delivery: &mut Delivery<'_>,
    attempt: &mut Attempt,
    steps: &[Step],
    refusal: Refusal<Vec<Reason>>,
) -> Result<bool, Failure> {
    let Refusal { by: reasons, pending } = refusal;
    let refused: Vec<_> = steps.iter().zip(&reasons).map(|(step, reason)| step.refused(reason)).collect();
    let (settled, shown_by_burn) = {
        let (attempts, site) = attempt.parts();
        delivery.settle(attempts, &refused, pending, &site).await?
    };
    let unseen = match settled {
        Settled::Landed(_) => return Ok(true),
        Settled::Earlier(..) => return Ok(false),
        Settled::NotApplied(unseen) => unseen,
    };
    let now = delivery.sender.clock.now();
    let mut behind = None;
    let (mut taken, mut has_refused_edit) = (false, false);
    let mut unread = BTreeSet::new();
    let row_of_burn = shown_by_burn.as_ref().map(|(row, _)| *row);
    for (step, reason) in steps.iter().zip(reasons) {
        match reason {
            // The burn has shown the row as it is now.
            _ if row_of_burn == Some(step.row) => {}
            Reason::Refused(item) => {
                debug!(step = attempt.row(step.row).name, "refused");
                if matches!(step.role, Role::Requires(_)) {
                    attempt.learn(step.row, Known::Lease { is_lost: true }, now);
                    continue;
                }
                let known = readable(step.layout, item, &unseen)?;
                let version_now = known.version();
                if attempt.learn_refusal(step, known, now) {
                    // An edit refused for its conditions has not lost a race.
                    has_refused_edit = true;
                    continue;
                }
                match step.role.base() {
                    Some(Base::NoRow(_)) => taken |= matches!(step.role, Role::Writes(_)),
                    Some(Base::Row { version, window, .. }) => {
                        let moved = version_now.map_or(0, |now| now.saturating_sub(version.get()));
                        if window == 1 || moved >= window {
                            behind = behind.max(Some(moved));
                        }
                    }
                    None => {}
                }
            }
            Reason::NotNow | Reason::Rejected if matches!(step.role, Role::Requires(_)) => {}
            Reason::NotNow | Reason::Rejected => {
                unread.insert(step.row);
            }
            Reason::None => {}
        }
    }
    if let Some((row, item)) = shown_by_burn {
        attempt.learn(row, readable(attempt.row(row).layout, item, &unseen)?, now);
    }
    // A decision that edits otherwise again and again waits as if it lost races.
    if has_refused_edit && !attempt.count_refusal() {
        behind = behind.or(Some(0));
    }
    if let Some(behind) = behind {
        delivery.conflict(behind);
    }
    // A taken key usually decides by itself. Otherwise, reads again the items in use by another transaction.
    if taken {
        unread.clear();
    }
    unread.extend(unseen);
    read(delivery, attempt, unread.into_iter().collect()).await?;
    Ok(false)
}

/// Returns whether the open attempt can be burned. It then was, or was found applied.
async fn burn_open(delivery: &mut Delivery<'_>, attempt: &mut Attempt, open: &OpenAttempt) -> Result<bool, Failure> {
    let writes = open.writes();
    let burn = {
        let (attempts, site) = attempt.parts();
        delivery.burn(attempts, &writes, &site).await.map_err(while_open)?
    };
    let Some((verdict, (row, item))) = burn else { return Ok(false) };
    if !verdict.is_final() {
        return Err(Failure::OutcomeUnknown { source: "the burn of an earlier attempt proved nothing".into() });
    }
    if let (Verdict::Landed(version), Some((_, sent))) = (verdict, writes.iter().find(|(of, _)| *of == row)) {
        attempt.attempts.landed = Some((open.id, made(sent, version)));
    }
    attempt.learn(row, Known::of(attempt.row(row).layout, item)?, delivery.sender.clock.now());
    Ok(true)
}

async fn read(delivery: &Delivery<'_>, attempt: &mut Attempt, rows: Vec<usize>) -> Result<(), Failure> {
    let addresses: Vec<_> = rows.iter().map(|&row| attempt.row(row).address.clone()).collect();
    for (item, row) in read_rows(delivery.sender, delivery.call, &addresses).await?.into_iter().zip(rows) {
        attempt.learn(row, Known::of(attempt.row(row).layout, item)?, delivery.sender.clock.now());
    }
    Ok(())
}

/// A row in a refusal. If it is unreadable and `unseen` rows may show an earlier attempt, nothing is proved.
fn readable(layout: &Layout, item: Option<Attributes>, unseen: &BTreeSet<usize>) -> Result<Known, Failure> {
    Known::of(layout, item)
        .map_err(|failure| if unseen.is_empty() { failure } else { Failure::OutcomeUnknown { source: failure.into() } })
}
