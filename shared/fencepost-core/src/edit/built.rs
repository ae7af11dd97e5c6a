//! Short names for the parts of edits, for the tests of this crate.

use super::{AttributePath, Bounds, RawEdit};
use crate::condition::{Comparison, Condition, Demanded};
use crate::format::AttributeValue;
use crate::format::number::Number;
use serde::Serialize;

pub(crate) fn v(value: impl Serialize) -> AttributeValue {
    serde_dynamo::to_attribute_value(value).expect("an attribute value")
}

pub(crate) fn add(path: impl Into<AttributePath>, by: impl Into<Number>, bounds: impl Into<Bounds>) -> RawEdit {
    RawEdit::default().and_add(path, by, bounds, None)
}

pub(crate) fn set(path: impl Into<AttributePath>, value: AttributeValue) -> RawEdit {
    RawEdit::default().and_set(path, value)
}

pub(crate) fn is(path: impl Into<AttributePath>, value: AttributeValue) -> Condition {
    compared(path, Comparison::Equal, value)
}

pub(crate) fn compared(path: impl Into<AttributePath>, comparison: Comparison, value: AttributeValue) -> Condition {
    Condition::At(path.into().0, Demanded::Compared(comparison, value))
}

pub(crate) fn at_most_or_missing(path: impl Into<AttributePath>, value: AttributeValue) -> Condition {
    let path = path.into();
    Condition::Any(vec![missing(path.clone()), compared(path, Comparison::AtMost, value)])
}

pub(crate) fn there(path: impl Into<AttributePath>) -> Condition {
    Condition::At(path.into().0, Demanded::There)
}

pub(crate) fn missing(path: impl Into<AttributePath>) -> Condition {
    Condition::At(path.into().0, Demanded::Missing)
}
