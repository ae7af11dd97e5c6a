//! The requests of the protocol, built as in production, for tests that send them one by one.

use crate::driver::send::step;
use crate::error::Failure;
use crate::lease::Leases;
use crate::lww::{LwwRecord, OrderKey, ordering, tombstone};
use crate::table::handle::invalid;
use crate::table::{Edit, Key, Record, Table};
use aws_sdk_dynamodb::types::TransactWriteItem;
use fencepost_core::condition::{self, Clauses, Commit, Demand, LeaseTimes};
use fencepost_core::edit::Resolve;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::row::{self, Row};
use fencepost_core::plan::Write;
use fencepost_core::{ItemVersion, SentWrite, WriteId};
use std::time::{SystemTime, UNIX_EPOCH};

/// One write to a row, by its intent.
#[derive(Clone, Copy, Debug)]
pub enum RowWrite<'a, T> {
    /// Creates the item on a key without a row.
    Create(&'a T),
    /// Changes the item that was seen, or revives the tombstone that was seen.
    Update(&'a T),
    /// Deletes the item that was seen.
    Delete,
    /// Deletes the item at a version that a client named.
    DeleteAt(ItemVersion),
    /// Adds, from the row that was seen, in the window of the table.
    Add(&'a Edit<T>),
    /// Adds at any version.
    AddAnywhere(&'a Edit<T>),
    /// Burns an add that started from the row that was seen.
    Burn,
    /// Burns a create, by a tombstone.
    BurnCreate,
    /// Checks that the row is as it was seen.
    Check,
}

/// The part that all writes of one writer share.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The table.
    pub table: &'a str,
    /// The key.
    pub key: &'a Key,
    /// The row that the writer saw.
    pub seen: Option<&'a Attributes>,
    /// The write id.
    pub id: WriteId,
    /// The earlier attempts of the same change that the write burns.
    pub burn: &'a [WriteId],
    /// When a tombstone may be removed.
    pub purge_at: SystemTime,
    /// The fencing token.
    pub fence: Option<u64>,
}

impl Writer<'_> {
    /// The request for a write, as production builds it. `None` if production would send nothing.
    ///
    /// # Errors
    /// [`Failure`] if the request cannot be built.
    ///
    /// # Panics
    /// Never: these requests are whole.
    pub fn request<T: Record>(&self, write: &RowWrite<'_, T>) -> Result<Option<TransactWriteItem>, Failure> {
        let layout = Table::<T>::LAYOUT;
        let key = key_of::<T>(self.key)?;
        let row = self.seen.cloned().map(|seen| Row::read(layout, seen)).transpose()?;
        let commit = Commit { id: self.id, prune: &[], burn: self.burn, fence: self.fence };
        let (now, retention) = (UNIX_EPOCH, self.purge_at.duration_since(UNIX_EPOCH).expect("a time after 1970"));
        let fenced = |write| condition::fenced(write, &layout.names, self.fence);
        let resolve = |add: &Edit<T>| -> Result<Clauses, Failure> { Ok(add.raw.resolve(layout, self.seen)?) };
        let prepare =
            |write: Write<'_>| Ok::<_, Failure>(Some(write.prepare(layout, &key, commit, now, retention)?.request));
        let request = match (write, &row) {
            (RowWrite::Create(value), _) => prepare(Write::Create(Table::<T>::encode(value, &key)?))?,
            (RowWrite::DeleteAt(at), _) => prepare(Write::Delete(*at, None))?,
            (RowWrite::AddAnywhere(add), _) => condition::edit_anywhere(key, layout, &resolve(add)?).and_then(fenced),
            (RowWrite::BurnCreate, _) => {
                Some(condition::put_if_absent(layout, row::tombstone(layout, &key, self.id, self.purge_at)))
            }
            (_, None) => None,
            (RowWrite::Update(value), Some(row)) => prepare(match Table::<T>::decode(row)? {
                Some(old) => Write::Update(row, Table::<T>::diff(&old.value, value)?),
                None => Write::Revive(row, Table::<T>::encode(value, &key)?),
            })?,
            (RowWrite::Delete, Some(row)) => prepare(Write::Delete(row.at, Some(row)))?,
            (RowWrite::Add(add), Some(row)) => prepare(Write::Edit(row.at, Some(row), &resolve(add)?))?,
            (RowWrite::Burn, Some(row)) => {
                let on = Demand::of(layout, row).in_window().base();
                let sent = SentWrite { id: self.id, on, fence: None, rules: layout.rules() };
                condition::burn(key, layout, &sent, self.burn, Some(row))
            }
            (RowWrite::Check, Some(row)) => condition::check_at(key, &Demand::of(layout, row)),
        };
        Ok(request.map(|write| step(self.table, write).expect("a whole request")))
    }
}

/// One write to the row of a lease. Times are in milliseconds since 1970, those for TTL in seconds.
#[derive(Clone, Copy, Debug)]
pub enum LeaseWrite<'a> {
    /// Acquires it, once under this id.
    Acquire {
        /// The holder.
        holder: &'a str,
        /// The id of the acquire.
        id: &'a [u8],
        /// The times of the acquire.
        times: LeaseTimes,
    },
    /// Renews it.
    Renew {
        /// The token.
        token: u64,
        /// The number of renewals that it must have.
        at: u64,
        /// The new end.
        expires_at: u64,
    },
    /// Releases it.
    Release {
        /// The token.
        token: u64,
    },
    /// Checks that it is held under this token.
    Require {
        /// The token.
        token: u64,
    },
}

fn key_of<T: Record>(key: &Key) -> Result<Attributes, Failure> {
    key.attributes(T::PARTITION_KEY, T::SORT_KEY).map_err(invalid)
}

/// The request for a write to a lease. `now` decides when TTL may remove the row.
///
/// # Panics
/// Never: these requests are whole.
#[must_use]
pub fn lease_request(table: &str, key: &str, write: &LeaseWrite<'_>, now: SystemTime) -> TransactWriteItem {
    let purge_at = Leases::purge_at(now);
    let row = || condition::lease_key(condition::LEASE_KEY, key);
    let write = match *write {
        LeaseWrite::Acquire { holder, id, times } => condition::acquire(row(), holder, (id, true), times, purge_at),
        LeaseWrite::Renew { token, at, expires_at } => condition::renew(row(), token, at, expires_at, purge_at),
        LeaseWrite::Release { token } => condition::release(row(), token, None, purge_at),
        LeaseWrite::Require { token } => condition::check_held(row(), token),
    };
    step(table, write).expect("a whole request")
}

/// The request of a register (with `value`) or of a delete in a table where the newest instance wins.
///
/// # Errors
/// [`Failure`] if the request cannot be built.
///
/// # Panics
/// Never: these requests are whole.
pub fn newest_request<T: LwwRecord>(
    table: &str,
    key: &Key,
    value: Option<&T>,
    order_key: &OrderKey,
    purge_at: u64,
) -> Result<TransactWriteItem, Failure> {
    let write = if let Some(value) = value {
        let key = key_of::<T>(key)?;
        let mut item = Table::<T>::encode(value, &key)?;
        item.extend(key);
        condition::put_if_newer(ordering::<T>(), item)
    } else {
        condition::put_unless_newer(ordering::<T>(), tombstone::<T>(key_of::<T>(key)?, order_key, purge_at))
    };
    Ok(step(table, write).expect("a whole request"))
}
