//! The newest instance wins: [`LwwTable`], one value for each key, whatever the order in which changes arrive.
//!
//! A thing that comes and goes under one key (a host behind an address) has *instances*, and they are ordered: by a
//! number, mostly the time of their creation, and where that is equal by their name. A registration puts a newer
//! instance in the place of an older one and never the other way round. A deletion leaves a tombstone that remembers
//! its instance, so what arrives later and is older changes nothing. The row is then the newest of all that arrived,
//! and with ties decided by the name that does not depend on their order.
//!
//! Each is one conditional write, and nothing is read before. A write that is sent again after a lost answer, or arrives
//! twice, meets either its own work or something newer: both leave things as they should be.

use crate::call::Call;
use crate::error::{Failure, Source};
use crate::protocol::condition::{self, ConditionalWrite, Ordering as OrderedBy};
use crate::protocol::deliver::{Delivery, Send, WriteOutcome, until_read};
use crate::protocol::item::Attributes;
use crate::protocol::row::{self, PURGE_AT, check_size};
use crate::store::Store;
use crate::table::prepare::is_soon;
use crate::table::{Key, Record, Table};
use crate::timestamp::epoch_seconds;
use aws_sdk_dynamodb::types::AttributeValue;
use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;
use tracing::debug;

/// A [`Record`] whose values are instances: two of its attributes say which one.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(PartialEq, Serialize, Deserialize)]
/// struct Leader {
///     term: u64,
///     node: String,
///     address: String,
/// }
///
/// impl fencepost::Record for Leader {
///     const PARTITION_KEY: &'static str = "shard";
///     const ATTRIBUTES: &'static [&'static str] = &["term", "node", "address"];
/// }
///
/// impl fencepost::LwwRecord for Leader {
///     const ORDERED_BY: &'static str = "term";
///     const NAMED_BY: &'static str = "node";
/// }
/// ```
pub trait LwwRecord: Record + PartialEq {
    /// The attribute whose number orders the instances of a key: whole, and at least 0.
    const ORDERED_BY: &'static str;
    /// The attribute whose text names the instance, and orders those with the same number.
    const NAMED_BY: &'static str;
}

/// Which instance. The newest of two is the greater one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OrderKey {
    /// The number that orders instances.
    pub order: u64,
    /// The name of the instance. Without one it stands after every instance of this number: all of them are meant.
    pub name: Option<String>,
}

impl Ord for OrderKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = match (&self.name, &other.name) {
            (Some(mine), Some(theirs)) => mine.cmp(theirs),
            (mine, theirs) => mine.is_none().cmp(&theirs.is_none()),
        };
        self.order.cmp(&other.order).then(by_name)
    }
}

impl PartialOrd for OrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What became of a registration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Registration<T> {
    /// It stands there now.
    New,
    /// It stood there already. After a lost answer that may have been this registration itself.
    Same,
    /// This very instance stands there, but with other values: these. Nothing was changed.
    Differs(T),
    /// A newer instance stands there, or one that is not older was deleted: this one is over. After a lost answer it may
    /// have stood there in between.
    Superseded {
        /// Which one.
        by: OrderKey,
    },
}

/// What became of a deletion. Each is a success: the instance is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// The instance, or an older one, stood there and does not any more.
    Deleted,
    /// None stood there. After a lost answer that may be this deletion's own work.
    AlreadyGone,
    /// A newer instance stands there, or one was deleted: this deletion came late, and changes nothing (any more).
    Superseded {
        /// Which one.
        by: OrderKey,
    },
}

impl Deletion {
    /// One word, for answers and logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Deletion::Deleted => "deleted",
            Deletion::AlreadyGone => "already_gone",
            Deletion::Superseded { .. } => "superseded",
        }
    }
}

/// One table in which each key holds its newest instance.
///
/// Its rows have no versions: never write to it through a [`Table`]. Its TTL attribute is `_purgeAt`.
pub struct LwwTable<T> {
    table: Table<T>,
}

impl Store {
    /// The table with this name, in which each key holds its newest instance. Nothing is sent.
    pub fn lww_table<T: LwwRecord>(&self, name: impl Into<String>) -> LwwTable<T> {
        LwwTable { table: self.table(name).with_tombstone_retention(LwwTable::<T>::TOMBSTONE_RETENTION) }
    }
}

impl<T: LwwRecord> LwwTable<T> {
    /// How long a tombstone is kept unless [`LwwTable::with_tombstone_retention`] says otherwise, from the moment when the
    /// deletion arrived: 30 days. That is longer than a message can live in a queue and then in its dead-letter queue
    /// (14 days each), so what comes later than this does not come at all.
    ///
    /// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
    pub const TOMBSTONE_RETENTION: Duration = Duration::from_hours(30 * 24);

    /// The same table with tombstones kept this long, from the moment when the deletion arrived; at least an hour,
    /// at most ten years.
    #[must_use]
    pub fn with_tombstone_retention(self, retention: Duration) -> Self {
        LwwTable { table: self.table.with_tombstone_retention(retention) }
    }

    /// The store that this table belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.table.store()
    }

    /// The instance that stands there (one strongly consistent read); `None` where none does, or a tombstone.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] when the table does not answer before the deadline: try later.
    /// [`Failure::CorruptItem`] and [`Failure::Rejected`]: repair the row or the set-up.
    pub async fn get(&self, key: &Key, call: &Call) -> Result<Option<T>, Failure> {
        let (sender, name) = (self.table.sender(), &self.table.name);
        let key = Table::<T>::key_attributes(key)?;
        let read = |timeout| sender.read(name, key.clone(), timeout);
        let row = until_read(sender, call, read).await?;
        Ok(row.as_ref().map(Stored::read).transpose()?.and_then(|stored| stored.live))
    }

    /// Puts the instance there, unless a newer one stands there or one that is not older was deleted: one write.
    ///
    /// # Errors
    /// [`Failure::OutcomeUnknown`], [`Failure::Unavailable`]: register it again, at any time. Others: see [`Failure`].
    pub async fn register(&self, key: &Key, instance: &T, call: &Call) -> Result<Registration<T>, Failure> {
        let mut item = Table::<T>::encode(instance)?;
        let fence = fence_of::<T>(&item).filter(|fence| fence.name.is_some()).ok_or_else(|| {
            let reason = format!("an instance has a whole number {} and a text {}", T::ORDERED_BY, T::NAMED_BY);
            Failure::InvalidRecord { reason }
        })?;
        item.extend(Table::<T>::key_attributes(key)?);
        check_size(&item)?;
        match self.put(condition::put_if_newer(Self::ordering(), item), call).await? {
            Put::Applied(_) => Ok(Registration::New),
            Put::Refused(stored, pending) => {
                // A copy of it that is still on its way could find the key free.
                if let Some(source) = pending.filter(|_| is_soon(stored.purge_at, self.table.sender().clock.now())) {
                    return Err(Failure::OutcomeUnknown { source });
                }
                Ok(judge_registration(&fence, instance, stored))
            }
        }
    }

    /// Leaves a tombstone of the instance, unless a newer one stands there or was deleted: one write. What stands there
    /// and is not newer is gone then, and cannot come back as long as the tombstone is kept.
    ///
    /// # Errors
    /// [`Failure::OutcomeUnknown`], [`Failure::Unavailable`]: delete it again, at any time. Others: see [`Failure`].
    pub async fn delete(&self, key: &Key, fence: &OrderKey, call: &Call) -> Result<Deletion, Failure> {
        let purge_at = epoch_seconds(self.table.sender().clock.now() + self.table.tombstone_retention);
        let mut tombstone = Table::<T>::key_attributes(key)?;
        tombstone.insert(T::ORDERED_BY.to_owned(), row::number(fence.order));
        tombstone.insert(PURGE_AT.to_owned(), row::number(purge_at));
        if let Some(name) = &fence.name {
            tombstone.insert(T::NAMED_BY.to_owned(), AttributeValue::S(name.clone()));
        }
        match self.put(condition::put_unless_newer(Self::ordering(), tombstone), call).await? {
            Put::Applied(replaced) => {
                let was_live = replaced.is_some_and(|replaced| !replaced.contains_key(PURGE_AT));
                Ok(if was_live { Deletion::Deleted } else { Deletion::AlreadyGone })
            }
            Put::Refused(stored, _) => Ok(Deletion::Superseded { by: stored.fence }),
        }
    }

    /// Sends one write until it is proved what became of it.
    async fn put(&self, write: ConditionalWrite, call: &Call) -> Result<Put<T>, Failure> {
        let (sender, name) = (self.table.sender(), &self.table.name);
        let send = |send: Send| sender.write(name, write.clone(), send.timeout);
        let refusal = match Delivery::new(sender, call).until_proved(send).await? {
            WriteOutcome::Applied(replaced) => return Ok(Put::Applied(replaced)),
            WriteOutcome::Refused(refusal) => refusal,
        };
        let (stored, pending) = refusal.read(Stored::read)?;
        let stored = stored.ok_or_else(|| corrupt("a write was refused where no row is"))?;
        debug!(order = stored.fence.order, name = stored.fence.name, "refused by what stands there");
        Ok(Put::Refused(stored, pending))
    }

    fn ordering() -> OrderedBy {
        OrderedBy { key: T::PARTITION_KEY, order: T::ORDERED_BY, name: T::NAMED_BY }
    }
}

impl<T> fmt::Debug for LwwTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LwwTable").field("table", &self.table).finish()
    }
}

/// What is proved about a write.
enum Put<T> {
    /// It was applied, and has replaced this row.
    Applied(Option<Attributes>),
    /// It was refused by this; an earlier send that was not answered may have been applied.
    Refused(Stored<T>, Option<Source>),
}

/// A row as it stands there.
struct Stored<T> {
    fence: OrderKey,
    /// The instance; `None` for a tombstone.
    live: Option<T>,
    purge_at: Option<u64>,
}

impl<T: LwwRecord> Stored<T> {
    fn read(attributes: &Attributes) -> Result<Self, Failure> {
        let fence = fence_of::<T>(attributes)
            .ok_or_else(|| corrupt(&format!("{} or {} is missing or malformed", T::ORDERED_BY, T::NAMED_BY)))?;
        let purge_at = row::purge_at(attributes)?;
        let live = if purge_at.is_none() { Some(Table::<T>::value_in(attributes)?) } else { None };
        Ok(Stored { fence, live, purge_at })
    }
}

/// What a registration that was refused has come to.
fn judge_registration<T: PartialEq>(mine: &OrderKey, instance: &T, stored: Stored<T>) -> Registration<T> {
    match stored.live {
        Some(live) if stored.fence == *mine && live == *instance => Registration::Same,
        Some(live) if stored.fence == *mine => Registration::Differs(live),
        _ => Registration::Superseded { by: stored.fence },
    }
}

/// The instance that these attributes speak of.
fn fence_of<T: LwwRecord>(attributes: &Attributes) -> Option<OrderKey> {
    let order = row::read_number(attributes.get(T::ORDERED_BY)?)?;
    let name = attributes.get(T::NAMED_BY).map(|name| name.as_s().cloned()).transpose().ok()?;
    Some(OrderKey { order, name })
}

fn corrupt(reason: &str) -> Failure {
    Failure::CorruptItem { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(order: u64, name: Option<&str>) -> OrderKey {
        OrderKey { order, name: name.map(str::to_owned) }
    }

    #[test]
    fn instances_are_ordered_by_number_then_name_and_all_of_a_number_come_after_each_of_it() {
        let ascending = [
            fence(1, Some("b")),
            fence(1, None),
            fence(2, Some("")),
            fence(2, Some("B")),
            fence(2, Some("a")),
            fence(2, Some("ab")),
            fence(2, None),
            fence(10, Some("a")),
        ];
        for (index, one) in ascending.iter().enumerate() {
            for (other, another) in ascending.iter().enumerate() {
                assert_eq!(one.cmp(another), index.cmp(&other), "{one:?} {another:?}");
            }
        }
    }

    #[test]
    fn a_refused_registration_is_the_same_differs_or_is_superseded() {
        let mine = fence(2, Some("b"));
        let stored = |fence: &OrderKey, live| Stored { fence: fence.clone(), live, purge_at: None };
        assert_eq!(judge_registration(&mine, &"x", stored(&mine, Some("x"))), Registration::Same);
        assert_eq!(judge_registration(&mine, &"x", stored(&mine, Some("y"))), Registration::Differs("y"));
        for (by, live) in [(&mine, None), (&fence(2, None), None), (&fence(2, Some("c")), Some("x"))] {
            let superseded = Registration::Superseded { by: by.clone() };
            assert_eq!(judge_registration(&mine, &"x", stored(by, live)), superseded);
        }
    }
}
