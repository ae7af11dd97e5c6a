//! [`LwwTable`]: a last-writer-wins register per key. The newest instance wins, in any order of arrival.
//!
//! *Instances* follow each other under one key, such as hosts behind one address. They are ordered by a number, usually
//! the time of their creation, and then by name. A registration replaces an older instance, and never a newer one. A
//! deletion leaves a tombstone with its instance. A late and older change has no effect. The row always holds the
//! newest instance that arrived. Names decide ties: the result does not depend on the order of arrival.
//!
//! Each operation is one conditional write without a read. A write that is sent again after a lost answer, or that
//! arrives twice, meets its own result or a newer instance. Both leave the row correct.

use crate::call::Call;
use crate::driver::attempt::{Attempt, Done, refusing_row};
use crate::driver::read_one;
use crate::driver::send::{Address, Requests};
use crate::error::{Failure, FailureKind, Source};
use crate::store::Store;
use crate::table::{Key, Record, Table};
use fencepost_core::AttributeValue;
use fencepost_core::condition::{self, ConditionalWrite, OrderedBy};
use fencepost_core::format::AsKind;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::Deletes;
use fencepost_core::format::row::{self, check_size, size_of_item};
use fencepost_core::{epoch_seconds, is_soon};
use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;
use tracing::debug;

/// A [`Record`] of instances. Two of its attributes identify and order an instance.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(PartialEq, Serialize, Deserialize, fencepost::Record)]
/// #[record(key = "shard")]
/// struct Leader {
///     term: u64,
///     node: String,
///     address: String,
/// }
///
/// impl fencepost::lww::LwwRecord for Leader {
///     const ORDERED_BY: &'static str = "term";
///     const NAMED_BY: &'static str = "node";
/// }
/// ```
pub trait LwwRecord: Record + PartialEq {
    /// The attribute that orders the instances of a key: a whole number, at least 0.
    const ORDERED_BY: &'static str;
    /// The attribute that names the instance: a text. It orders the instances that have the same number.
    const NAMED_BY: &'static str;
}

/// The order key of an instance. The newer of two instances has the greater key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OrderKey {
    /// The number that orders instances.
    pub order: u64,
    /// The name of the instance. `None` means all instances with this number, and is greater than any name.
    pub name: Option<String>,
}

impl Ord for OrderKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |of: &Self| (of.order, of.name.is_none());
        key(self).cmp(&key(other)).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for OrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The outcome of [`LwwTable::register`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Registration<T> {
    /// The instance is registered now.
    New,
    /// The instance was registered already. After a lost answer, this very call may have registered it.
    Same,
    /// The instance is registered, but with these other values. Nothing was changed.
    Differs(T),
    /// The instance is out of date: a newer instance is registered, or the same or a newer instance was deleted. After
    /// a lost answer, this instance may have been registered in between.
    Superseded {
        /// The instance that supersedes this one.
        by: OrderKey,
    },
}

/// The outcome of [`LwwTable::delete`]. All three count as success: the instance is not registered any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// The instance or an older one was registered. It is deleted now.
    Deleted,
    /// No instance was registered. After a lost answer, this very call may have deleted it.
    AlreadyGone,
    /// A newer instance is registered, or was deleted. This deletion came late and changes nothing. After a lost
    /// answer, it may have been applied before.
    Superseded {
        /// The newer instance.
        by: OrderKey,
    },
}

impl Deletion {
    /// The outcome in one word, for responses and logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Deletion::Deleted => "deleted",
            Deletion::AlreadyGone => "already_gone",
            Deletion::Superseded { .. } => "superseded",
        }
    }
}

/// A table that holds the newest instance of each key. [`Store::lww_table`] makes it.
///
/// Its rows have no versions, so never write to it through a [`Table`]. Its TTL attribute is that of
/// [`Names::purge_at`](crate::Names::purge_at): `_purgeAt` by default.
///
/// ```
/// # use fencepost::Store;
/// use fencepost::lww::{Deletion, LwwTable, OrderKey, Registration};
/// # #[derive(PartialEq, serde::Serialize, serde::Deserialize, fencepost::Record)]
/// # #[record(key = "shard")]
/// # struct Leader { term: u64, node: String }
/// # impl fencepost::lww::LwwRecord for Leader {
/// #     const ORDERED_BY: &'static str = "term";
/// #     const NAMED_BY: &'static str = "node";
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = fencepost_test::Engine::embedded(&[("Leaders", "shard")]);
/// let leaders: LwwTable<Leader> = Store::new(&engine.client()).lww_table("Leaders");
/// let led_by = |term, node: &str| Leader { term, node: node.to_owned() };
/// assert!(matches!(leaders.register("s-1", &led_by(8, "b")).await?, Registration::New));
/// assert!(matches!(leaders.register("s-1", &led_by(7, "a")).await?, Registration::Superseded { .. })); // late
///
/// let newest = OrderKey { order: 8, name: Some("b".to_owned()) };
/// assert_eq!(leaders.delete("s-1", &newest).await?, Deletion::Deleted);
/// assert!(leaders.get("s-1").await?.is_none());
/// # Ok(())
/// # }
/// ```
pub struct LwwTable<T> {
    table: Table<T>,
}

impl Store {
    /// The last-writer-wins table with this name. Sends nothing.
    pub fn lww_table<T: LwwRecord>(&self, name: impl Into<String>) -> LwwTable<T> {
        const {
            assert!(T::EXPIRES_AT.is_none(), "instances do not expire: an LwwTable has no EXPIRES_AT");
            let is_alone = matches!(T::SETTINGS.0.deletes, Deletes::Expire);
            assert!(is_alone, "an LwwTable has no other writers, and TTL removes its tombstones: Settings::own()");
        }
        LwwTable { table: self.table(name).with_tombstone_retention(LwwTable::<T>::TOMBSTONE_RETENTION) }
    }
}

impl<T: LwwRecord> LwwTable<T> {
    /// How long a tombstone is kept by default: 30 days, counted from the arrival of the deletion. A queue and its
    /// dead-letter queue keep a message for at most 14 days each. No message is older. To change it, use
    /// [`LwwTable::with_tombstone_retention`].
    ///
    /// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
    pub const TOMBSTONE_RETENTION: Duration = Duration::from_hours(30 * 24);

    /// Sets how long tombstones are kept after the deletion arrived: at least an hour, at most ten years.
    #[must_use]
    pub fn with_tombstone_retention(self, retention: Duration) -> Self {
        LwwTable { table: self.table.with_tombstone_retention(retention) }
    }

    /// Returns a table bound to the deadline and the tally of this call, as after [`Store::in_call`].
    #[must_use]
    pub fn in_call(&self, call: &Call) -> Self {
        LwwTable { table: self.table.in_call(call) }
    }

    /// The store that this table belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.table.store()
    }

    /// Reads the registered instance, strongly consistent. Returns `None` if the key has no row or a tombstone.
    ///
    /// # Errors
    /// [`FailureKind::Unavailable`]: the table did not answer before the deadline; call again later.
    /// [`FailureKind::CorruptItem`]: repair the row. [`FailureKind::Rejected`]: correct the set-up.
    pub async fn get(&self, key: impl Into<Key>) -> Result<Option<T>, Failure> {
        let key = self.table.key_attributes(&key.into())?;
        let address = Address { table: self.table.raw.name.clone(), key };
        let row = read_one(self.table.sender(), &self.table.call(), address).await?;
        row.as_ref().map(Stored::read).transpose()?.map_or(Ok(None), |stored| stored.live)
    }

    /// Registers the instance with one write, unless a newer one is registered, or it or a newer one was deleted.
    ///
    /// # Errors
    /// [`FailureKind::OutcomeUnknown`] and [`FailureKind::Unavailable`]: register the instance again, at any time. For all
    /// others, see [`Failure`].
    pub async fn register(&self, key: impl Into<Key>, instance: &T) -> Result<Registration<T>, Failure> {
        let key = self.table.key_attributes(&key.into())?;
        let registered = self.register_at(&key, instance).await;
        registered.map_err(|failure| failure.at(|| self.table.place("register", Some(&key))))
    }

    async fn register_at(&self, key: &Attributes, instance: &T) -> Result<Registration<T>, Failure> {
        let mut item = Table::<T>::encode(instance, key)?;
        let order_key = order_key_of::<T>(&item).filter(|order_key| order_key.name.is_some()).ok_or_else(|| {
            let reason = format!("an instance has a whole number {} and a text {}", T::ORDERED_BY, T::NAMED_BY);
            Failure::of(FailureKind::InvalidRecord { reason })
        })?;
        item.extend(key.clone());
        check_size(size_of_item(&T::SETTINGS.0.names, &item), 0)?;
        match self.put("register", key, condition::put_if_newer(ordering::<T>(), item)).await? {
            Put::Applied(_) => Ok(Registration::New),
            Put::Refused(stored, pending) => {
                // A copy of this registration may still be on its way. TTL may remove the tombstone first, and then the
                // copy finds the key free.
                if let Some(source) = pending.filter(|_| is_soon(stored.purge_at, self.table.sender().clock.now())) {
                    return Err(Failure::of(FailureKind::OutcomeUnknown { source }));
                }
                // The value of another instance decides nothing, so it need not decode.
                let live = if stored.order_key == order_key { stored.live? } else { None };
                Ok(judge_registration(&order_key, &stored.order_key, live, instance))
            }
        }
    }

    /// Deletes the instance and all older ones with one write, which leaves a tombstone. A newer instance stays.
    ///
    /// A deleted instance cannot come back while the tombstone is kept.
    ///
    /// # Errors
    /// [`FailureKind::OutcomeUnknown`] and [`FailureKind::Unavailable`]: delete the instance again, at any time. For all
    /// others, see [`Failure`].
    pub async fn delete(&self, key: impl Into<Key>, order_key: &OrderKey) -> Result<Deletion, Failure> {
        let key = self.table.key_attributes(&key.into())?;
        let deleted = self.delete_at(&key, order_key).await;
        deleted.map_err(|failure| failure.at(|| self.table.place("delete", Some(&key))))
    }

    async fn delete_at(&self, key: &Attributes, order_key: &OrderKey) -> Result<Deletion, Failure> {
        let purge_at = epoch_seconds(self.table.sender().clock.now() + self.table.raw.tombstone_retention);
        let tombstone = tombstone::<T>(key.clone(), order_key, purge_at);
        match self.put("delete", key, condition::put_unless_newer(ordering::<T>(), tombstone)).await? {
            Put::Applied(replaced) => {
                let was_live = replaced.is_some_and(|replaced| !replaced.contains_key(T::SETTINGS.0.names.purge_at));
                Ok(if was_live { Deletion::Deleted } else { Deletion::AlreadyGone })
            }
            Put::Refused(stored, _) => Ok(Deletion::Superseded { by: stored.order_key }),
        }
    }

    async fn put(&self, operation: &'static str, key: &Attributes, write: ConditionalWrite) -> Result<Put<T>, Failure> {
        let (sender, call) = (self.table.sender(), self.table.call());
        let address = Address { table: self.table.raw.name.clone(), key: key.clone() };
        let mut attempt = Attempt::of_one(operation, address, Table::<T>::LAYOUT, Requests::PUTS, sender, &call);
        let refused = match attempt.repeated(sender, &call, &write, Stored::read).await? {
            Done::Applied(applied) => return Ok(Put::Applied(applied.shown)),
            Done::Answered(refused) => refused,
        };
        let (stored, pending) = refusing_row(refused)?;
        debug!(order = stored.order_key.order, name = stored.order_key.name, "refused by what stands there");
        Ok(Put::Refused(stored, pending))
    }
}

impl<T> fmt::Debug for LwwTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LwwTable").field("table", &self.table).finish()
    }
}

pub(crate) fn ordering<T: LwwRecord>() -> OrderedBy {
    [T::PARTITION_KEY, T::ORDERED_BY, T::NAMED_BY]
}

/// The tombstone of an instance, or of all instances with its number. `purge_at` is in epoch seconds.
pub(crate) fn tombstone<T: LwwRecord>(key: Attributes, order_key: &OrderKey, purge_at: u64) -> Attributes {
    let mut tombstone = key;
    tombstone.insert(T::ORDERED_BY.to_owned(), row::number(order_key.order));
    tombstone.insert(T::SETTINGS.0.names.purge_at.to_owned(), row::number(purge_at));
    if let Some(name) = &order_key.name {
        tombstone.insert(T::NAMED_BY.to_owned(), AttributeValue::S(name.clone()));
    }
    tombstone
}

enum Put<T> {
    /// The write was applied and replaced this row, if there was one.
    Applied(Option<Attributes>),
    /// This row refused the write. With a source, an earlier send may have been applied.
    Refused(Stored<T>, Option<Source>),
}

struct Stored<T> {
    order_key: OrderKey,
    live: Result<Option<T>, Failure>,
    purge_at: Option<u64>,
}

impl<T: LwwRecord> Stored<T> {
    fn read(attributes: &Attributes) -> Result<Self, Failure> {
        let order_key = order_key_of::<T>(attributes)
            .ok_or_else(|| corrupt(&format!("{} or {} is missing or malformed", T::ORDERED_BY, T::NAMED_BY)))?;
        let purge_at = row::purge_at(&T::SETTINGS.0.names, attributes)?;
        let live = if purge_at.is_none() { Table::<T>::value_in(attributes).map(Some) } else { Ok(None) };
        Ok(Stored { order_key, live, purge_at })
    }
}

#[cfg(feature = "testing")]
pub(crate) fn read_instance<T: LwwRecord>(attributes: &Attributes) -> Result<(OrderKey, Option<T>), Failure> {
    let Stored { order_key, live, .. } = Stored::read(attributes)?;
    Ok((order_key, live?))
}

/// The outcome of a refused registration of `instance`. The row holds `live`, or is the tombstone of `stored`.
pub(crate) fn judge_registration<T: PartialEq>(
    mine: &OrderKey,
    stored: &OrderKey,
    live: Option<T>,
    instance: &T,
) -> Registration<T> {
    match live {
        Some(live) if stored == mine && live == *instance => Registration::Same,
        Some(live) if stored == mine => Registration::Differs(live),
        _ => Registration::Superseded { by: stored.clone() },
    }
}

fn order_key_of<T: LwwRecord>(attributes: &Attributes) -> Option<OrderKey> {
    let order = row::read_number(attributes.get(T::ORDERED_BY)?)?;
    let name = match attributes.get(T::NAMED_BY) {
        Some(name) => Some(name.as_s()?.clone()),
        None => None,
    };
    Some(OrderKey { order, name })
}

fn corrupt(reason: &str) -> Failure {
    Failure::of(FailureKind::CorruptItem { reason: reason.to_owned() })
}
