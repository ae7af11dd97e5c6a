//! Prepares a write: turns the observed state of a key and the intended change into a request.

use super::handle::Table;
use super::record::Record;
use crate::error::Failure;
use crate::layout::{Deletes, Layout};
use crate::protocol::condition::{self, Action, ConditionalWrite, Demand, Remember};
use crate::protocol::item::{Attributes, Diff};
use crate::protocol::judge::{Base, SentWrite};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row, check_size};
use crate::timestamp::epoch_seconds;
use crate::version::{Incarnation, ItemVersion, Version, Versioned};
use std::time::{Duration, SystemTime};

/// A row that TTL or a sweep may remove within this time proves nothing about a create whose answer was lost, because a late
/// copy could find the key free. A signature lives for 5 minutes from its date. Three clocks may be off, by less than 5
/// minutes each: the one that dated the request was ahead, the one that judges is behind, the one that sweeps is ahead.
const PURGE_MARGIN: Duration = Duration::from_mins(20);

/// The observed state of a key.
#[derive(Debug)]
pub(crate) enum Observed<T> {
    /// No row.
    Absent,
    /// A row whose item was deleted.
    Tombstone(Row),
    /// A row with a value.
    Live(Row, Versioned<T>),
}

impl<T: Record> Observed<T> {
    pub(crate) fn of(row: Row) -> Result<Self, Failure> {
        Ok(match Table::<T>::decode(&row)? {
            Some(current) => Observed::Live(row, current),
            None => Observed::Tombstone(row),
        })
    }
}

/// One write, by the state that it changes.
pub(crate) enum Write<'a, T> {
    /// Writes a value to a key without a row.
    Create(&'a T),
    /// Writes a value over a tombstone.
    Revive(&'a Row, &'a T),
    /// Replaces the first value with the second.
    Update(&'a Row, &'a T, &'a T),
    /// Deletes the item at this version. Holds the row, if it was read.
    Delete(ItemVersion, Option<&'a Row>),
}

impl<T> Write<'_, T> {
    /// The incarnation of the row that it changes. `None` for a free key.
    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        match self {
            Write::Create(_) => None,
            Write::Revive(row, _) | Write::Update(row, ..) => Some(row.at.incarnation),
            Write::Delete(at, _) => Some(at.incarnation),
        }
    }
}

/// The earlier attempts that a row of this incarnation would remember, and so a write to it can burn.
pub(crate) fn burnable<'a>(
    earlier: impl Iterator<Item = &'a SentWrite>,
    incarnation: Option<Incarnation>,
) -> Vec<WriteId> {
    let is_here = |sent: &&SentWrite| match sent.on {
        Base::Row { incarnation: of, .. } => !of.is_foreign() && Some(of) == incarnation,
        Base::NoRow(_) => false,
    };
    earlier.filter(is_here).map(|sent| sent.id).collect()
}

/// The parts of a row that a write sets beside the value.
#[derive(Clone, Copy)]
pub(crate) struct Stamp<'a> {
    /// The id of the write.
    pub id: WriteId,
    /// Earlier attempts of the same change, which the write burns. Only those that would be remembered by the same row.
    pub burn: &'a [WriteId],
    /// The time of the write.
    pub now: SystemTime,
    /// The time after which the tombstone that the write leaves may be removed.
    pub purge_at: SystemTime,
    /// The fencing token of the write.
    pub fence: Option<u64>,
}

impl<T: Record> Write<'_, T> {
    /// Builds the request, and the description that the judge needs.
    ///
    /// # Errors
    /// [`Failure::Fenced`]: the observed row has seen a higher token. Acquire the lease again.
    pub(crate) fn prepare(&self, key: &Attributes, stamp: Stamp<'_>) -> Result<(ConditionalWrite, SentWrite), Failure> {
        let layout = Table::<T>::LAYOUT;
        if let Write::Revive(row, _) | Write::Update(row, ..) = self {
            row.check_fence(stamp.fence)?;
        }
        match self {
            Write::Create(_) => {}
            Write::Revive(row, _) | Write::Update(row, ..) => check_room(layout, row.at)?,
            Write::Delete(at, _) => check_room(layout, *at)?,
        }
        let (request, on) = match *self {
            Write::Create(value) => (create(value, key, stamp)?, Base::NoRow(first_version(layout))),
            Write::Revive(row, value) => {
                let change = Diff::between(&leftovers(layout, row), Table::<T>::encode(value)?);
                (change_row(layout, row, change, key, stamp)?, Demand::of(layout, row).base())
            }
            Write::Update(row, old, new) => {
                (change_row(layout, row, Table::<T>::diff(old, new)?, key, stamp)?, Demand::of(layout, row).base())
            }
            Write::Delete(at, row) => {
                let demand = row.map(|row| Demand::of(layout, row)).or_else(|| Demand::at(layout, at));
                let demand = demand.ok_or_else(too_long)?;
                (delete(layout, &demand, row, key, stamp)?, demand.base())
            }
        };
        let mut sent = sent_write(layout, stamp.id, stamp.fence, on);
        if let (Base::NoRow(_), Action::Put { item }, Some(ends)) = (on, &request.action, layout.expires_at) {
            // TTL may remove the row before a later send meets the key, so another row proves nothing.
            sent.rows_may_vanish |= is_soon(item.get(ends).and_then(row::read_number), stamp.now);
        }
        Ok((request, sent))
    }
}

/// What the judge must know of a write.
pub(crate) fn sent_write(layout: &Layout, id: WriteId, fence: Option<u64>, on: Base) -> SentWrite {
    SentWrite {
        id,
        on,
        remembered: layout.remembered,
        fence,
        rows_may_vanish: layout.rows_may_vanish(),
        versions_may_repeat: layout.demands_values(),
    }
}

/// The version that a create makes.
pub(crate) fn first_version(layout: &Layout) -> Version {
    Version::new(layout.first_version).unwrap_or(Version::ABSENT.next())
}

/// Checks that a write can raise the version of the row. After it, nobody could read the row.
pub(crate) fn check_room(layout: &Layout, at: ItemVersion) -> Result<(), Failure> {
    if at.version.has_room_for(layout.window) {
        return Ok(());
    }
    let reason = format!("{} is so close to 2^53 - 1 that it cannot rise", layout.names.version);
    Err(Failure::CorruptItem { reason })
}

/// The ids that a write by `id` removes from the memory of this row.
pub(crate) fn prunable(layout: &Layout, row: &Row, id: WriteId, burn: &[WriteId]) -> Vec<WriteId> {
    row.memory.prunable(row.at.version, layout.remembered, id, burn.len())
}

/// A tombstone on a free key, as the write `id` leaves it.
pub(crate) fn tombstone(layout: &Layout, key: &Attributes, id: WriteId, purge_at: SystemTime) -> Attributes {
    let mut item = key.clone();
    item.extend(row::first_attributes(layout, id));
    if layout.marks_by_version() {
        item.insert(layout.names.buried.to_owned(), row::number(layout.first_version));
    }
    if let Some(seconds) = end_of_tombstone(layout, purge_at) {
        let ends = [layout.names.purge_at].into_iter().chain(layout.ttl_of_values());
        item.extend(ends.map(|name| (name.to_owned(), row::number(seconds))));
    }
    item
}

/// When a tombstone may be removed, in epoch seconds. `None` if it is kept for ever.
fn end_of_tombstone(layout: &Layout, purge_at: SystemTime) -> Option<u64> {
    (layout.deletes != Deletes::Keep).then(|| epoch_seconds(purge_at))
}

/// Whether the row that refused a create may vanish while a copy of the create can still arrive.
pub(crate) fn soon_purged(layout: &Layout, sent: &SentWrite, refusal: Option<&Row>, now: SystemTime) -> bool {
    let purge_at = refusal.and_then(|row| row.purge_at.or_else(|| row.epoch_seconds(layout.expires_at?)));
    matches!(sent.on, Base::NoRow(_)) && is_soon(purge_at, now)
}

/// The same by an item that was not read as a row yet. Only that of a refused create is.
pub(crate) fn item_soon_purged(layout: &Layout, sent: &SentWrite, item: Option<&Attributes>, now: SystemTime) -> bool {
    let row = || item.and_then(|item| Row::read(layout, item.clone()).ok());
    matches!(sent.on, Base::NoRow(_)) && soon_purged(layout, sent, row().as_ref(), now)
}

/// Whether TTL may remove a row at this time (epoch seconds) while a request can still arrive.
pub fn is_soon(purge_at: Option<u64>, now: SystemTime) -> bool {
    purge_at.is_some_and(|seconds| seconds <= epoch_seconds(now + PURGE_MARGIN))
}

fn create<T: Record>(value: &T, key: &Attributes, stamp: Stamp<'_>) -> Result<ConditionalWrite, Failure> {
    let layout = Table::<T>::LAYOUT;
    let mut item = Table::<T>::encode(value)?;
    item.extend(key.clone());
    check_size(&layout.names, &item)?;
    item.extend(row::first_attributes(layout, stamp.id));
    condition::fenced(condition::put_if_absent(layout, item), &layout.names, stamp.fence).ok_or_else(too_long)
}

/// Changes these attributes of the value. Leaves all others alone, but the row is live afterwards.
fn change_row(
    layout: &Layout,
    row: &Row,
    mut diff: Diff,
    key: &Attributes,
    stamp: Stamp<'_>,
) -> Result<ConditionalWrite, Failure> {
    let names = &layout.names;
    // A mark of another version must not become that of the row. Under another name, the time of a foreign row is not ours.
    let is_ours = !row.at.incarnation.is_foreign() || layout.marks_by_time();
    let marks = if is_ours { &[names.buried, names.purge_at][..] } else { &[names.buried] };
    let marks = marks.iter().filter(|name| row.attributes.contains_key(**name));
    diff.remove.extend(marks.map(|&name| name.to_owned()));
    check_size(names, diff.applied(&row.attributes))?;
    let demand = Demand::of(layout, row);
    let prune = prunable(layout, row, stamp.id, stamp.burn);
    let remember = Remember { id: stamp.id, prune: &prune, burn: stamp.burn };
    let update = condition::update_at(key.clone(), &demand, &remember, &diff);
    let write = update.and_then(|update| condition::fenced(update, names, stamp.fence)).or_else(|| {
        let mut item = row.attributes.clone();
        diff.apply(&mut item);
        row::advance(names, &mut item, row.at, stamp.id, &prune, stamp.burn);
        condition::fenced(condition::put_at(&demand, &remember, item)?, names, stamp.fence)
    });
    write.ok_or_else(too_long)
}

fn delete(
    layout: &Layout,
    demand: &Demand<'_>,
    row: Option<&Row>,
    key: &Attributes,
    stamp: Stamp<'_>,
) -> Result<ConditionalWrite, Failure> {
    let fenced = |write| condition::fenced(write, &layout.names, stamp.fence);
    if layout.deletes == Deletes::Remove {
        return condition::remove_at(key.clone(), demand).and_then(fenced).ok_or_else(too_long);
    }
    let purge_at = end_of_tombstone(layout, stamp.purge_at);
    // If values have a TTL attribute of their own, TTL looks at no other attribute. So the tombstone needs it too.
    let mut diff = Diff::default();
    if let (Some(name), Some(seconds)) = (layout.ttl_of_values(), purge_at) {
        diff.set.insert(name.to_owned(), row::number(seconds));
    }
    let removed = layout.attributes.iter().filter(|name| !diff.set.contains_key(**name));
    diff.remove = removed.map(|&name| name.to_owned()).collect();
    let prune = row.map(|row| prunable(layout, row, stamp.id, stamp.burn)).unwrap_or_default();
    let bury = |prune| {
        let remember = Remember { id: stamp.id, prune, burn: stamp.burn };
        condition::bury_at(key.clone(), demand, &remember, &diff, purge_at).and_then(fenced)
    };
    // What a row may forget, it may also keep.
    bury(&prune).or_else(|| bury(&[])).ok_or_else(too_long)
}

/// The error for a delete with too many attributes. Any other write that is too long for an update is sent as a whole
/// item.
fn too_long() -> Failure {
    Failure::InvalidRecord { reason: "its Record declares more attributes than one request can name".to_owned() }
}

/// The attributes of a tombstone beside the key and those of this crate. None of them may come back to life with the
/// next value.
fn leftovers(layout: &Layout, row: &Row) -> Attributes {
    let (ours, keys) = (layout.names.all(), [Some(layout.partition_key), layout.sort_key]);
    let mut attributes = row.attributes.clone();
    attributes.retain(|name, _| !ours.contains(&name.as_str()) && !keys.contains(&Some(name.as_str())));
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_row_vanishes_soon_if_its_end_comes_before_the_margin_is_over() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let margin = epoch_seconds(now + PURGE_MARGIN);
        for (purge_at, soon) in [(None, false), (Some(margin + 1), false), (Some(margin), true), (Some(0), true)] {
            assert_eq!(is_soon(purge_at, now), soon, "{purge_at:?}");
        }
    }
}
