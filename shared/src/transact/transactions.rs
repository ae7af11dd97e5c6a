//! [`Store::transact_with_retry`]: sends the steps of a decision as one transaction, and decides again after a conflict.

use super::reads::Reads;
use crate::call::Call;
use crate::driver::attempt::{Applied, Attempt, Done, Next};
use crate::error::{Error, Failure};
use crate::store::Store;

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
    /// decision that then changes other items is [`FailureKind::OutcomeUnknown`](crate::FailureKind::OutcomeUnknown).
    ///
    /// The page of [`Reads`] has an example with a refusal. If the decision never refuses, the only error is a failure. So `?`
    /// makes it a [`Failure`](crate::Failure):
    ///
    /// ```
    /// # use fencepost::{Failure, FailureKind, Reads, Record, Store, Table};
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
    /// [`Error::Refused`]: the decision refused; nothing was written. [`Error::Failed`]: see [`Failure`](crate::Failure).
    pub async fn transact_with_retry<A, R>(
        &self,
        reads: Reads,
        decide: impl Fn(&mut Attempt) -> Result<A, Error<R>>,
    ) -> Result<A, Error<R>> {
        let call = &self.call();
        self.transact(&mut self.attempt_of(reads, call)?, call, decide).await
    }

    /// What [`Store::transact`] decides and sends.
    pub(crate) fn attempt_of(&self, reads: Reads, call: &Call) -> Result<Attempt, Failure> {
        let (sender, id, keeping) = (self.sender(), reads.id(), reads.keeping);
        let mut attempt = Attempt::of_many("transact_with_retry", reads.into_rows(sender)?, sender, call);
        attempt.reads = Some(id);
        attempt.holds = keeping.map(|keeping| (keeping.keeper)(self, call));
        Ok(attempt)
    }

    /// As [`Store::transact_with_retry`]. Afterwards the attempt says what a later failure has to tell.
    pub(crate) async fn transact<A, R>(
        &self,
        attempt: &mut Attempt,
        call: &Call,
        decide: impl Fn(&mut Attempt) -> Result<A, Error<R>>,
    ) -> Result<A, Error<R>> {
        let done = attempt.decided(self.sender(), call, |attempt| {
            let decided = decide(attempt);
            let writes = decided.is_ok() && attempt.has_steps();
            // Only a write may rest on remembered rows, and it demands them.
            let remembered = if writes { attempt.demand_remembered() } else { attempt.to_be_read_again() };
            if !remembered.is_empty() {
                return Ok(Next::Read(remembered));
            }
            // If it changes nothing even with all that is held, nothing has to be settled before its answer.
            let changes = |attempt: &mut Attempt| decide(attempt).is_ok() && attempt.has_steps();
            let may_change = !writes && attempt.holds.is_some() && attempt.with_all_back(changes).unwrap_or(false);
            // It may have looked at other items.
            let remembered = if writes || may_change { Vec::new() } else { attempt.to_be_read_again() };
            if !remembered.is_empty() {
                return Ok(Next::Read(remembered));
            }
            Ok(match decided {
                Err(Error::Failed(failure)) => return Err(failure),
                Ok(answer) if writes => Next::Send(attempt.take_steps()?, answer),
                decided if may_change => Next::Answer(decided),
                decided => Next::Final(decided),
            })
        });
        match done.await? {
            Done::Answered(answer) => answer,
            Done::Applied(Applied { answer, .. }) => Ok(answer),
        }
    }
}
