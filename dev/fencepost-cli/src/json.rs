//! The notation of keys: the JSON of `DynamoDB`, such as `{"accountId":{"S":"a-1"}}`.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A key, as attributes.
pub type Key = HashMap<String, AttributeValue>;

/// The key as JSON. Its parts are in the order of their names.
#[must_use]
pub fn to_json(key: &Key) -> Value {
    let mut parts: Vec<_> = key.iter().collect();
    parts.sort_unstable_by_key(|(name, _)| *name);
    let part = |(name, value): (&String, &AttributeValue)| {
        let value = match value {
            AttributeValue::S(text) => json!({ "S": text }),
            AttributeValue::N(number) => json!({ "N": number }),
            AttributeValue::B(bytes) => json!({ "B": STANDARD.encode(bytes) }),
            // No other type is a key.
            _ => Value::Null,
        };
        (name.clone(), value)
    };
    Value::Object(parts.into_iter().map(part).collect::<Map<_, _>>())
}

/// Reads a key from its JSON. `None` if it is none.
#[must_use]
pub fn from_json(key: &Value) -> Option<Key> {
    key.as_object()?.iter().map(|(name, value)| Some((name.clone(), part(value)?))).collect()
}

fn part(value: &Value) -> Option<AttributeValue> {
    let (kind, value) = value.as_object()?.iter().next()?;
    typed(kind, value.as_str()?)
}

/// The part of a key with this type and this text. Bytes are base64.
#[must_use]
pub fn typed(kind: &str, text: &str) -> Option<AttributeValue> {
    match kind {
        "S" => Some(AttributeValue::S(text.to_owned())),
        "N" => Some(AttributeValue::N(text.to_owned())),
        "B" => STANDARD.decode(text).ok().map(|bytes| AttributeValue::B(Blob::new(bytes))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_json() {
        let key = Key::from([
            ("b".to_owned(), AttributeValue::N("7".to_owned())),
            ("a".to_owned(), AttributeValue::B(Blob::new([0, 255]))),
            ("c".to_owned(), AttributeValue::S("\"é".to_owned())),
        ]);
        let json = to_json(&key);
        assert_eq!(json.to_string(), r#"{"a":{"B":"AP8="},"b":{"N":"7"},"c":{"S":"\"é"}}"#);
        assert_eq!(from_json(&json), Some(key));
        for other in
            [json!(null), json!({"a": {}}), json!({"a": {"B": "*"}}), json!({"a": {"S": 1}}), json!({"a": {"M": "x"}})]
        {
            assert_eq!(from_json(&other), None, "{other}");
        }
    }
}
