//! From what was observed of a key and what shall become of it to the request that does it.

use super::handle::Table;
use super::record::Record;
use crate::error::Failure;
use crate::protocol::condition::{self, ConditionalWrite};
use crate::protocol::item::{Attributes, Diff, diff};
use crate::protocol::judge::{Base, SentWrite, WriteId};
use crate::protocol::row::{self, Row, check_size};
use crate::timestamp::epoch_seconds;
use crate::version::{ItemVersion, Version, Versioned};
use std::time::{Duration, SystemTime};

/// A row that TTL may remove within this time proves nothing about a create whose answer was
/// lost: a late copy could find the key free. Sends leave for 4 minutes, signatures live 5, clocks may be
/// some minutes apart.
const PURGE_MARGIN: Duration = Duration::from_mins(15);

/// What is known of a key.
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

/// One write, by what it does to what was observed.
pub(crate) enum Write<'a, T> {
    /// A value where no row is.
    Create(&'a T),
    /// A value where a tombstone is.
    Revive(&'a Row, &'a T),
    /// The second value in the place of the first.
    Update(&'a Row, &'a T, &'a T),
    /// A tombstone in the place of whatever is at this version.
    Delete(ItemVersion),
}

/// What a write leaves in its row beside the value.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    /// The logical change that it belongs to.
    pub id: WriteId,
    /// When TTL may remove a tombstone that it leaves.
    pub purge_at: SystemTime,
    /// The fencing token that it is written under.
    pub fence: Option<u64>,
}

impl<T: Record> Write<'_, T> {
    /// The request for it, and what the judge must know of it.
    ///
    /// # Errors
    /// [`Failure::Fenced`]: the row was seen to have a higher token.
    pub(crate) fn prepare(&self, key: &Attributes, stamp: Stamp) -> Result<(ConditionalWrite, SentWrite), Failure> {
        let Stamp { id, fence, .. } = stamp;
        if let Write::Revive(row, _) | Write::Update(row, ..) = self {
            row.check_fence(fence)?;
        }
        let (request, on) = match *self {
            Write::Create(value) => (create(value, key, stamp)?, Base::NoRow),
            Write::Revive(row, value) => {
                (change_row(row, &leftovers::<T>(row), &Table::<T>::encode(value)?, key, stamp)?, base(row.at))
            }
            Write::Update(row, old, new) => {
                (change_row(row, &Table::<T>::encode(old)?, &Table::<T>::encode(new)?, key, stamp)?, base(row.at))
            }
            Write::Delete(at) => (delete::<T>(at, key, stamp)?, base(at)),
        };
        Ok((request, SentWrite { id, on, fence }))
    }
}

/// The state that a write, once applied, has made of its row.
pub(crate) fn committed(sent: &SentWrite) -> ItemVersion {
    match sent.on {
        Base::NoRow => ItemVersion { version: Version::ABSENT.next(), incarnation: sent.id.as_incarnation() },
        Base::Row { version, incarnation } => ItemVersion { version: version.next(), incarnation },
    }
}

/// Whether the row that refused a create may vanish while a copy of that create is on its way.
pub(crate) fn soon_purged(
    sent: &SentWrite,
    refusal: Option<&Row>,
    expires_at: Option<&'static str>,
    now: SystemTime,
) -> bool {
    let purge_at = refusal.and_then(|row| row.purge_at.or_else(|| row.epoch_seconds(expires_at?)));
    sent.on == Base::NoRow && is_soon(purge_at, now)
}

/// Whether TTL may remove a row at this time (epoch seconds) while a request is still on its way.
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

/// From what the row holds of a value to what it shall hold; other attributes are left alone.
fn change_row(
    row: &Row,
    old: &Attributes,
    new: &Attributes,
    key: &Attributes,
    stamp: Stamp,
) -> Result<ConditionalWrite, Failure> {
    let diff = diff(old, new);
    let mut item = row.attributes.clone();
    diff.apply(&mut item);
    check_size(&item)?;
    let update = condition::update_at(key.clone(), row.at, stamp.id, &diff);
    let write = update.and_then(|update| condition::fenced(update, stamp.fence)).or_else(|| {
        row::advance(&mut item, row.at, stamp.id);
        condition::fenced(condition::put_at(row.at, item), stamp.fence)
    });
    write.ok_or_else(too_long)
}

fn delete<T: Record>(at: ItemVersion, key: &Attributes, stamp: Stamp) -> Result<ConditionalWrite, Failure> {
    let purge_at = epoch_seconds(stamp.purge_at);
    // If values have a TTL attribute of their own, TTL looks there and nowhere else, so the tombstone needs it too.
    let set = T::EXPIRES_AT.map(|name| (name.to_owned(), row::number(purge_at))).into_iter().collect();
    let remove = T::ATTRIBUTES.iter().filter(|&&name| T::EXPIRES_AT != Some(name));
    let diff = Diff { set, remove: remove.map(|&name| name.to_owned()).collect() };
    let bury = condition::bury_at(key.clone(), at, stamp.id, &diff, purge_at);
    bury.and_then(|bury| condition::fenced(bury, stamp.fence)).ok_or_else(too_long)
}

/// Only a delete is: what else is too long for an update is sent as a whole item.
fn too_long() -> Failure {
    Failure::InvalidRecord { reason: "its Record declares more attributes than one request can name".to_owned() }
}

fn base(at: ItemVersion) -> Base {
    Base::Row { version: at.version, incarnation: at.incarnation }
}

/// What a tombstone still holds beside the key and our own attributes: nothing of it may come to life again.
fn leftovers<T: Record>(row: &Row) -> Attributes {
    let mut attributes = row.attributes.clone();
    let keys = [Some(T::PARTITION_KEY), T::SORT_KEY];
    attributes.retain(|name, _| !row::OWNED.contains(&name.as_str()) && !keys.contains(&Some(name.as_str())));
    attributes
}
