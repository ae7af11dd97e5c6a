//! A number that many add to, without a version in the way: [`Table::add_within`].

use super::attempt::Plan;
use super::reads::Reads;
use super::transactions::transact;
use crate::call::Call;
use crate::error::{AddError, Failure, TransactError};
use crate::table::{Key, Record, Table};
use std::ops::RangeInclusive;

impl<T: Record> Table<T> {
    /// Adds `by` to a whole number of the item, if the result is within `within`: one request, a transaction of one
    /// step. It loses to no version, only to another transaction that is just then at the item.
    ///
    /// What it does not give, because nothing of it stays in the row: a refusal while an earlier send is unanswered is
    /// [`Failure::OutcomeUnknown`], for no version kills the delayed copy, and `DynamoDB` forgets the token of a
    /// transaction that it refused. The new number is not returned either. Where that is too little, use
    /// [`Table::update_with_retry`].
    ///
    /// # Errors
    /// [`AddError::NotFound`]: nothing is there. [`AddError::OutOfRange`] with the item: the result would be outside, or
    /// the item has no such number. [`AddError::Failed`]: see [`Failure`].
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
            // What is known of the item is what refused the addition: the fence, or the bounds.
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
