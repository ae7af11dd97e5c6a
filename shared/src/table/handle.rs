//! [`Table`]: a typed handle to one table.

use super::edit::Edit;
use super::holds::Holds;
use super::key::Key;
use super::record::{Record, is_declared};
use crate::call::Call;
use crate::driver::attempt::{Attempt, HoldKeeper};
use crate::driver::read_one;
use crate::driver::rows::{Decider, Follows};
use crate::driver::send::{Address, Sender};
use crate::error::{Failure, FailureKind, Place, Source};
use crate::fencing_token::FencingToken;
use crate::store::Store;
use fencepost_core::edit::{RawEdit, brief};
use fencepost_core::format::Unwritable;
use fencepost_core::format::item::{Attributes, Diff};
use fencepost_core::format::layout::{Layout, is};
use fencepost_core::format::row::{self, Row};
use fencepost_core::format::value::{settle_all, undeclared};
use fencepost_core::{ItemVersion, Versioned};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A table of items with values of type `T`. [`Store::table`] makes it; copies are cheap.
///
/// ```
/// # use fencepost::{Record, Store, Table, VersionError};
/// # use serde::{Deserialize, Serialize};
/// # use std::time::Duration;
/// # #[derive(Clone, Serialize, Deserialize, Record)]
/// # #[record(key = "userId")]
/// # struct User { name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = fencepost_test::Engine::embedded(&[("Users", "userId")]);
/// let store = Store::new(&engine.client()).with_time_limit(Duration::from_secs(5));
/// let users: Table<User> = store.table("Users");
/// let ada = users.create("u-1", &User { name: "Ada".to_owned() }).await?;
///
/// // A client names the version that it has seen, as by an `If-Match`.
/// let rename = |_: &User| Ok::<_, &str>(Some(User { name: "Grace".to_owned() }));
/// let grace = users.update_at_version("u-1", ada.at, rename).await?;
/// let stale = users.update_at_version("u-1", ada.at, rename).await;
/// assert!(matches!(stale, Err(VersionError::Conflict(current)) if current.name == "Grace"));
/// users.delete_at_version("u-1", grace.at).await?;
///
/// // Settings of this handle, and not of the table.
/// let users = users.remembering_items().with_tombstone_retention(Duration::from_hours(24));
/// users.create("u-2", &User { name: "Edsger".to_owned() }).await?;
/// let both: Vec<_> = users.get_many(["u-1", "u-2"]).await?.into_iter().collect::<Result<_, _>>()?;
/// assert_eq!(both.iter().flatten().count(), 1);
/// users.delete("u-2").await?;
/// assert!(users.get("u-2").await?.is_none());
/// # Ok(())
/// # }
/// ```
///
/// See also the page of the [crate], [`Query`](crate::Query), [`Index`](crate::Index) and the [guides](crate::guide).
pub struct Table<T> {
    pub(crate) raw: RawTable,
    pub(super) value: PhantomData<fn() -> T>,
}

/// The facts about the table in its `Record`. Impossible ones do not compile.
pub(crate) const fn layout_of<T: Record>() -> Layout {
    let (partition_key, sort_key) = (T::PARTITION_KEY, T::SORT_KEY);
    let (attributes, expires_at, settings) = (T::ATTRIBUTES, T::EXPIRES_AT, T::SETTINGS.0);
    let held = match T::HOLDS {
        Some(holds) => Some(holds.number),
        None => None,
    };
    let mut key_fields = T::KEY_FIELDS;
    while let [name, others @ ..] = key_fields {
        assert!(
            is(Some(partition_key), name) || is(sort_key, name),
            "KEY_FIELDS has a name that is no key of the table"
        );
        key_fields = others;
    }
    Layout { partition_key, sort_key, attributes, expires_at, instance: None, held, settings }.checked()
}

impl<T: Record> Table<T> {
    pub(crate) const LAYOUT: &'static Layout = &layout_of::<T>();

    /// How long a tombstone is kept by default: 7 days. To change it, use [`Table::with_tombstone_retention`].
    pub const TOMBSTONE_RETENTION: Duration = Duration::from_hours(7 * 24);

    /// Sets how long tombstones are kept: from an hour, so that no request can outlive them, to ten years.
    #[must_use]
    pub fn with_tombstone_retention(self, retention: Duration) -> Self {
        let (least, most) = (Duration::from_hours(1), Duration::from_hours(10 * 365 * 24));
        self.with(|raw| raw.tombstone_retention = retention.clamp(least, most))
    }

    /// Makes this client remember items as it saw them last, up to 16 KB each. They take at most 16 MB of heap in all.
    ///
    /// A change then decides on the remembered item and sends its write at once, without a read. If the item has moved
    /// on, the write is refused, and the change is decided again on the item in the refusal. A kept item, a refusal and
    /// `NotFound` are never answered from memory.
    ///
    /// This saves a read where this client usually made the last change. It costs money where others do: a refused
    /// write of 1 KB costs as much as a write, which is ten times the price of an eventually consistent read of 4 KB
    /// and five times that of a strongly consistent one.
    ///
    /// It has no effect beside [programs that write as they like](crate::Settings::open_to_any): versions may fall
    /// there, so that the order of two states is unknown.
    #[must_use]
    pub fn remembering_items(self) -> Self {
        self.with(|raw| raw.remembers_items = true)
    }

    /// Returns a table that writes under the fencing token of a lease. Each item written remembers the token. Until the
    /// item and its tombstone are gone, the item refuses every write under a lower token as [`FailureKind::Fenced`].
    ///
    /// This is weaker than [`Attempt::require`](crate::Attempt::require). An item learns of a new holder only from the
    /// holder's first write. A write under the old token may arrive after the next acquire, but before this first
    /// write. It is still applied. Only `require` excludes it.
    ///
    /// All programs that write an item must write it under leases of one key. A write without a token is not checked,
    /// and leaves the remembered token alone. A free key refuses no create.
    #[must_use]
    pub fn fenced_by(&self, token: &FencingToken) -> Self {
        self.clone().with(|raw| raw.fence = Some(token.number()))
    }

    /// Says in which table the [holds](crate::Holds) of these items are decided. Without this, an order of them goes as a
    /// transaction, and a refusal by an item with holds is [`FailureKind::Held`].
    ///
    /// To settle a hold, the crate reads the orders and burns attempts there. So every program that changes the items needs
    /// `BatchGetItem`, `PutItem` and `UpdateItem` on the table of the orders.
    ///
    /// All orders of the items are in this one table. Its `Record` has [`Settings::deciding`](crate::Settings::deciding), and that
    /// of the items has [`Record::HOLDS`]; otherwise it does not compile.
    #[must_use]
    pub fn held_for<O: Record>(self, orders: &Table<O>) -> Self {
        const {
            assert!(T::HOLDS.is_some(), "the Record of the items has no HOLDS");
            assert!(O::SETTINGS.0.decides, "the Record of the orders has other settings than Settings::deciding()");
        }
        let decider = Decider { table: orders.raw.name.clone(), layout: orders.raw.layout };
        self.with(|raw| raw.held_for = Some(Arc::new(decider)))
    }

    /// The same table with another name of its partition key.
    pub(crate) fn with_partition_key(self, name: &'static str) -> Self {
        self.with(|raw| raw.layout = with_partition_key(raw.layout, name))
    }

    /// Returns the table for this call, as after [`Store::in_call`].
    #[must_use]
    pub fn in_call(&self, call: &Call) -> Self {
        self.clone().with(|raw| raw.store = raw.store.in_call(call))
    }

    /// The store of this table.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.raw.store
    }

    pub(super) fn with(mut self, set: impl FnOnce(&mut RawTable)) -> Self {
        set(&mut self.raw);
        self
    }

    pub(crate) fn sender(&self) -> &Sender {
        self.raw.sender()
    }

    pub(crate) fn call(&self) -> Call {
        self.raw.store.call()
    }

    /// The attributes of the key. Each operation begins with them, so fields are checked here.
    pub(crate) fn key_attributes(&self, key: &Key) -> Result<Attributes, Failure> {
        Self::check_fields()?;
        key.attributes(self.raw.layout.partition_key, self.raw.layout.sort_key).map_err(invalid)
    }

    /// An operation on the item with this key, if the key is usable.
    pub(crate) fn place(&self, operation: &'static str, key: Option<&Attributes>) -> Place {
        match key {
            Some(key) => Place::of(operation, [(&self.raw.name, key)]),
            None => Place::of_table(operation, &self.raw.name),
        }
    }

    /// A change of the item with this key by an operation.
    pub(super) fn change(&self, operation: &'static str, key: impl Into<Key>, call: &Call) -> Result<Attempt, Failure> {
        let key = self.key_attributes(&key.into()).map_err(|failure| failure.at(|| self.place(operation, None)))?;
        Ok(self.raw.change(operation, key, call))
    }

    pub(crate) fn check_fields() -> Result<(), Failure> {
        let Some(name) = T::fields().iter().find(|name| !is_declared::<T>(name)) else { return Ok(()) };
        Err(invalid(format!(
            "its type has the field {name}, which is not among the attributes that its Record declares"
        )))
    }

    /// The attributes of a value that is written to this key, with those of the key that it has as fields.
    pub(crate) fn encode(value: &T, key: &Attributes) -> Result<Attributes, Failure> {
        let mut attributes = value.encode().map_err(|source| invalid(source.to_string()))?;
        Self::check_declares(attributes.keys())?;
        settle_all(T::EXPIRES_AT, &mut attributes).map_err(invalid)?;
        value.check_read_back(&attributes).map_err(|source| invalid(source.to_string()))?;
        if let Some(name) = T::KEY_FIELDS.iter().find(|name| attributes.get(**name) != key.get(**name)) {
            let [has, wanted] = [&attributes, key].map(|of| brief(of.get(*name)));
            return Err(invalid(format!("the value has the {name} {has}, and the key of its item is {wanted}")));
        }
        Ok(attributes)
    }

    pub(crate) fn diff(old: &T, new: &T) -> Result<Diff, Failure> {
        let mut diff = T::diff(old, new).map_err(|source| invalid(source.to_string()))?;
        if let Some(name) = T::KEY_FIELDS.iter().find(|name| diff.0.contains_key(**name)) {
            let changed = brief(diff.0[*name].as_ref());
            return Err(invalid(format!(
                "the new value has the {name} {changed}, and the key of an item never changes"
            )));
        }
        Self::check_declares(diff.0.keys())?;
        settle_all(T::EXPIRES_AT, diff.0.iter_mut().filter_map(|(name, value)| Some((name, value.as_mut()?))))
            .map_err(invalid)?;
        Ok(diff)
    }

    fn check_declares<'a>(mut names: impl Iterator<Item = &'a String>) -> Result<(), Failure> {
        match names.find(|name| !is_declared::<T>(name)) {
            Some(name) => Err(invalid(undeclared(name))),
            None => Ok(()),
        }
    }

    /// The item in a row that another client has read, such as one of the plain SDK ([`from_sdk`](crate::from_sdk)).
    /// `None` if it is a tombstone. The row has all of its attributes.
    ///
    /// # Errors
    /// [`FailureKind::CorruptItem`]: the row cannot be used.
    pub fn live(row: Attributes) -> Result<Option<Versioned<T>>, Failure> {
        Self::decode(&Row::read(Self::LAYOUT, row)?)
    }

    pub(crate) fn decode(row: &Row) -> Result<Option<Versioned<T>>, Failure> {
        if row.is_tombstone {
            return Ok(None);
        }
        Ok(Some(Versioned { value: Self::value_in(&row.attributes)?, at: row.at }))
    }

    /// Decodes the value in these attributes. Ignores attributes not declared by the `Record`.
    pub(crate) fn value_in(attributes: &Attributes) -> Result<T, Failure> {
        let corrupt = |source: Source| Unwritable::CorruptItem { reason: source.to_string() };
        let named = |source| row::naming_the_key(Self::LAYOUT, attributes, corrupt(source));
        Ok(T::decode(attributes).map_err(named)?)
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Table { raw: self.raw.clone(), value: PhantomData }
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.raw.name).finish_non_exhaustive()
    }
}

/// What is done about the holds of items. Only the table of a `Record` with holds names it, so a program without one does not
/// contain it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    pub follows: Follows,
    pub keeper: fn(&Store, &Call) -> Box<dyn HoldKeeper>,
}

/// A table without the type of its values. Changes are compiled once for it, and not once for each type.
#[derive(Clone)]
pub(crate) struct RawTable {
    pub store: Store,
    pub name: String,
    pub layout: &'static Layout,
    pub tombstone_retention: Duration,
    pub fence: Option<u64>,
    pub remembers_items: bool,
    /// What is done about the holds of its items. `None` if they have none.
    pub keeping: Option<Keeping>,
    pub held_for: Option<Arc<Decider>>,
}

impl RawTable {
    pub(crate) fn sender(&self) -> &Sender {
        self.store.sender()
    }

    pub(crate) async fn observe(&self, key: &Attributes, call: &Call) -> Result<Option<Row>, Failure> {
        let row = read_one(self.sender(), call, Address { table: self.name.clone(), key: key.clone() }).await?;
        let row = row.map(|row| Row::read(self.layout, row)).transpose()?;
        self.saw(key, row.as_ref(), None);
        Ok(row)
    }

    /// Remembers the row seen at this key, or its absence, if this table remembers items. `made` is the state that a change of
    /// this client has made.
    pub(crate) fn saw(&self, key: &Attributes, row: Option<&Row>, made: Option<ItemVersion>) {
        match row {
            _ if !self.remembers_items || self.layout.demands_values() => {}
            Some(row) => self.remember(key, row, made),
            None => self.sender().row_cache.remove(&self.name, key),
        }
    }

    /// Remembers the row, with its item if this table remembers items.
    pub(super) fn remember(&self, key: &Attributes, row: &Row, made: Option<ItemVersion>) {
        let made = made.map(|at| (at, self.layout.window));
        self.sender().row_cache.insert(&self.name, key, row, self.remembers_items, made);
    }

    /// Whether the row has probably left half of the window in which it was seen last.
    #[expect(clippy::cast_precision_loss, reason = "a window has at most 128 versions")]
    pub(super) fn has_probably_passed(&self, key: &Attributes) -> bool {
        self.sender().row_cache.risen(&self.name, key) > self.layout.window as f64 / 2.0
    }

    pub(crate) fn remembered(&self, key: &Attributes) -> Option<Arc<Row>> {
        let seen = self.remembers_items.then(|| self.sender().row_cache.get(&self.name, key))??;
        Some(seen).filter(|row| !row.attributes.is_empty())
    }
}

/// An edit that adds to the held number of this item, with all that follows from the new number.
pub(super) fn follows<T: Record>(item: &Attributes, edit: RawEdit) -> Result<RawEdit, Failure> {
    let Some(Holds { follows: Some(follows), .. }) = T::HOLDS else { return Ok(edit) };
    Ok(follows(&Table::<T>::value_in(item)?, Edit::default().map(|_| Ok(edit))).raw)
}

/// The layout with another partition key. Each name makes one layout in the life of a program, which stays.
fn with_partition_key(layout: &'static Layout, partition_key: &'static str) -> &'static Layout {
    static MADE: Mutex<Vec<&Layout>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |one: &&&Layout| {
        one.partition_key == partition_key && one.attributes == layout.attributes && one.expires_at == layout.expires_at
    };
    if let Some(one) = made.iter().find(is_it) {
        return one;
    }
    let one: &'static Layout = Box::leak(Box::new(Layout { partition_key, ..*layout }.checked()));
    made.push(one);
    one
}

pub(crate) fn invalid(reason: String) -> Failure {
    Failure::of(FailureKind::InvalidRecord { reason })
}
