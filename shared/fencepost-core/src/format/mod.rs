//! What is stored: values, items, rows, and the settings of their table. The rules about rows are those of `judge`.

pub mod item;
pub mod layout;
pub mod names;
pub mod number;
pub mod row;
pub mod value;

pub use serde_dynamo::AttributeValue;

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;

/// The content of a value, if it is of one kind.
pub trait AsKind {
    /// The text of a string.
    fn as_s(&self) -> Option<&String>;
    /// The text of a number.
    fn as_n(&self) -> Option<&String>;
    /// The bytes of a binary.
    fn as_b(&self) -> Option<&Vec<u8>>;
    /// The members of a map.
    fn as_m(&self) -> Option<&HashMap<String, AttributeValue>>;
}

impl AsKind for AttributeValue {
    fn as_s(&self) -> Option<&String> {
        if let AttributeValue::S(text) = self { Some(text) } else { None }
    }

    fn as_n(&self) -> Option<&String> {
        if let AttributeValue::N(text) = self { Some(text) } else { None }
    }

    fn as_b(&self) -> Option<&Vec<u8>> {
        if let AttributeValue::B(bytes) = self { Some(bytes) } else { None }
    }

    fn as_m(&self) -> Option<&HashMap<String, AttributeValue>> {
        if let AttributeValue::M(members) = self { Some(members) } else { None }
    }
}

/// Why a row cannot be read, or a change of it cannot be written. Nothing is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unwritable {
    /// The row has seen a higher fencing token.
    Fenced,
    /// The item would exceed the size limit.
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The row breaks the rules of the stored format.
    CorruptItem {
        /// Which one.
        reason: String,
    },
    /// Parts of the row are held.
    Held,
    /// The value cannot be stored.
    InvalidRecord {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Fenced => f.write_str("the row has seen a higher fencing token"),
            Unwritable::TooLarge { bytes, limit } => write!(f, "the item would take {bytes} bytes of at most {limit}"),
            Unwritable::Held => f.write_str("parts of the row are held"),
            Unwritable::CorruptItem { reason } | Unwritable::InvalidRecord { reason } => f.write_str(reason),
        }
    }
}

/// An invalid value. `Display` states the rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InvalidValue {
    /// The text does not have the form of the value.
    Malformed(Cow<'static, str>),
    /// The value is outside its range.
    OutOfRange(Cow<'static, str>),
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (InvalidValue::Malformed(rule) | InvalidValue::OutOfRange(rule)) = self;
        f.write_str(rule)
    }
}

impl Error for InvalidValue {}
