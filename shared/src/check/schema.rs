//! [`TableSchema`]: what a table must have for the program that uses it.

use crate::idempotency::IdempotencyRecord;
use crate::listing::index::{SORT, keys_of_index};
use crate::listing::{Index, Projection};
use crate::table::{Record, Table};
use aws_sdk_dynamodb::types::ScalarAttributeType;
use fencepost_core::condition::{LEASE_KEY, LEASE_PURGE_AT};
use fencepost_core::format::layout::{Deletes, Regions};

/// What a table must have for the program that uses it: its key, its TTL attribute, its indexes, and what the
/// [`Settings`](crate::Settings) ask for. [`Store::check_table`](crate::Store::check_table) compares a table with it.
///
/// A `Record` does not say whether a part of its key is a string, a number or binary. So each of them passes, unless
/// [`TableSchema::with_key_type`] says which:
///
/// ```
/// use aws_sdk_dynamodb::types::ScalarAttributeType;
/// use fencepost::{Record, Store, TableSchema};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "orderId", sort = "line")]
/// # struct Line { quantity: u64 }
///
/// async fn start(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
///     let lines = TableSchema::of::<Line>().with_key_type("line", ScalarAttributeType::N);
///     store.check_table("Lines", &lines).await?;
///     store.check_table("Leases", &TableSchema::leases()).await?;
///     Ok(store.check_table("Payments", &TableSchema::idempotency()).await?)
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSchema {
    pub(super) keys: Keys,
    /// The types of keys, as far as they are known.
    types: Vec<(String, ScalarAttributeType)>,
    pub(super) ttl: Ttl,
    /// `None` if the program works with any.
    pub(super) regions: Option<Regions>,
    pub(super) indexes: Vec<IndexSchema>,
}

/// The attributes that are a key: the partition key first.
pub(super) type Keys = Vec<String>;

/// What TTL of the table must do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ttl {
    /// It is on with this attribute.
    On(String),
    /// It is off, or on with any attribute but this one, if one is named.
    Off { with: Option<String> },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IndexSchema {
    pub(super) name: &'static str,
    pub(super) keys: Keys,
    /// How many of them, from the first on, are the partition key.
    pub(super) partitions: usize,
    pub(super) is_local: bool,
    pub(super) projection: Projection,
}

impl TableSchema {
    /// A table with this partition key and sort key, and without TTL, for a program that does not have its `Record`.
    #[must_use]
    pub fn new(partition_key: &str, sort_key: Option<&str>) -> Self {
        let keys = [partition_key].into_iter().chain(sort_key).map(str::to_owned).collect();
        let (types, ttl) = (Vec::new(), Ttl::Off { with: None });
        TableSchema { keys, types, ttl, regions: None, indexes: Vec::new() }
    }

    /// The table of this `Record`.
    ///
    /// Its TTL attribute is [`EXPIRES_AT`](Record::EXPIRES_AT), or else that of [`Names::purge_at`](crate::Names::purge_at). Under
    /// [`Settings::without_ttl`](crate::Settings::without_ttl), TTL without an `EXPIRES_AT` must be off; only where deletes
    /// remove rows, it may be on with another attribute than that of `purge_at`. The table must have multi-Region strong
    /// consistency if the settings say [`in_regions`](crate::WithoutTtl::in_regions), and must not have it otherwise.
    #[must_use]
    pub fn of<T: Record>() -> Self {
        let layout = Table::<T>::LAYOUT;
        let end_of_tombstones = layout.names.purge_at.to_owned();
        let ttl = match (layout.expires_at, layout.deletes) {
            (Some(name), _) => Ttl::On(name.to_owned()),
            (None, Deletes::Expire) => Ttl::On(end_of_tombstones),
            (None, Deletes::Remove) => Ttl::Off { with: Some(end_of_tombstones) },
            (None, Deletes::Sweep | Deletes::Keep) => Ttl::Off { with: None },
        };
        TableSchema { ttl, regions: Some(layout.regions), ..Self::new(T::PARTITION_KEY, T::SORT_KEY) }
    }

    /// A table of [leases](crate::lease::Leases). One with multi-Region strong consistency passes too, and needs no TTL.
    #[must_use]
    pub fn leases() -> Self {
        let schema = TableSchema { ttl: Ttl::On(LEASE_PURGE_AT.to_owned()), ..Self::new(LEASE_KEY, None) };
        schema.with_key_name(LEASE_KEY)
    }

    /// Names the partition key of a table of leases or of idempotency records, which is a string.
    #[must_use]
    pub fn with_key_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.keys[0]);
        self.types.clear();
        self.with_key_type(name, ScalarAttributeType::S)
    }

    /// A table of the records of [`Idempotency`](crate::Idempotency).
    #[must_use]
    pub fn idempotency() -> Self {
        Self::of::<IdempotencyRecord<()>>().with_key_name(IdempotencyRecord::<()>::PARTITION_KEY)
    }

    /// Sets the TTL attribute.
    #[must_use]
    pub fn with_ttl(self, attribute: &str) -> Self {
        TableSchema { ttl: Ttl::On(attribute.to_owned()), ..self }
    }

    /// Adds an index that the program queries. An index that projects more passes too.
    #[must_use]
    pub fn with_index<I: Index>(mut self, _: I) -> Self {
        let all = keys_of_index::<I>();
        let keys = all.into_iter().flatten().map(str::to_owned).collect();
        let (name, partitions, is_local) = (I::NAME, all[..SORT].iter().flatten().count(), I::IS_LOCAL);
        self.indexes.push(IndexSchema { name, keys, partitions, is_local, projection: I::PROJECTION });
        self
    }

    /// Sets the type of an attribute that is a key of the table or of an index.
    ///
    /// # Panics
    /// If it is none. Add the indexes before.
    #[must_use]
    pub fn with_key_type(mut self, name: &str, kind: ScalarAttributeType) -> Self {
        assert!(self.key_names().any(|key| key == name), "{name} is no key of the table or of an index");
        self.types.push((name.to_owned(), kind));
        self
    }

    /// The type of a key, if one is set. The last one counts.
    pub(super) fn type_of(&self, name: &str) -> Option<&ScalarAttributeType> {
        self.types.iter().rev().find_map(|(key, kind)| (key == name).then_some(kind))
    }

    /// The attributes that are keys of the table or of an index. One may come several times.
    pub(super) fn key_names(&self) -> impl Iterator<Item = &String> {
        self.keys.iter().chain(self.indexes.iter().flat_map(|index| &index.keys))
    }
}
