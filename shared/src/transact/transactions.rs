//! [`Transactions`]: sends the steps of a decision as one transaction, and decides again after a conflict.

use super::attempt::{Attempt, Plan};
use super::cancellation::{Cancelled, is_lease_lost, judge_after_loss, judge_cancellation};
use super::reads::{Known, Reads};
use super::step::{Role, Step};
use crate::call::Call;
use crate::error::{Failure, TransactError};
use crate::protocol::after::{AfterCancellation, StepBurn, after_cancellation, after_settling, burn_of_step};
use crate::protocol::batch::read_rows;
use crate::protocol::deliver::{Delivery, Refusal, Send, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, Verdict, judge};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row};
use crate::protocol::send::{Reason, Sender};
use crate::store::Store;
use crate::table::prepare::soon_purged;
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
    /// transaction is applied only if every item with a write or a [`check`](Attempt::check) is still as it was
    /// observed. So add a check for each item that the decision depends on and does not write; [`Attempt::check_rest`]
    /// adds all of them. `Keep` and `Refuse` send nothing and check nothing. If another copy of the same request may be
    /// at work, read again before you believe a refusal.
    ///
    /// ```
    /// use fencepost::error::TransactError;
    /// use fencepost::{Call, Key, Plan, Reads, Record, Table, Transactions};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Account {
    ///     balance: u64,
    /// }
    ///
    /// impl Record for Account {
    ///     const PARTITION_KEY: &'static str = "accountId";
    ///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
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
    let mut change = TransactionChange { sender, call, delivery: Delivery::new(sender, call) };
    let id = WriteId::from_random(sender.rng.next_u64());
    let mut attempt = Attempt::new(rows, Arc::clone(&sender.seen_rows), id);
    let asked = attempt.to_be_read();
    change.read(&mut attempt, asked).await?;
    loop {
        attempt.begin(sender.clock.now());
        let plan = decide(&mut attempt);
        let writes = matches!(plan, Ok(Plan::Commit(_))) && attempt.has_steps();
        let remembered = attempt.to_be_read_again();
        if !writes && !remembered.is_empty() {
            // Only a write may rest on what is remembered.
            change.read(&mut attempt, remembered).await?;
            continue;
        }
        let answer = match plan? {
            Plan::Commit(answer) => answer,
            Plan::Keep(answer) => return Ok(answer),
            Plan::Refuse(reason) => return Err(TransactError::Refused(reason)),
        };
        if change.commit(&mut attempt).await? {
            return Ok(answer);
        }
    }
}

/// One logical change. It has one write id, one send window for all its sends, and a new token for every decision.
struct TransactionChange<'a> {
    sender: &'a Sender,
    call: &'a Call,
    delivery: Delivery<'a>,
}

impl TransactionChange<'_> {
    /// Sends the steps until the outcome is proved. Returns `true` if they were applied. Returns `false` if they were
    /// not and never will be; the attempt then knows the rows that refused them.
    async fn commit(&mut self, attempt: &mut Attempt) -> Result<bool, Failure> {
        let steps = attempt.take_steps()?;
        if steps.is_empty() {
            return Ok(true);
        }
        let token = self.sender.new_token();
        let (sender, requests) = (self.sender, &steps);
        // Where versions may repeat, only this token keeps a copy from being applied again.
        let keeps_token = steps.iter().any(|step| step.layout.demands_values());
        let send = |send: Send| {
            let mismatches = if keeps_token { 0 } else { send.mismatches };
            let (token, items) = (format!("{token}{mismatches:02}"), requests.iter().map(Step::request).collect());
            sender.transact(items, token, send.timeout)
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
        // The judge comes before everything else.
        let judged = steps.iter().zip(&reasons).map(|(step, reason)| Cancelled {
            role: &step.role,
            reason,
            layout: step.layout,
        });
        let mut burned = None;
        let verdict = judge_cancellation(judged, self.sender.clock.now()).traced();
        let is_lost = is_lease_lost(steps.iter().map(|step| &step.role).zip(&reasons));
        let after = match after_cancellation(verdict, pending.is_some(), is_lost) {
            // If the rows cannot be asked, nothing is proved.
            AfterCancellation::AskRows => {
                let verdict = self.judge_after_loss(attempt, steps).await.unwrap_or(Verdict::Unproved);
                after_settling(verdict, pending.is_some())
            }
            AfterCancellation::Burn => {
                let (verdict, row) = self.burn(attempt, steps).await.unwrap_or((Verdict::Unproved, None));
                burned = row;
                after_settling(verdict, pending.is_some())
            }
            after => after,
        };
        match (after, pending) {
            (AfterCancellation::Landed, _) => return Ok(true),
            (AfterCancellation::NotApplied, _) => {}
            (_, Some(source)) => return Err(Failure::OutcomeUnknown { source }),
            (_, None) => return Err(Failure::CorruptItem { reason: "its version went down".to_owned() }),
        }
        let mut behind = None;
        let mut taken = false;
        let mut unread = Vec::new();
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
                Reason::NotNow | Reason::Rejected => unread.push(step.row),
                Reason::None => {}
            }
        }
        if let Some(behind) = behind {
            self.delivery.conflict(behind, round_trip);
        }
        // A taken key usually decides by itself. Otherwise, reads again the items that another transaction is changing.
        if !taken {
            self.read(attempt, unread).await?;
        }
        Ok(false)
    }

    /// Makes sure that no copy of the transaction is applied any more, by burning one step that leaves an id. Returns
    /// what is proved, and the row of that step.
    async fn burn(&mut self, attempt: &mut Attempt, steps: &[Step]) -> Result<(Verdict, Option<usize>), Failure> {
        let fresh_id = || WriteId::from_random(self.sender.rng.next_u64());
        let to_burn = steps.iter().find_map(|step| {
            let Role::Writes(sent) = step.role else { return None };
            let burn = match burn_of_step(&sent)? {
                StepBurn::Tombstone => Some(attempt.burning_tombstone(step, fresh_id())),
                StepBurn::InRow => attempt.burn(step, sent),
            };
            Some((step, sent, burn?))
        });
        let Some((step, sent, burn)) = to_burn else { return Ok((Verdict::Unproved, None)) };
        let (layout, table) = (step.layout, attempt.address(step.row).table.clone());
        let sender = self.sender;
        let write = |send: Send| sender.write(&table, burn.clone(), send.timeout);
        let (verdict, row) = match self.delivery.until_proved(write).await? {
            WriteOutcome::Applied(new) => (Verdict::NeverApplied, burn.new_row(new)),
            WriteOutcome::Refused(refusal) => {
                let row = refusal.by.clone().and_then(|item| Row::read(layout, item).ok());
                let soon = soon_purged(layout, &sent, row.as_ref(), sender.clock.now());
                let verdict = match judge(&sent, refusal.by.as_ref().and_then(|item| row::seen(layout, item)).as_ref())
                {
                    Verdict::NeverApplied if soon => Verdict::Unproved,
                    verdict => verdict,
                };
                (verdict.traced(), refusal.by)
            }
        };
        attempt.learn(step.row, Known::of(layout, row)?);
        // The row refuses the burned id. What follows is a new write.
        attempt.renew_id(fresh_id());
        Ok((verdict, Some(step.row)))
    }

    /// Judges a transaction whose lease is lost, by the rows that it would have written. No copy of it can be applied
    /// any more, so these rows show whether an earlier copy was.
    async fn judge_after_loss(&self, attempt: &Attempt, steps: &[Step]) -> Result<Verdict, Failure> {
        let sent = |step: &Step| {
            if let Role::Writes(sent) = step.role { Some((step.row, (sent, step.layout))) } else { None }
        };
        let (rows, writes): (Vec<_>, Vec<_>) = steps.iter().filter_map(sent).unzip();
        let items = self.read_batch(attempt, &rows).await?;
        let seen = |item: &Option<Attributes>, layout| item.as_ref().and_then(|item| row::seen(layout, item));
        Ok(judge_after_loss(items.iter().zip(writes).map(|(item, (sent, layout))| (sent, seen(item, layout)))))
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
