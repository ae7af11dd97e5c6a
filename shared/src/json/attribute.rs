//! Converts JSON to `AttributeValue` and back, exactly.
//!
//! `serde_dynamo` cannot do this. With `arbitrary_precision`, `serde_json` passes a number to other serializers as a
//! private struct that they do not know.

use super::number::{Decimal, value_of};
use super::object::Object;
use crate::error::Source;
use crate::table::field::Members;
use fencepost_core::AttributeValue;
use fencepost_core::format::number::is_plain;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

const NOT_JSON: &str = "an attribute of a kind that JSON does not have";

/// Converts a value to an attribute. Numbers keep their text, and `null` becomes `NULL`.
#[must_use]
pub fn to_attribute(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(items) => AttributeValue::L(items.iter().map(to_attribute).collect()),
        Value::Object(members) => {
            AttributeValue::M(members.iter().map(|(name, value)| (name.clone(), to_attribute(value))).collect())
        }
    }
}

/// Converts an attribute to a value. Each number gets its one text, in any notation of the engine.
///
/// # Errors
/// A sentence: the attribute is of a kind that JSON does not have (binary, sets) or an invalid number.
pub fn from_attribute(attribute: AttributeValue) -> Result<Value, String> {
    Ok(match attribute {
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::N(text) => number_in(&text)?,
        AttributeValue::S(text) => Value::String(text),
        AttributeValue::L(items) => Value::Array(items.into_iter().map(from_attribute).collect::<Result<_, _>>()?),
        AttributeValue::M(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| Ok((name, from_attribute(value)?)))
                .collect::<Result<_, String>>()?,
        ),
        _ => return Err(NOT_JSON.to_owned()),
    })
}

fn number_in(text: &str) -> Result<Value, String> {
    Decimal::parse(text).map(|number| value_of(&number)).map_err(|error| format!("{text:?}: {error}"))
}

impl Object {
    /// Converts the object to an attribute.
    #[must_use]
    pub fn to_attribute(&self) -> AttributeValue {
        to_attribute(&self.to_value())
    }

    /// Converts an attribute to an object. The limits of input do not apply to stored values.
    ///
    /// # Errors
    /// A sentence: the attribute is not a map, or contains something that JSON does not have.
    pub fn from_attribute(attribute: &AttributeValue) -> Result<Self, String> {
        if !matches!(attribute, AttributeValue::M(_)) {
            return Err("not a map".to_owned());
        }
        to_raw_value(&AsJson(attribute)).map(Object::of_text).map_err(|error| error.to_string())
    }
}

/// The members of an object are JSON, and are kept exactly.
impl Members for Object {
    type Member = Value;

    fn encode_member(member: Value) -> Result<AttributeValue, Source> {
        Ok(to_attribute(&member))
    }
}

/// A value that is an object has members too. In any other value, the edit of a member is refused.
impl Members for Value {
    type Member = Value;

    fn encode_member(member: Value) -> Result<AttributeValue, Source> {
        Ok(to_attribute(&member))
    }
}

/// The text as JSON, if it is the one text of a number that is not scientific.
fn plain(text: &str) -> Option<&RawValue> {
    is_plain(text).then(|| serde_json::from_str(text).ok()).flatten()
}

/// Writes an attribute as JSON: members in order, numbers in their one text.
struct AsJson<'a>(&'a AttributeValue);

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            AttributeValue::Null(_) => serializer.serialize_unit(),
            AttributeValue::Bool(value) => serializer.serialize_bool(*value),
            AttributeValue::N(text) => match plain(text) {
                Some(text) => text.serialize(serializer),
                None => number_in(text).map_err(S::Error::custom)?.serialize(serializer),
            },
            AttributeValue::S(text) => serializer.serialize_str(text),
            AttributeValue::L(items) => serializer.collect_seq(items.iter().map(AsJson)),
            AttributeValue::M(members) => {
                let in_order: BTreeMap<_, _> = members.iter().collect();
                serializer.collect_map(in_order.into_iter().map(|(name, value)| (name, AsJson(value))))
            }
            _ => Err(S::Error::custom(NOT_JSON)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_number_is_read_in_its_one_text_in_any_notation_and_of_any_length() {
        let object = |number: String| {
            Object::from_attribute(&AttributeValue::M([("n".to_owned(), AttributeValue::N(number))].into()))
        };
        let (long, longest) = ("1".repeat(38), format!("1{}", "0".repeat(37)));
        for number in [
            "0",
            "-0",
            "7",
            "-7",
            "100",
            "0100",
            "1E+2",
            "-1.50",
            "1e37",
            "1e38",
            &long,
            &longest,
            &format!("{longest}0"),
        ] {
            let read = object((*number).to_owned()).expect("a number");
            let one_text = Decimal::parse(number).expect("a number").to_string();
            assert_eq!(read.text(), format!(r#"{{"n":{one_text}}}"#), "{number}");
        }
        for number in ["", "-", ".", ".5x", "x", "1 ", &"1".repeat(39)] {
            assert!(object((*number).to_owned()).is_err(), "{number}");
        }
        assert!(Object::from_attribute(&AttributeValue::S("{}".to_owned())).is_err());
    }
}
