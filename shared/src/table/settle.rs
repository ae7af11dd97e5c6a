//! [`Table::settle`] and [`Table::settle_all`]: settle the holds of items that nobody orders.

use super::handle::Table;
use super::holder::{Holder, join_all};
use super::key::Key;
use super::record::Record;
use crate::call::Call;
use crate::driver::attempt::Next;
use crate::driver::read_page;
use crate::driver::rows::Known;
use crate::driver::send::PageRequest;
use crate::error::{Failure, Place};
use fencepost_core::condition::Selected;
use fencepost_core::format::Unwritable;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::row::Row;
use fencepost_core::hold::read_holds;
use std::time::Duration;
use tracing::warn;

/// How long the holds of an item that nobody needs are watched before they are burned.
const SETTLES_AFTER: Duration = Duration::from_secs(10);
/// The most time for one item of a sweep.
const MOST_FOR_ITEM: Duration = Duration::from_mins(1);
/// The items whose holds a sweep watches at once.
const AT_ONCE: usize = 32;

/// The findings of [`Table::settle_all`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct HoldSweep {
    /// Items whose holds are settled.
    pub settled: u64,
    /// Items that keep some of their holds. The log has the reason of each. The next sweep meets them again.
    pub left: u64,
}

impl<T: Record> Table<T> {
    /// Settles the [holds](crate::Holds) that the item has now: removes those whose orders are placed, and gives back what was
    /// taken for orders that never will be. Later holds may stay. Reads the item if it has none.
    ///
    /// A hold of a process that died is settled by the next order that needs what it holds. Call this for items that nobody
    /// orders. It watches an order that is not placed for 10 seconds before it excludes it; so the [`Call`](crate::Call) or the
    /// store needs more [time](crate::Store::with_time_limit) than that.
    ///
    /// # Errors
    /// [`FailureKind::Held`](crate::FailureKind::Held): no time was left, or the table does not say by [`Table::held_for`] where
    /// orders are. For others, see [`Failure`].
    pub async fn settle(&self, key: impl Into<Key>) -> Result<(), Failure> {
        let key = self.key_attributes(&key.into()).map_err(|failure| failure.at(|| self.place("settle", None)))?;
        self.settle_row(key, None, &self.call()).await
    }

    /// Settles the holds of all items, as [`Table::settle`] does for one. Run it every hour, because nobody meets the hold of a
    /// process that died on an item that nobody orders.
    ///
    /// Scans the table, eventually consistent: half a read unit for 4 KB. Needs no index. Then it reads the orders of the holds,
    /// and writes only items with holds, up to 32 at once, each for a minute at most. Needs the permission `Scan`, too.
    ///
    /// # Errors
    /// [`FailureKind::Unavailable`](crate::FailureKind::Unavailable): the time ended before the scan did; the items before
    /// this one are done. For others, see [`Failure`].
    pub async fn settle_all(&self) -> Result<HoldSweep, Failure> {
        let (call, sender, mut found) = (self.call(), self.sender(), HoldSweep::default());
        let mut page = PageRequest {
            table: self.raw.name.clone(),
            selected: Selected::with_holds(Self::LAYOUT),
            ..PageRequest::default()
        };
        loop {
            let place = || Place::of_table("settle_all", &self.raw.name);
            let (rows, last) = read_page(sender, &call, place, &|leave| Box::pin(sender.page(&page, leave))).await?;
            let mut rows = rows.into_iter().peekable();
            while rows.peek().is_some() {
                let some = rows.by_ref().take(AT_ONCE);
                let settled = some.map(|row| self.settle_row(key_in::<T>(&row), Some(row), &call)).collect();
                for settled in join_all(settled).await {
                    match settled {
                        Ok(()) => found.settled += 1,
                        Err(failure) => {
                            warn!(%failure, "an item keeps its holds");
                            found.left += 1;
                        }
                    }
                }
            }
            match last {
                Some(last) => page.after = Some(last),
                None => return Ok(found),
            }
        }
    }

    /// Settles the holds of this row, which may be out of date: each write demands what it rests on.
    async fn settle_row(&self, key: Attributes, row: Option<Attributes>, call: &Call) -> Result<(), Failure> {
        const { assert!(T::HOLDS.is_some(), "the Record of the items has no HOLDS") }
        let call = &call.at_most(MOST_FOR_ITEM);
        let mut attempt = self.raw.change("settle", key, call);
        attempt.holds = Some(Holder::with_patience(self.store(), call, SETTLES_AFTER));
        if let Some(row) = row {
            attempt.rows[0].known = Known::Row(Row::read(Self::LAYOUT, row)?);
        }
        let mut at_first: Option<Vec<_>> = None;
        let done = attempt.decided(self.sender(), call, |attempt| {
            let row = self.row(attempt)?;
            let attempts = match row {
                Some(row) => {
                    read_holds(&Self::LAYOUT.names, &row.attributes)?.iter().map(|hold| hold.attempt).collect()
                }
                None => Vec::new(),
            };
            let at_first = at_first.get_or_insert_with(|| attempts.clone());
            if attempts.iter().any(|attempt| at_first.contains(attempt)) {
                return Err(Failure::from(Unwritable::Held));
            }
            Ok(Next::<(), ()>::Answer(()))
        });
        done.await.map(drop)
    }
}

fn key_in<T: Record>(row: &Attributes) -> Attributes {
    let names = [Some(T::PARTITION_KEY), T::SORT_KEY].into_iter().flatten();
    names.filter_map(|name| row.get_key_value(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}
