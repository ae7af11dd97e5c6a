//! Prepares a write: turns the observed state of a key and the intended change into a request.

use super::handle::Table;
use super::record::Record;
use crate::error::Failure;
use crate::protocol::condition::{self, ConditionalWrite, Remember};
use crate::protocol::item::{Attributes, Diff, diff};
use crate::protocol::judge::{Base, SentWrite};
use crate::protocol::memory::{Memory, WriteId};
use crate::protocol::row::{self, Row, check_size};
use crate::timestamp::epoch_seconds;
use crate::version::{ItemVersion, Version, Versioned};
use std::time::{Duration, SystemTime};

/// A row that TTL may remove within this time proves nothing about a create whose answer was lost, because a late copy
/// could find the key free. Sends leave for 4 minutes, signatures live 5 minutes, and clocks may differ by some
/// minutes.
const PURGE_MARGIN: Duration = Duration::from_mins(15);

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
    /// Puts a tombstone in place of the item at this version. The row remembered these writes, if it was read.
    Delete(ItemVersion, Option<&'a Memory>),
}

/// The parts of a row that a write sets beside the value.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    /// The id of the logical change.
    pub id: WriteId,
    /// The time after which TTL may remove the tombstone that the write leaves.
    pub purge_at: SystemTime,
    /// The fencing token of the write.
    pub fence: Option<u64>,
}

impl<T: Record> Write<'_, T> {
    /// Builds the request, and the description that the judge needs.
    ///
    /// # Errors
    /// [`Failure::Fenced`]: the observed row has seen a higher token. Acquire the lease again.
    pub(crate) fn prepare(&self, key: &Attributes, stamp: Stamp) -> Result<(ConditionalWrite, SentWrite), Failure> {
        let Stamp { id, fence, .. } = stamp;
        let prune = |at: ItemVersion, memory: &Memory| memory.prunable(at.version, T::REMEMBERED_WRITES, id);
        if let Write::Revive(row, _) | Write::Update(row, ..) = self {
            row.check_fence(fence)?;
        }
        let (request, on) = match *self {
            Write::Create(value) => (create(value, key, stamp)?, Base::NoRow),
            Write::Revive(row, value) => (
                change_row(
                    row,
                    &leftovers(row, [Some(T::PARTITION_KEY), T::SORT_KEY]),
                    &Table::<T>::encode(value)?,
                    key,
                    stamp,
                    &prune(row.at, &row.memory),
                )?,
                base(row.at),
            ),
            Write::Update(row, old, new) => {
                let (old, new) = (Table::<T>::encode(old)?, Table::<T>::encode(new)?);
                (change_row(row, &old, &new, key, stamp, &prune(row.at, &row.memory))?, base(row.at))
            }
            Write::Delete(at, memory) => {
                Table::<T>::check_record()?;
                let prune = memory.map(|memory| prune(at, memory)).unwrap_or_default();
                (delete(at, key, stamp, &prune, T::ATTRIBUTES, T::EXPIRES_AT)?, base(at))
            }
        };
        Ok((request, SentWrite { id, on, remembered: T::REMEMBERED_WRITES, fence }))
    }
}

/// A tombstone on a free key, as the write `id` leaves it.
pub(crate) fn tombstone(
    key: &Attributes,
    id: WriteId,
    purge_at: SystemTime,
    expires_at: Option<&'static str>,
) -> Attributes {
    let mut item = key.clone();
    item.extend(row::first_attributes(id));
    let purge_at = row::number(epoch_seconds(purge_at));
    item.extend([row::PURGE_AT].into_iter().chain(expires_at).map(|name| (name.to_owned(), purge_at.clone())));
    item
}

/// The state of the row after the write is applied.
pub(crate) fn committed(sent: &SentWrite) -> ItemVersion {
    match sent.on {
        Base::NoRow => ItemVersion { version: Version::ABSENT.next(), incarnation: sent.id.as_incarnation() },
        Base::Row { version, incarnation, .. } => ItemVersion { version: version.next(), incarnation },
    }
}

/// Whether the row that refused a create may vanish while a copy of the create can still arrive.
pub(crate) fn soon_purged(
    sent: &SentWrite,
    refusal: Option<&Row>,
    expires_at: Option<&'static str>,
    now: SystemTime,
) -> bool {
    let purge_at = refusal.and_then(|row| row.purge_at.or_else(|| row.epoch_seconds(expires_at?)));
    sent.on == Base::NoRow && is_soon(purge_at, now)
}

/// Whether TTL may remove a row at this time (epoch seconds) while a request can still arrive.
pub(crate) fn is_soon(purge_at: Option<u64>, now: SystemTime) -> bool {
    purge_at.is_some_and(|seconds| seconds < epoch_seconds(now + PURGE_MARGIN))
}

fn create<T: Record>(value: &T, key: &Attributes, stamp: Stamp) -> Result<ConditionalWrite, Failure> {
    let mut item = Table::<T>::encode(value)?;
    item.extend(key.clone());
    check_size(&item)?;
    item.extend(row::first_attributes(stamp.id));
    condition::fenced(condition::put_if_absent(T::PARTITION_KEY, item), stamp.fence).ok_or_else(too_long)
}

/// Changes the attributes of the value from `old` to `new`. Leaves all other attributes alone.
fn change_row(
    row: &Row,
    old: &Attributes,
    new: &Attributes,
    key: &Attributes,
    stamp: Stamp,
    prune: &[WriteId],
) -> Result<ConditionalWrite, Failure> {
    let diff = diff(old, new);
    let mut item = row.attributes.clone();
    diff.apply(&mut item);
    check_size(&item)?;
    let update = condition::update_at(key.clone(), row.at, Remember { id: stamp.id, prune }, &diff);
    let write = update.and_then(|update| condition::fenced(update, stamp.fence)).or_else(|| {
        row::advance(&mut item, row.at, stamp.id, prune);
        condition::fenced(condition::put_at(row.at, item), stamp.fence)
    });
    write.ok_or_else(too_long)
}

fn delete(
    at: ItemVersion,
    key: &Attributes,
    stamp: Stamp,
    prune: &[WriteId],
    attributes: &[&str],
    expires_at: Option<&str>,
) -> Result<ConditionalWrite, Failure> {
    let purge_at = epoch_seconds(stamp.purge_at);
    // If values have a TTL attribute of their own, TTL looks at no other attribute. So the tombstone needs it too.
    let mut diff = Diff::default();
    if let Some(name) = expires_at {
        diff.set.insert(name.to_owned(), row::number(purge_at));
    }
    diff.remove.extend(attributes.iter().filter(|&&name| expires_at != Some(name)).map(|&name| name.to_owned()));
    let bury = condition::bury_at(key.clone(), at, Remember { id: stamp.id, prune }, &diff, purge_at);
    let bury = bury.and_then(|bury| condition::fenced(bury, stamp.fence));
    match bury {
        Some(bury) => Ok(bury),
        // What a row may forget, it may also keep.
        None if !prune.is_empty() => delete(at, key, stamp, &[], attributes, expires_at),
        None => Err(too_long()),
    }
}

/// The error for a delete with too many attributes. Any other write that is too long for an update is sent as a whole
/// item.
fn too_long() -> Failure {
    Failure::InvalidRecord { reason: "its Record declares more attributes than one request can name".to_owned() }
}

fn base(at: ItemVersion) -> Base {
    Base::Row { version: at.version, window: 1, incarnation: at.incarnation }
}

/// The attributes of a tombstone beside the key and those of this crate. None of them may come back to life with the
/// next value.
fn leftovers(row: &Row, keys: [Option<&str>; 2]) -> Attributes {
    let mut attributes = row.attributes.clone();
    attributes.retain(|name, _| !row::OWNED.contains(&name.as_str()) && !keys.contains(&Some(name.as_str())));
    attributes
}
