//! [`Table::add_within`]: adds to a number without a version, so that many writers do not conflict.

use super::attempt::Plan;
use super::reads::Reads;
use super::transactions::transact;
use crate::call::Call;
use crate::error::{AddError, Failure, TransactError};
use crate::table::{Key, Record, Table};
use std::ops::RangeInclusive;

impl<T: Record> Table<T> {
    /// Adds `by` to a whole number of the item, if the result is inside `within`. Sends one request, a transaction of
    /// one step. No version is in its way: only another transaction that is at the item at the same moment delays it.
    ///
    /// It promises less than the other operations, because it leaves no id in the row. If a send is refused while the
    /// answer to an earlier one is lost, the result is [`Failure::OutcomeUnknown`]. No version stops the delayed copy,
    /// and `DynamoDB` forgets the token of a transaction that it refused. The new number is not returned either. If you
    /// need more, use [`Table::update_with_retry`].
    ///
    /// # Errors
    /// [`AddError::NotFound`]: the key has no item. [`AddError::OutOfRange`]: the result would be outside the bounds,
    /// or the item has no such number; the error holds the item. [`AddError::Failed`]: see [`Failure`].
    pub async fn add_within(
        &self,
        key: &Key,
        attribute: &str,
        by: i64,
        within: RangeInclusive<i64>,
        call: &Call,
    ) -> Result<(), AddError<T>> {
        let mut reads = Reads::new();
        let item = reads.later("item", self, key);
        let added = transact(self.sender(), reads, call, |attempt| {
            // Only a refused addition makes the item known here. The fence or the bounds refused it.
            if attempt.knows(item) {
                attempt.check_fence(item)?;
                return Ok(Plan::Refuse(attempt.get(item)?));
            }
            attempt.add_within(item, attribute, by, within.clone())?;
            Ok::<_, Failure>(Plan::Commit(()))
        });
        match added.await {
            Ok(()) => Ok(()),
            Err(TransactError::Refused(None)) => Err(AddError::NotFound),
            Err(TransactError::Refused(Some(current))) => Err(AddError::OutOfRange(Box::new(current))),
            Err(TransactError::Failed(failure)) => Err(AddError::Failed(failure)),
        }
    }
}
