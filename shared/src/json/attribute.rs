//! Converts JSON to `AttributeValue` and back, exactly.
//!
//! `serde_dynamo` cannot do this. With `arbitrary_precision`, `serde_json` passes a number to other serializers as a
//! private struct that they do not know.

use super::number::{Decimal, value_of};
use super::object::Object;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value};

/// Converts a value to an attribute. Numbers keep their text, and `null` becomes `NULL`.
#[must_use]
pub fn to_attribute(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(items) => AttributeValue::L(items.iter().map(to_attribute).collect()),
        Value::Object(members) => object_to_attribute(members),
    }
}

fn object_to_attribute(members: &Map<String, Value>) -> AttributeValue {
    AttributeValue::M(members.iter().map(|(name, value)| (name.clone(), to_attribute(value))).collect())
}

/// Converts an attribute to a value. Each number gets its one text, in any notation of the engine.
///
/// # Errors
/// A sentence: the attribute is of a kind that JSON does not have (binary, sets), or its number is not valid.
pub fn from_attribute(attribute: AttributeValue) -> Result<Value, String> {
    Ok(match attribute {
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::N(text) => {
            let number = Decimal::parse(&text).map_err(|error| format!("{text:?}: {error}"))?;
            value_of(&number)
        }
        AttributeValue::S(text) => Value::String(text),
        AttributeValue::L(items) => Value::Array(items.into_iter().map(from_attribute).collect::<Result<_, _>>()?),
        AttributeValue::M(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| Ok((name, from_attribute(value)?)))
                .collect::<Result<_, String>>()?,
        ),
        _ => return Err("an attribute of a kind that JSON does not have".to_owned()),
    })
}

impl Object {
    /// Converts the object to an attribute.
    #[must_use]
    pub fn to_attribute(&self) -> AttributeValue {
        object_to_attribute(self.members())
    }

    /// Converts an attribute to an object. The limits of input do not apply to stored values.
    ///
    /// # Errors
    /// A sentence: the attribute is not a map, or contains something that JSON does not have.
    pub fn from_attribute(attribute: AttributeValue) -> Result<Self, String> {
        match from_attribute(attribute)? {
            Value::Object(members) => Ok(Object(members)),
            _ => Err("not a map".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use aws_sdk_dynamodb::primitives::Blob;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_value_comes_back_byte_for_byte() {
        let text = r#"{"a":[1,-2.5,1e+100,12345678901234567890123456789012345678],"b":null,"c":{"d":true,"e":""},"f":[],"g":{}}"#;
        let value = parse(text.as_bytes()).expect("JSON");
        let back = from_attribute(to_attribute(&value)).expect("JSON again");
        assert_eq!(back.to_string(), text);
    }

    #[test]
    fn an_engines_notation_of_a_number_does_not_matter() {
        for notation in ["100", "1E+2", "1e2", "100.0"] {
            let value = from_attribute(AttributeValue::N(notation.to_owned())).expect("a number");
            assert_eq!(value.to_string(), "100");
        }
    }

    #[test]
    fn what_json_does_not_have_is_an_error() {
        assert!(from_attribute(AttributeValue::B(Blob::new([1]))).is_err());
        assert!(from_attribute(AttributeValue::Ss(vec!["a".to_owned()])).is_err());
        assert!(from_attribute(AttributeValue::N("x".to_owned())).is_err());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<String>().prop_map(Value::String),
            ("-?[1-9][0-9]{0,20}", -100_i32..80)
                .prop_map(|(digits, exponent)| { parse(format!("{digits}e{exponent}").as_bytes()).expect("a number") }),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_survives_the_way_through_an_attribute_and_through_text(value in values()) {
            prop_assert_eq!(&from_attribute(to_attribute(&value)).expect("JSON"), &value);
            prop_assert_eq!(&parse(value.to_string().as_bytes()).expect("JSON"), &value);
        }
    }
}
