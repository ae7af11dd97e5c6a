//! Rows as the operations read and write them.

use crate::error::Failure;
use crate::lease::StoredLease;
use crate::lww::{LwwRecord, OrderKey, read_instance};
use crate::table::{Record, Table};
use fencepost_core::format::item::{Attributes, Diff};
use fencepost_core::format::row::{self, Row};
use fencepost_core::plan::{check_room, prunable};
use fencepost_core::{ItemVersion, SeenRow};
use fencepost_core::{Memory, WriteId};

/// A row of the table of `T`, as each operation reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadRow<T> {
    /// Its state.
    pub at: ItemVersion,
    /// Whether it has a version. Only a row of another program may have none.
    pub has_version: bool,
    /// The time after which a tombstone may be removed, in epoch seconds.
    pub purge_at: Option<u64>,
    /// The highest fencing token that it has seen.
    pub fence: Option<u64>,
    /// The recent writes.
    pub memory: Memory,
    /// The value. `None` on a tombstone.
    pub value: Option<T>,
}

/// Reads a row.
///
/// # Errors
/// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem).
pub fn read_row<T: Record>(attributes: &Attributes) -> Result<ReadRow<T>, Failure> {
    let row = Row::read(Table::<T>::LAYOUT, attributes.clone())?;
    let value = Table::<T>::decode(&row)?.map(|item| item.value);
    let Row { at, has_version, purge_at, fence, memory, .. } = row;
    Ok(ReadRow { at, has_version, purge_at, fence, memory, value })
}

/// The parts of a row that the judge sees. `None` if the version or the incarnation cannot be read.
#[must_use]
pub fn seen_row<T: Record>(attributes: &Attributes) -> Option<SeenRow> {
    row::seen(Table::<T>::LAYOUT, attributes)
}

/// The row that a create by the write `id` makes, without its key.
///
/// # Errors
/// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
pub fn first_row<T: Record>(value: &T, id: WriteId) -> Result<Attributes, Failure> {
    let mut item = Table::<T>::encode(value, &Attributes::new())?;
    item.extend(row::first_attributes(Table::<T>::LAYOUT, id));
    Ok(item)
}

/// The row after the write `id` has changed the value of this live row, or has brought a tombstone back to life. It is
/// the row of a write that goes as a whole item.
///
/// # Errors
/// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem), [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
pub fn advanced_row<T: Record>(attributes: &Attributes, value: &T, id: WriteId) -> Result<Attributes, Failure> {
    let layout = Table::<T>::LAYOUT;
    let row = Row::read(layout, attributes.clone())?;
    check_room(layout, row.at)?;
    let mut before = attributes.clone();
    before.retain(|name, _| T::ATTRIBUTES.contains(&name.as_str()));
    let mut item = attributes.clone();
    Diff::between(&before, Table::<T>::encode(value, attributes)?).apply(&mut item);
    item.remove(layout.names.buried);
    item.remove(layout.names.purge_at);
    row::advance(&layout.names, &mut item, row.at, id, &prunable(layout, &row, id, &[]), &[]);
    Ok(item)
}

/// Reads the row of a lease.
///
/// # Errors
/// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem).
pub fn read_lease(attributes: &Attributes) -> Result<StoredLease, Failure> {
    Ok(fencepost_core::lease::read(attributes)?)
}

/// Reads a row of which the newest instance wins: its order, and the instance unless it is a tombstone.
///
/// # Errors
/// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem).
pub fn read_mapping<T: LwwRecord>(attributes: &Attributes) -> Result<(OrderKey, Option<T>), Failure> {
    read_instance(attributes)
}
