//! A typed door to one table: [`Record`] (value <-> item), [`Key`], [`Table`], and the attribute diff.

use crate::ambient::Ambient;
use crate::error::{Failure, Source};
use crate::fencing_token::FencingToken;
use crate::retry::RetryPolicy;
use crate::row::{OWNED, Row};
use crate::send::Sender;
use crate::version::Versioned;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// An item, or a part of one, as `DynamoDB` knows it: attribute name to value.
pub type Attributes = HashMap<String, AttributeValue>;

/// A type whose values are kept in a table, one item each.
///
/// The key is not part of the value. `ATTRIBUTES` is what lets a delete at a known version be one
/// request: nothing has to be read to know what to remove.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Account {
///     balance: i64,
///     #[serde(skip_serializing_if = "Option::is_none")]
///     note: Option<String>,
/// }
///
/// impl fencepost::Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance", "note"];
/// }
/// ```
pub trait Record: Serialize + DeserializeOwned {
    /// The name of the partition key's attribute.
    const PARTITION_KEY: &'static str;
    /// The name of the sort key's attribute, where the table has one.
    const SORT_KEY: Option<&'static str> = None;
    /// Every top-level attribute that a value may have. Others in the same item are never touched.
    const ATTRIBUTES: &'static [&'static str];
    /// The attribute, a number of epoch seconds, after which TTL may remove the row, where a value has one. It is
    /// the table's TTL attribute then, and a row of it cannot be deleted: the tombstone would have no TTL.
    const EXPIRES_AT: Option<&'static str> = None;

    /// The value as attributes.
    ///
    /// # Errors
    /// What made it impossible.
    fn encode(&self) -> Result<Attributes, Source> {
        Ok(serde_dynamo::to_item(self)?)
    }

    /// The value that these attributes hold; those that are not in `ATTRIBUTES` are left out before.
    ///
    /// # Errors
    /// What made it impossible.
    fn decode(attributes: Attributes) -> Result<Self, Source> {
        Ok(serde_dynamo::from_item(attributes)?)
    }
}

/// The key of one item.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    partition: AttributeValue,
    sort: Option<AttributeValue>,
}

impl Key {
    /// A key with a partition and a sort part.
    pub fn with_sort(partition: impl Into<KeyPart>, sort: impl Into<KeyPart>) -> Self {
        Key { partition: partition.into().0, sort: Some(sort.into().0) }
    }
}

impl<P: Into<KeyPart>> From<P> for Key {
    fn from(partition: P) -> Self {
        Key { partition: partition.into().0, sort: None }
    }
}

/// One part of a key: a string, a whole number or bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyPart(AttributeValue);

impl From<&str> for KeyPart {
    fn from(text: &str) -> Self {
        KeyPart(AttributeValue::S(text.to_owned()))
    }
}

impl From<u64> for KeyPart {
    fn from(number: u64) -> Self {
        KeyPart(AttributeValue::N(number.to_string()))
    }
}

impl From<Vec<u8>> for KeyPart {
    fn from(bytes: Vec<u8>) -> Self {
        KeyPart(AttributeValue::B(Blob::new(bytes)))
    }
}

/// One table whose items hold values of type `T`.
///
/// The operations are in `update.rs`.
pub struct Table<T> {
    pub(crate) sender: Arc<Sender>,
    pub(crate) name: String,
    pub(crate) policy: RetryPolicy,
    pub(crate) ambient: Ambient,
    pub(crate) tombstone_retention: Duration,
    pub(crate) fence: Option<u64>,
    value: PhantomData<fn() -> T>,
}

impl<T: Record> Table<T> {
    /// How long a tombstone is kept unless [`Table::with_tombstone_retention`] says otherwise.
    pub const TOMBSTONE_RETENTION: Duration = Duration::from_hours(7 * 24);

    /// The table with this name, reached as `client` reaches it, but with the SDK's retries switched off: a
    /// retry that this crate does not see would hide a lost answer from it.
    pub fn new(client: &Client, name: impl Into<String>) -> Self {
        Table {
            sender: Arc::new(Sender::new(client)),
            name: name.into(),
            policy: RetryPolicy::default(),
            ambient: Ambient::system(),
            tombstone_retention: Self::TOMBSTONE_RETENTION,
            fence: None,
            value: PhantomData,
        }
    }

    /// The same table, tried by another policy.
    #[must_use]
    pub fn with_policy(self, policy: RetryPolicy) -> Self {
        Table { policy, ..self }
    }

    /// The same table under another clock and another source of randomness.
    #[must_use]
    pub fn with_ambient(self, ambient: Ambient) -> Self {
        Table { ambient, ..self }
    }

    /// The same table with tombstones kept this long; at least an hour, so that no request can outlive them, and at most
    /// ten years.
    #[must_use]
    pub fn with_tombstone_retention(self, retention: Duration) -> Self {
        let (least, most) = (Duration::from_hours(1), Duration::from_hours(10 * 365 * 24));
        Table { tombstone_retention: retention.clamp(least, most), ..self }
    }

    /// The same table for one holder of a lease: each item that it writes remembers the token, and refuses every write
    /// under a lower one as [`Failure::Fenced`], for as long as the item or its tombstone is there. All that write an item
    /// have to do so under leases of one key; a write without a token is not checked, and leaves what is remembered alone.
    /// Nothing is remembered where nothing is: a create on a free key is not refused.
    #[must_use]
    pub fn fenced_by(&self, token: &FencingToken) -> Self {
        Table {
            sender: self.sender.clone(),
            name: self.name.clone(),
            policy: self.policy,
            ambient: self.ambient.clone(),
            tombstone_retention: self.tombstone_retention,
            fence: Some(token.number()),
            value: PhantomData,
        }
    }

    /// The clock and the randomness that this table works by.
    #[must_use]
    pub fn ambient(&self) -> &Ambient {
        &self.ambient
    }

    pub(crate) fn key_attributes(key: &Key) -> Result<Attributes, Failure> {
        let mut attributes = HashMap::from([(T::PARTITION_KEY.to_owned(), key.partition.clone())]);
        match (T::SORT_KEY, &key.sort) {
            (None, None) => {}
            (Some(name), Some(value)) => {
                attributes.insert(name.to_owned(), value.clone());
            }
            (Some(name), None) => return Err(invalid(format!("the key lacks its sort part {name}"))),
            (None, Some(_)) => return Err(invalid("the key has a sort part, the table has none".to_owned())),
        }
        Ok(attributes)
    }

    /// The value as the attributes that it may have.
    pub(crate) fn encode(value: &T) -> Result<Attributes, Failure> {
        let attributes = value.encode().map_err(|source| invalid(source.to_string()))?;
        if let Some(name) = attributes.keys().find(|name| !T::ATTRIBUTES.contains(&name.as_str())) {
            return Err(invalid(format!("{name} is not among the attributes that its Record declares")));
        }
        let keys = [Some(T::PARTITION_KEY), T::SORT_KEY];
        if let Some(name) = T::ATTRIBUTES.iter().find(|name| OWNED.contains(name) || keys.contains(&Some(name))) {
            return Err(invalid(format!("its Record declares {name}, which is the key's or this crate's")));
        }
        Ok(attributes)
    }

    /// What a row holds: a value, or `None` for a tombstone.
    pub(crate) fn decode(row: &Row) -> Result<Option<Versioned<T>>, Failure> {
        if row.purge_at.is_some() {
            return Ok(None);
        }
        Ok(Some(Versioned { value: Self::value_in(&row.attributes)?, at: row.at }))
    }

    /// The value that these attributes hold beside others.
    pub(crate) fn value_in(attributes: &Attributes) -> Result<T, Failure> {
        let known = T::ATTRIBUTES.iter().filter_map(|name| attributes.get_key_value(*name));
        let known = known.map(|(name, value)| (name.clone(), value.clone())).collect();
        T::decode(known).map_err(|source| Failure::CorruptItem { reason: source.to_string() })
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name).field("policy", &self.policy).finish_non_exhaustive()
    }
}

fn invalid(reason: String) -> Failure {
    Failure::InvalidRecord { reason }
}

/// What has to be set and removed at the top level to turn one item into another.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Diff {
    /// Attributes that are new or have another value.
    pub set: BTreeMap<String, AttributeValue>,
    /// Attributes that are gone.
    pub remove: BTreeSet<String>,
}

/// The diff from `old` to `new`, attribute by attribute; a changed map or list is set as a whole.
#[must_use]
pub fn diff(old: &Attributes, new: &Attributes) -> Diff {
    let set = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let remove = old.keys().filter(|name| !new.contains_key(*name));
    Diff { set: set.map(|(name, value)| (name.clone(), value.clone())).collect(), remove: remove.cloned().collect() }
}

impl Diff {
    /// Changes a whole item the way that the update expression would.
    pub(crate) fn apply(&self, item: &mut Attributes) {
        item.retain(|name, _| !self.remove.contains(name));
        item.extend(self.set.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// The largest item that is sent: `DynamoDB`'s 400 KB less what our own attributes may grow to, so that
/// an item that could be created can also be changed and deleted.
pub(crate) const MAX_ITEM: usize = 400 * 1024 - 512;

/// The size of these attributes in bytes.
pub(crate) fn size_of_attributes<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>) -> usize {
    attributes.into_iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

/// Refuses an item (ours left out) that would be too large, before anything is sent.
pub(crate) fn check_size(item: &Attributes) -> Result<(), Failure> {
    let ours = |name: &String| OWNED.contains(&name.as_str());
    let bytes = size_of_attributes(item.iter().filter(|(name, _)| !ours(name)));
    if bytes > MAX_ITEM {
        return Err(Failure::TooLarge { bytes, limit: MAX_ITEM });
    }
    Ok(())
}

/// The size of a value in bytes, rounded up where the rules say "approximately".
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
fn size_of(value: &AttributeValue) -> usize {
    let number = |text: &str| text.len().div_ceil(2).min(19) + 2;
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(text) => number(text),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::L(list) => 3 + list.iter().map(|value| 1 + size_of(value)).sum::<usize>(),
        AttributeValue::M(map) => 3 + map.iter().map(|(name, value)| 1 + name.len() + size_of(value)).sum::<usize>(),
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|text| number(text)).sum(),
        AttributeValue::Bs(set) => set.iter().map(|bytes| bytes.as_ref().len()).sum(),
        // Bool, Null, and whatever a later SDK adds without this crate knowing how to store it.
        _ => 1,
    }
}
