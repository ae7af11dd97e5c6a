//! [`Key`]: identifies one item of a table.

use crate::protocol::item::Attributes;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;

/// The key of one item: a partition part, and a sort part if the table has one.
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

impl Key {
    /// The key as attributes, in a table whose keys have these names.
    pub(super) fn attributes(&self, partition_key: &str, sort_key: Option<&str>) -> Result<Attributes, String> {
        let mut attributes = HashMap::from([(partition_key.to_owned(), self.partition.clone())]);
        match (sort_key, &self.sort) {
            (None, None) => {}
            (Some(name), Some(value)) => {
                attributes.insert(name.to_owned(), value.clone());
            }
            (Some(name), None) => return Err(format!("the key lacks its sort part {name}")),
            (None, Some(_)) => return Err("the key has a sort part, the table has none".to_owned()),
        }
        Ok(attributes)
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

impl From<String> for KeyPart {
    fn from(text: String) -> Self {
        KeyPart(AttributeValue::S(text))
    }
}

impl From<&String> for KeyPart {
    fn from(text: &String) -> Self {
        KeyPart::from(text.as_str())
    }
}

impl From<i32> for KeyPart {
    fn from(number: i32) -> Self {
        KeyPart::from(i64::from(number))
    }
}

impl From<u32> for KeyPart {
    fn from(number: u32) -> Self {
        KeyPart::from(u64::from(number))
    }
}

impl From<i64> for KeyPart {
    fn from(number: i64) -> Self {
        KeyPart(AttributeValue::N(number.to_string()))
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
