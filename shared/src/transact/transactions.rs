//! [`Transactions`]: sends the steps of a decision as one transaction, and decides again after a conflict.

use super::attempt::{Attempt, Plan};
use super::cancellation::{Cancelled, is_lease_lost, judge_after_loss, judge_cancellation};
use super::open::OpenAttempt;
use super::reads::{Known, Reads};
use super::step::{Role, Step, writes};
use crate::call::Call;
use crate::error::{Failure, TransactError};
use crate::protocol::after::{
    AfterCancellation, MOST_OPEN, after_cancellation, after_settling, burn_of_step, while_open,
};
use crate::protocol::batch::read_rows;
use crate::protocol::deliver::{Delivery, Refusal, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, SentWrite, Verdict, judge, may_still_land};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row};
use crate::protocol::send::{Reason, Send, Sender};
use crate::store::Store;
use crate::table::prepare::{item_soon_purged, sent_write};
use std::collections::BTreeSet;
use std::sync::Arc;
use tracing::debug;

/// Changes several items of one or more tables, all or none. [`Store::transactions`] makes it.
#[derive(Clone, Debug)]
pub struct Transactions {
    store: Store,
}

impl Store {
    /// Transactions over the tables of this store. Sends nothing.
    #[must_use]
    pub fn transactions(&self) -> Transactions {
        Transactions { store: self.clone() }
    }
}

impl Transactions {
    /// The store that these transactions belong to.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads the items, decides, and applies all steps of the decision in one transaction, or none. After a conflict,
    /// decides again on the items that the refusal returned. Sends one `BatchGetItem`, then one `TransactWriteItems`
    /// per attempt.
    ///
    /// `decide` must be pure. Each item is read strongly consistent, but the items are not read at one moment. A
    /// transaction is applied only if every item that it creates, updates, deletes or [checks](Attempt::check) is still
    /// as it was observed. An [add](Attempt::add) demands its bounds and no version. So add a check for each item that
    /// the decision depends on and does not write; [`Attempt::check_rest`] adds all of them. `Keep` and `Refuse` send
    /// nothing and check nothing. If another copy of the same request may be at work, read again before you believe a
    /// refusal.
    ///
    /// An attempt that was refused may still be applied by a second copy, as when only an add refused it. The next attempt
    /// excludes it. That costs a write of its own if the decision no longer writes to any item that the refused attempt
    /// wrote to.
    ///
    /// ```
    /// use fencepost::error::TransactError;
    /// use fencepost::{Call, Key, Plan, Reads, Record, Table, Transactions};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Record)]
    /// #[record(key = "accountId")]
    /// struct Account {
    ///     balance: u64,
    /// }
    ///
    /// /// Moves money, or says what is wrong.
    /// async fn transfer(
    ///     transactions: &Transactions,
    ///     accounts: &Table<Account>,
    ///     (from, to, amount): (&str, &str, u64),
    ///     call: &Call,
    /// ) -> Result<(), TransactError<&'static str>> {
    ///     let mut reads = Reads::new();
    ///     let payer = reads.item("payer", accounts, &Key::from(from));
    ///     let payee = reads.item("payee", accounts, &Key::from(to));
    ///     let moved = transactions.transact_with_retry(reads, call, |attempt| {
    ///         let (Some(old_payer), Some(old_payee)) = (attempt.get(payer)?, attempt.get(payee)?) else {
    ///             return Ok(Plan::Refuse("there is no such account"));
    ///         };
    ///         let Some(left) = old_payer.value.balance.checked_sub(amount) else {
    ///             return Ok(Plan::Refuse("there is not enough"));
    ///         };
    ///         attempt.update_at(payer, &Account { balance: left })?;
    ///         attempt.update_at(payee, &Account { balance: old_payee.value.balance + amount })?;
    ///         Ok(Plan::Commit(()))
    ///     });
    ///     moved.await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`TransactError::Refused`]: the decision refused; nothing was written. [`TransactError::Failed`]: see
    /// [`Failure`].
    pub async fn transact_with_retry<A, R>(
        &self,
        reads: Reads,
        call: &Call,
        decide: impl Fn(&mut Attempt) -> Result<Plan<A, R>, Failure>,
    ) -> Result<A, TransactError<R>> {
        transact(self.store.sender(), reads, call, decide).await
    }
}

/// Implements [`Transactions::transact_with_retry`].
pub(crate) async fn transact<A, R>(
    sender: &Sender,
    reads: Reads,
    call: &Call,
    decide: impl Fn(&mut Attempt) -> Result<Plan<A, R>, Failure>,
) -> Result<A, TransactError<R>> {
    let rows = reads.into_rows(sender)?;
    let relies_on_token = rows.iter().any(|row| row.layout.demands_values());
    let mut change = TransactionChange { sender, call, delivery: Delivery::of(sender, call, relies_on_token) };
    let id = WriteId::from_random(sender.rng.next_u64());
    let mut attempt = Attempt::new(rows, Arc::clone(&sender.seen_rows), id);
    let asked = attempt.to_be_read();
    change.read(&mut attempt, asked).await?;
    // The answers of the open attempts.
    let mut earlier: Vec<(WriteId, A)> = Vec::new();
    loop {
        if let Some(landed) = attempt.open.landed {
            let answer = earlier.into_iter().find_map(|(id, answer)| (id == landed).then_some(answer));
            return answer
                .ok_or_else(|| Failure::OutcomeUnknown { source: "an earlier attempt was applied".into() }.into());
        }
        if attempt.open.has_forgotten() {
            let source = "an earlier attempt may have been applied, and its rows no longer remember it".into();
            return Err(Failure::OutcomeUnknown { source }.into());
        }
        attempt.begin(sender.clock.now());
        let plan = decide(&mut attempt);
        let writes = matches!(plan, Ok(Plan::Commit(_))) && attempt.has_steps();
        let remembered = attempt.to_be_read_again();
        if !writes && !remembered.is_empty() {
            // Only a write may rest on what is remembered.
            change.read(&mut attempt, remembered).await.map_err(|failure| attempt.open.failed(failure))?;
            continue;
        }
        let answer = match plan? {
            Plan::Commit(answer) => answer,
            Plan::Keep(answer) => return Ok(answer),
            Plan::Refuse(reason) => return Err(TransactError::Refused(reason)),
        };
        let id = attempt.id();
        let committed = change.commit(&mut attempt).await;
        if committed.map_err(|failure| attempt.open.failed(failure))? {
            return Ok(answer);
        }
        if attempt.open.contains(id) {
            earlier.push((id, answer));
        }
    }
}

/// One logical change. It has one send window for all its sends, and a new token for every decision.
///
/// An attempt that was refused and may still be applied is *open*. The next attempt has a write id of its own, and excludes
/// the open ones: it writes to a row that each of them writes to, and burns their ids there. What it cannot exclude in this
/// way is burned before it is sent.
struct TransactionChange<'a> {
    sender: &'a Sender,
    call: &'a Call,
    delivery: Delivery<'a>,
}

impl TransactionChange<'_> {
    /// Sends the steps until the outcome is proved. Returns `true` if they were applied. Returns `false` if they were
    /// not; the attempt then knows the rows that refused them, and whether they or earlier ones may still be applied.
    async fn commit(&mut self, attempt: &mut Attempt) -> Result<bool, Failure> {
        let steps = attempt.take_steps()?;
        if steps.is_empty() {
            return Ok(true);
        }
        if let Some(open) = attempt.open.take_one_beside(&steps) {
            self.burn_open(attempt, open).await?;
            return Ok(false);
        }
        let token = self.sender.new_token();
        let (sender, requests) = (self.sender, &steps);
        // Where versions may repeat, only this token keeps a copy from being applied again.
        let keeps_token = steps.iter().any(|step| step.layout.demands_values());
        let send = |send: Send| {
            let mismatches = if keeps_token { 0 } else { send.mismatches };
            let (token, items) = (format!("{token}{mismatches:02}"), requests.iter().map(Step::request).collect());
            sender.transact(items, token, send)
        };
        match self.delivery.until_proved(send).await? {
            WriteOutcome::Applied(()) => Ok(true),
            WriteOutcome::Refused(refusal) => self.refused(attempt, &steps, refusal).await,
        }
    }

    /// Judges a cancellation. Returns whether the steps were applied, and teaches the attempt the rows that refused
    /// them.
    async fn refused(
        &mut self,
        attempt: &mut Attempt,
        steps: &[Step],
        refusal: Refusal<Vec<Reason>>,
    ) -> Result<bool, Failure> {
        let Refusal { by: reasons, round_trip, pending } = refusal;
        // An earlier attempt excludes this one, so what is pending of it is not applied either.
        for (step, reason) in steps.iter().zip(&reasons) {
            let Reason::Refused(Some(item)) = reason else { continue };
            if attempt.open.len() > 0
                && let Ok(row) = Row::read(step.layout, item.clone())
            {
                attempt.open.judge(step.row, Some(&row), step.layout, self.sender.clock.now());
            }
        }
        if attempt.open.landed.is_some() {
            return Ok(false);
        }
        // The judge comes before everything else.
        let judged = steps.iter().zip(&reasons).map(|(step, reason)| Cancelled {
            role: &step.role,
            reason,
            layout: step.layout,
        });
        let mut burned = None;
        let verdict = judge_cancellation(judged, self.sender.clock.now()).traced();
        let is_lost = is_lease_lost(steps.iter().map(|step| &step.role).zip(&reasons));
        let mut is_open = verdict != Verdict::NeverApplied && !is_lost && self.may_still_land(steps, &reasons);
        let after = match after_cancellation(verdict, pending.is_some(), is_lost) {
            // If the rows cannot be asked, nothing is proved.
            AfterCancellation::AskRows => {
                let verdict = self.judge_after_loss(attempt, steps).await.unwrap_or(Verdict::Unproved);
                after_settling(verdict, pending.is_some())
            }
            AfterCancellation::Burn => {
                is_open = false;
                let burn = self.burn(attempt, &writes(steps)).await.ok().flatten();
                burned = burn.map(|(_, row)| row);
                if attempt.open.landed.is_some() {
                    return Ok(false);
                }
                after_settling(burn.map_or(Verdict::Unproved, |(verdict, _)| verdict), pending.is_some())
            }
            after => after,
        };
        match (after, pending) {
            (AfterCancellation::Landed, _) => return Ok(true),
            (AfterCancellation::NotApplied, _) => {}
            (_, Some(source)) => return Err(Failure::OutcomeUnknown { source }),
            (_, None) => return Err(Failure::CorruptItem { reason: "its version went down".to_owned() }),
        }
        let is_shown = |row: usize| {
            let mut shown = steps.iter().zip(&reasons).filter(|(_, reason)| matches!(reason, Reason::Refused(_)));
            burned == Some(row) || shown.any(|(step, _)| step.row == row)
        };
        let unseen = attempt.open.unseen(is_shown);
        let mut behind = None;
        let mut taken = false;
        let mut unread = BTreeSet::new();
        for (step, reason) in steps.iter().zip(reasons) {
            match reason {
                // The burn has shown the row as it is now.
                _ if burned == Some(step.row) => {}
                Reason::Refused(item) => {
                    debug!(step = attempt.name(step.row), "refused");
                    if matches!(step.role, Role::Requires(_)) {
                        attempt.learn(step.row, Known::Lost);
                        continue;
                    }
                    let known = Known::of(step.layout, item)?;
                    match step.role.base() {
                        Some(Base::NoRow(_)) => taken |= matches!(step.role, Role::Writes(_)),
                        Some(Base::Row { version, window, .. }) => {
                            let moved = known.version().map_or(0, |now| now.saturating_sub(version.get()));
                            // An add that is refused within its window has not lost a race.
                            if window == 1 || moved >= window {
                                behind = behind.max(Some(moved));
                            }
                        }
                        None => {}
                    }
                    attempt.learn(step.row, known);
                }
                Reason::NotNow | Reason::Rejected if matches!(step.role, Role::Requires(_)) => {}
                Reason::NotNow | Reason::Rejected => {
                    unread.insert(step.row);
                }
                Reason::None => {}
            }
        }
        if let Some(behind) = behind {
            self.delivery.conflict(behind, round_trip);
        }
        if is_open {
            if attempt.open.len() == MOST_OPEN {
                return Err(self.delivery.contention());
            }
            attempt.leave_open(steps, WriteId::from_random(self.sender.rng.next_u64()));
        }
        // A taken key usually decides by itself. Otherwise, reads again the items that another transaction is changing.
        if taken {
            unread.clear();
        }
        unread.extend(unseen);
        self.read(attempt, unread.into_iter().collect()).await?;
        Ok(false)
    }

    /// Whether a second copy of these refused steps may still be applied, if no send of them is pending: none of the
    /// reasons shows that the condition of its step cannot hold again.
    fn may_still_land(&self, steps: &[Step], reasons: &[Reason]) -> bool {
        let now = self.sender.clock.now();
        let may = |step: &Step, item: Option<&Attributes>| {
            let sent = match step.role {
                Role::Writes(sent) => sent,
                Role::Checks(on) => sent_write(step.layout, WriteId::from_random(0), None, on),
                Role::Adds | Role::Requires(_) => return true,
            };
            let seen = item.and_then(|item| row::seen(step.layout, item));
            may_still_land(&sent, seen.as_ref(), item_soon_purged(step.layout, &sent, item, now))
        };
        !writes(steps).is_empty()
            && steps.iter().zip(reasons).all(|(step, reason)| match reason {
                Reason::Refused(item) => may(step, item.as_ref()),
                Reason::NotNow | Reason::Rejected | Reason::None => true,
            })
    }

    /// Burns an earlier attempt that the next one would not exclude.
    async fn burn_open(&mut self, attempt: &mut Attempt, open: OpenAttempt) -> Result<(), Failure> {
        match self.burn(attempt, &open.writes).await.map_err(while_open)? {
            Some((Verdict::Landed(_), _)) => attempt.open.landed = Some(open.id),
            Some((Verdict::NeverApplied, _)) => {}
            // Nothing can burn a step that adopts a row, or that creates one where rows may vanish.
            Some(_) | None => {
                return Err(Failure::OutcomeUnknown { source: "an earlier attempt may still be applied".into() });
            }
        }
        Ok(())
    }

    /// Makes sure that no copy of an attempt is applied any more, by burning one of its writes that leaves an id. Returns
    /// the proof, and the row of that write. `None` if none of them can be burned.
    async fn burn(
        &mut self,
        attempt: &mut Attempt,
        writes: &[(usize, SentWrite)],
    ) -> Result<Option<(Verdict, usize)>, Failure> {
        let fresh_id = || WriteId::from_random(self.sender.rng.next_u64());
        let to_burn = writes.iter().find_map(|(row, sent)| {
            burn_of_step(sent)?;
            Some((*row, sent, attempt.burn(*row, sent, fresh_id())?))
        });
        let Some((row, sent, burn)) = to_burn else { return Ok(None) };
        let (layout, table) = (attempt.layout(row), attempt.address(row).table.clone());
        let sender = self.sender;
        let write = |send: Send| sender.write(&table, burn.clone(), send.timeout);
        let (verdict, now_there) = match self.delivery.until_proved(write).await? {
            WriteOutcome::Applied(new) => (Verdict::NeverApplied, burn.new_row(new)),
            WriteOutcome::Refused(refusal) => {
                let soon = item_soon_purged(layout, sent, refusal.by.as_ref(), sender.clock.now());
                let verdict = match judge(sent, refusal.by.as_ref().and_then(|item| row::seen(layout, item)).as_ref()) {
                    Verdict::NeverApplied if soon => Verdict::Unproved,
                    verdict => verdict,
                };
                (verdict.traced(), refusal.by)
            }
        };
        attempt.learn(row, Known::of(layout, now_there)?);
        // The row refuses a burned id, so what follows is a new write.
        attempt.renew_id(fresh_id());
        Ok(Some((verdict, row)))
    }

    /// Judges a transaction whose lease is lost, by the rows that it would have written. No copy of it can be applied
    /// any more, so these rows show whether an earlier copy was.
    async fn judge_after_loss(&self, attempt: &Attempt, steps: &[Step]) -> Result<Verdict, Failure> {
        let (rows, writes): (Vec<_>, Vec<_>) = writes(steps).into_iter().unzip();
        let items = self.read_batch(attempt, &rows).await?;
        let seen = items.iter().zip(&rows).map(|(item, row)| row::seen(attempt.layout(*row), item.as_ref()?));
        Ok(judge_after_loss(writes.into_iter().zip(seen)))
    }

    /// Reads these rows again, and teaches the attempt their current state.
    async fn read(&self, attempt: &mut Attempt, rows: Vec<usize>) -> Result<(), Failure> {
        for (item, &row) in self.read_batch(attempt, &rows).await?.into_iter().zip(&rows) {
            attempt.learn(row, Known::of(attempt.layout(row), item)?);
        }
        Ok(())
    }

    /// Reads these rows, and returns their items in that order.
    async fn read_batch(&self, attempt: &Attempt, rows: &[usize]) -> Result<Vec<Option<Attributes>>, Failure> {
        let addresses: Vec<_> = rows.iter().map(|&row| attempt.address(row).clone()).collect();
        read_rows(self.sender, self.call, &addresses).await
    }
}
