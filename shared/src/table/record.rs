//! [`Record`]: converts a value to an item and back.

use super::holds::Holds;
use super::value;
use crate::error::Source;
use crate::settings::Settings;
use fencepost_core::format::item::{Attributes, Diff};
use fencepost_core::format::value::{first_difference, settle_all, undeclared};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Serialize, forward_to_deserialize_any};

/// A type of values to store in a table, one value per item. The key is part of the value only if a field has its name.
///
/// A struct derives it beside the traits of serde:
///
/// ```
/// use fencepost::{Record, Settings};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "orderId", sort = "line", expires_at = "endsAt", settings = Settings::own().remembered_writes(64))]
/// #[serde(rename_all = "camelCase")]
/// struct Line {
///     quantity: u64,
///     ends_at: u64,
///     #[serde(skip_serializing_if = "Option::is_none")]
///     note: Option<String>,
/// }
///
/// assert_eq!(Line::ATTRIBUTES, ["quantity", "endsAt", "note"]);
/// ```
///
/// | in `#[record(..)]` | sets | |
/// |---|---|---|
/// | `key = ".."` | [`PARTITION_KEY`](Record::PARTITION_KEY) | demanded |
/// | `sort = ".."` | [`SORT_KEY`](Record::SORT_KEY) | if the table has one |
/// | `expires_at = ".."` | [`EXPIRES_AT`](Record::EXPIRES_AT) | one of the attributes |
/// | `settings = ..` | [`SETTINGS`](Record::SETTINGS) | any constant expression |
/// | `holds = ..` | [`HOLDS`](Record::HOLDS) | any constant expression |
///
/// The attributes are the fields under their names in serde (`rename`, `rename_all`), without the skipped ones. A
/// field stored under the name of a key shows that key ([`KEY_FIELDS`](Record::KEY_FIELDS)), and no edit changes it. A
/// struct may be generic: it is a `Record` for the types with which serde stores it and reads it.
///
/// ```
/// # use fencepost::{Record, Store, Table};
/// # use serde::de::DeserializeOwned;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "messageId")]
/// struct Envelope<T> {
///     content: T,
///     #[serde(default)]
///     earlier: Vec<T>,
/// }
///
/// fn letters<T: Serialize + DeserializeOwned + Default>(store: &Store) -> Table<Envelope<T>> {
///     store.table("letters")
/// }
/// ```
///
/// Not compiled are:
///
/// - enums, unions, tuple structs and unit structs;
/// - a field written under one name and read under another;
/// - `flatten`, because its attributes are not known when the program is compiled, and `alias`, with which a row would
///   keep two attributes of one field;
/// - `transparent`, `tag`, `from`, `try_from`, `into` and `remote`, which store something other than the fields;
/// - `skip_serializing` or `skip_deserializing` alone, with which a field is read that is never stored, or stored and
///   never read;
/// - `borrow`, because a value outlives the answer that it is decoded from;
/// - a struct without a partition key, or with an `expires_at` other than one of its fields;
/// - a field stored under the name of an [attribute of this crate](crate::Names);
/// - a key without a name, or with the name of the other key or of an attribute of this crate.
///
/// Of a generic struct, names of this crate's attributes and of keys are looked at where [`Store::table`](crate::Store::table)
/// is compiled, so by `cargo build` and not by `cargo check`.
///
/// ```compile_fail
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize, fencepost::Record)]
/// struct Order { total: u64 }
/// ```
///
/// ```compile_fail,E0080
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize, fencepost::Record)]
/// #[record(key = "orderId", expires_at = "end")]
/// struct Order {
///     total: u64, // The field `end` is forgotten.
/// }
///
/// fn orders(store: &fencepost::Store) -> fencepost::Table<Order> {
///     store.table("orders")
/// }
/// # fn main() {
/// #     let _: fn(&fencepost::Store) -> fencepost::Table<Order> = orders;
/// # }
/// ```
///
/// ```compile_fail
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Place { city: String }
/// #[derive(Serialize, Deserialize, fencepost::Record)]
/// #[record(key = "orderId")]
/// struct Order {
///     #[serde(flatten)]
///     place: Place,
/// }
/// ```
///
/// Other types implement the trait by hand. [`ATTRIBUTES`](Record::ATTRIBUTES) lets a delete at a known version be one
/// request, which removes these attributes without reading the item:
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use std::collections::BTreeMap;
///
/// #[derive(Serialize, Deserialize)]
/// struct Account {
///     balance: i64,
///     #[serde(flatten)]
///     limits: BTreeMap<String, i64>,
/// }
///
/// impl fencepost::Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance", "daily", "monthly"];
/// }
/// ```
pub trait Record: Serialize + DeserializeOwned {
    /// The name of the partition key attribute.
    const PARTITION_KEY: &'static str;
    /// The name of the sort key attribute, if the table has one.
    const SORT_KEY: Option<&'static str> = None;
    /// Every top-level attribute that a value may have. Changes leave other attributes of the item alone, and so does a
    /// delete. A create on the tombstone of the item removes them.
    const ATTRIBUTES: &'static [&'static str];
    /// The keys that a value has as fields, which [`Field`](crate::field::Field)s are not: no edit changes a key. Empty if the key is not part of the value. Reads fill them from the key. A write
    /// of a value with another key than the one it is written to is refused as
    /// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
    const KEY_FIELDS: &'static [&'static str] = &[];
    /// The attribute that holds the expiry time of a value in epoch seconds, if values have one. TTL may remove the row
    /// after this time. It is then the TTL attribute instead of `_purgeAt`, and tombstones have it too.
    ///
    /// TTL removes rows late, often by hours. Until then, an ended value is there for every operation. So a program that must
    /// not see it compares the time itself: with a [filter](crate::Query::filter), in its decision, or by a condition.
    ///
    /// Values should end at least 20 minutes after each write. If TTL removes the row earlier, a second copy of its
    /// create may still arrive and create it again.
    ///
    /// If the answer to a create is lost, the outcome is `OutcomeUnknown` unless its own row is there: another client may
    /// have ended the created value, so that TTL removed it before another row took the key.
    ///
    /// The attribute is a whole number of at most the year 9999, null or missing. TTL ignores everything else, so it is
    /// refused as [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord): texts, decimals, and milliseconds.
    const EXPIRES_AT: Option<&'static str> = None;
    /// The other writers of the table, how items are deleted, in which Regions it is written, the names of this crate's
    /// attributes, and how much a row remembers.
    const SETTINGS: Settings = Settings::own();

    /// The number of which rows of another table hold parts, if there is one.
    const HOLDS: Option<Holds<Self>> = None;

    /// The fields read by serde. If `ATTRIBUTES` lacks one, every operation on the table fails with
    /// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord) before it sends anything, because this field would
    /// always be read as missing. A type that encodes and decodes itself under other names returns none.
    #[must_use]
    fn fields() -> &'static [&'static str] {
        fields_of::<Self>()
    }

    /// Encodes the value as attributes.
    ///
    /// # Errors
    /// The reason why the value cannot be encoded. The operation then fails with
    /// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
    fn encode(&self) -> Result<Attributes, Source> {
        value::encode(self)
    }

    /// Checks that the attributes to which the value was encoded are read back as the same value: decodes them, encodes
    /// the result, and compares. The members of a list may change places, because a set has no order in Rust. Two
    /// values that encode to the same attributes, such as `Some(None)` and `None`, or numbers that a
    /// serializer rounds, cannot be told apart.
    ///
    /// Creates call it, and so does the default of [`Record::diff`]. A type that encodes and decodes itself may check less,
    /// for example to save the memory of large attributes.
    ///
    /// # Errors
    /// The attribute that would be lost or changed. The operation then fails with
    /// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord), before anything is sent.
    fn check_read_back(&self, encoded: &Attributes) -> Result<(), Source> {
        if let Some(name) = encoded.keys().find(|name| !is_declared::<Self>(name)) {
            return Err(undeclared(name).into());
        }
        let decoded = Self::decode(encoded).map_err(|error| format!("it would not be read back: {error}"))?;
        let mut again = decoded.encode()?;
        settle_all(None, &mut again)?;
        match first_difference(encoded, &again) {
            Some(name) => Err(format!("{name} would be read back as another value").into()),
            None => Ok(()),
        }
    }

    /// Finds the attributes set and removed by a change from `old` to `new`. A type with large attributes may compare
    /// its own fields instead, and encode only the different ones.
    ///
    /// # Errors
    /// See [`Record::encode`] and [`Record::check_read_back`].
    fn diff(old: &Self, new: &Self) -> Result<Diff, Source> {
        let encoded = new.encode()?;
        new.check_read_back(&encoded)?;
        Ok(Diff::between(&old.encode()?, encoded))
    }

    /// Decodes the value from the attributes of its row. There may be others than those in `ATTRIBUTES`; ignore them.
    ///
    /// # Errors
    /// The reason why the attributes cannot be decoded. The operation then fails with
    /// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem).
    fn decode(attributes: &Attributes) -> Result<Self, Source> {
        value::decode(|| Self::own_attributes(attributes, &[]))
    }

    /// The attributes in `ATTRIBUTES` and `KEY_FIELDS` except those in `except`, for a [`Record::decode`] of your own.
    #[must_use]
    fn own_attributes(attributes: &Attributes, except: &[&str]) -> Attributes {
        let names = Self::ATTRIBUTES.iter().chain(Self::KEY_FIELDS).filter(|name| !except.contains(*name));
        let own = names.filter_map(|name| attributes.get_key_value(*name));
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Whether a value may have this attribute.
pub(super) fn is_declared<T: Record>(name: &str) -> bool {
    T::ATTRIBUTES.contains(&name) || T::KEY_FIELDS.contains(&name)
}

/// The names of the fields read by serde. None if serde does not list them, as with `flatten` or an enum.
pub(super) fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &[&str] = &[];
    // Never a value: a `Fields` has none.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// A deserializer without data. It keeps the names of the fields requested by a struct.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no data"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("there is no data"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the names of the fields matter")]
    struct Account {
        total: i64,
        last_note: Option<String>,
        #[serde(skip)]
        cached: i64,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the names of the fields matter")]
    struct Wrapped(Account);

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the names of the fields matter")]
    struct Flat {
        total: i64,
        #[serde(flatten)]
        others: BTreeMap<String, i64>,
    }

    #[test]
    fn fields_are_named_as_serde_names_them_and_are_not_known_of_every_type() {
        assert_eq!(fields_of::<Account>(), ["total", "lastNote"]);
        assert_eq!(fields_of::<Wrapped>(), ["total", "lastNote"]);
        assert!(fields_of::<Flat>().is_empty() && fields_of::<BTreeMap<String, i64>>().is_empty());
    }
}
