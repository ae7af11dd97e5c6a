//! [`Table::settle`]: settles the holds of an item that nobody orders.

use super::handle::Table;
use super::holder::Holder;
use super::key::Key;
use super::record::Record;
use crate::driver::attempt::Next;
use crate::error::Failure;
use fencepost_core::format::Unwritable;
use fencepost_core::hold;
use std::time::Duration;

/// How long the holds of an item that nobody needs are watched before they are burned.
const SETTLES_AFTER: Duration = Duration::from_secs(10);

impl<T: Record> Table<T> {
    /// Settles all [holds](crate::Holds) of the item, so that it has none: removes those whose orders are placed, and gives back
    /// what was taken for orders that never will be. Reads the item if it has none.
    ///
    /// A hold of a process that died is settled by the next order that needs what it holds. Call this for items that nobody
    /// orders. It watches an order that is not placed for 10 seconds before it excludes it; so the [`Call`](crate::Call) or the
    /// store needs more [time](crate::Store::with_time_limit) than that.
    ///
    /// # Errors
    /// [`FailureKind::Held`](crate::FailureKind::Held): no time was left, or the table does not say by [`Table::held_for`] where
    /// orders are. For others, see [`Failure`].
    pub async fn settle(&self, key: impl Into<Key>) -> Result<(), Failure> {
        const { assert!(T::HOLDS.is_some(), "the Record of the items has no HOLDS") }
        let call = &self.call();
        let mut attempt = self.change("settle", key, call)?;
        attempt.holds = Some(Holder::with_patience(self.store(), call, SETTLES_AFTER));
        let done = attempt.decided(self.sender(), call, |attempt| match self.row(attempt)? {
            Some(row) if hold::holds_of(Self::LAYOUT, &row.attributes).is_some_and(|holds| !holds.is_empty()) => {
                Err(Failure::from(Unwritable::Held))
            }
            _ => Ok(Next::<(), ()>::Answer(())),
        });
        done.await.map(drop)
    }
}
