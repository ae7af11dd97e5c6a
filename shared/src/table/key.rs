//! [`Key`]: identifies one item of a table.

use fencepost_core::AttributeValue;
use fencepost_core::format::AsKind;
use fencepost_core::format::item::Attributes;
use std::borrow::Cow;
use std::collections::HashMap;

/// The key of one item: a partition part, with a sort part if the table has one. See [`KeyPart`].
///
/// Operations take any of these as a key: a part, a pair of partition and sort part, or another key. A text or bytes as
/// a partition part has 1 to 2,048 bytes, as a sort part 1 to 1,024; any other key is refused as
/// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord) before anything is sent.
///
/// ```
/// # use fencepost::Key;
/// let (user, order) = ("user-7", 42);
/// assert_eq!(Key::from((user, order)).sort().and_then(|sort| sort.as_i64()), Some(42));
/// ```
///
/// There is no other way to make one. So neither of these compiles:
///
/// ```compile_fail,E0277
/// let key = fencepost::Key::from(1.5);
/// ```
///
/// ```compile_fail,E0277
/// let key = fencepost::Key::from(("user-7", true));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    partition: AttributeValue,
    sort: Option<AttributeValue>,
}

impl Key {
    /// The partition part.
    #[must_use]
    pub fn partition(&self) -> KeyPart {
        KeyPart(self.partition.clone())
    }

    /// The sort part, if the table has one.
    #[must_use]
    pub fn sort(&self) -> Option<KeyPart> {
        self.sort.clone().map(KeyPart)
    }

    /// The key of the row with these attributes. `None` if the row lacks a part of it.
    pub(crate) fn of(attributes: &Attributes, partition_key: &str, sort_key: Option<&str>) -> Option<Self> {
        let partition = attributes.get(partition_key)?.clone();
        let sort = sort_key.map(|name| attributes.get(name).cloned());
        if sort == Some(None) { None } else { Some(Key { partition, sort: sort.flatten() }) }
    }

    pub(crate) fn attributes(&self, partition_key: &str, sort_key: Option<&str>) -> Result<Attributes, String> {
        check_partition(partition_key, &self.partition)?;
        let mut attributes = HashMap::from([(partition_key.to_owned(), self.partition.clone())]);
        match (sort_key, &self.sort) {
            (None, None) => {}
            (Some(name), Some(value)) => {
                check_size(name, value, 1024)?;
                attributes.insert(name.to_owned(), value.clone());
            }
            (Some(name), None) => return Err(format!("the key lacks its sort part {name}")),
            (None, Some(_)) => return Err("the key has a sort part, the table has none".to_owned()),
        }
        Ok(attributes)
    }
}

/// Refuses what cannot be the partition part of a key.
pub(crate) fn check_partition(name: &str, value: &AttributeValue) -> Result<(), String> {
    check_size(name, value, 2048)
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-partition-sort-keys>
fn check_size(name: &str, value: &AttributeValue, most: usize) -> Result<(), String> {
    let bytes = match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::B(bytes) => bytes.len(),
        _ => return Ok(()),
    };
    match bytes {
        0 => Err(format!("{name} is a part of the key, and is empty")),
        _ if bytes > most => Err(format!("{name} is a part of the key, and has {bytes} bytes of at most {most}")),
        _ => Ok(()),
    }
}

impl<P: Into<KeyPart>> From<P> for Key {
    fn from(partition: P) -> Self {
        Key { partition: partition.into().0, sort: None }
    }
}

impl<P: Into<KeyPart>, S: Into<KeyPart>> From<(P, S)> for Key {
    fn from((partition, sort): (P, S)) -> Self {
        Key { partition: partition.into().0, sort: Some(sort.into().0) }
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Self {
        key.clone()
    }
}

/// One part of a key: a string, a whole number or bytes. With the feature `uuid`, an id of the crate `uuid` is a string,
/// in small letters and with hyphens, as serde writes it.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyPart(AttributeValue);

impl KeyPart {
    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_s().map(String::as_str)
    }

    /// The number, if this is a whole number of 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.0.as_n()?.parse().ok()
    }

    /// The bytes, if this is binary.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_b().map(Vec::as_slice)
    }

    pub(crate) fn into_value(self) -> AttributeValue {
        self.0
    }
}

/// How each type becomes a part of a key.
macro_rules! part_from {
    ($($of:ty: $value:ident => $part:expr,)*) => {$(
        impl From<$of> for KeyPart {
            fn from($value: $of) -> Self {
                KeyPart($part)
            }
        }
    )*};
}

part_from! {
    &str: text => AttributeValue::S(text.to_owned()),
    &&str: text => AttributeValue::S((*text).to_owned()),
    String: text => AttributeValue::S(text),
    &String: text => AttributeValue::S(text.clone()),
    Cow<'_, str>: text => AttributeValue::S(text.into_owned()),
    i32: number => AttributeValue::N(number.to_string()),
    u32: number => AttributeValue::N(number.to_string()),
    i64: number => AttributeValue::N(number.to_string()),
    u64: number => AttributeValue::N(number.to_string()),
    usize: number => AttributeValue::N(number.to_string()),
    Vec<u8>: bytes => AttributeValue::B(bytes),
    &[u8]: bytes => AttributeValue::B(bytes.to_owned()),
}

#[cfg(feature = "uuid")]
part_from! {
    uuid::Uuid: id => AttributeValue::S(id.to_string()),
    &uuid::Uuid: id => AttributeValue::S(id.to_string()),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_key_is_a_text_a_whole_number_or_bytes_and_nothing_else() {
        let bytes = KeyPart(AttributeValue::B(vec![0, 255]));
        let decimal = KeyPart(AttributeValue::N("1.5".to_owned()));
        for (part, text, number, blob) in [
            (KeyPart::from("a"), Some("a"), None, None),
            (KeyPart::from(-7), None, Some(-7), None),
            (bytes, None, None, Some(&[0, 255][..])),
            (decimal, None, None, None),
        ] {
            assert_eq!((part.as_str(), part.as_i64(), part.as_bytes()), (text, number, blob), "{part:?}");
        }
    }
}
