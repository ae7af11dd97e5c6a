//! A value as attributes, and back, with serde.

use crate::error::Source;
use fencepost_core::format::value::settle_all;
use fencepost_core::{AttributeValue, Attributes};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Encodes a value with serde.
pub(super) fn encode(value: &impl Serialize) -> Result<Attributes, Source> {
    let named = |error: serde_dynamo::Error| -> Source {
        // Again, to name the value that does not encode.
        match serde_path_to_error::serialize(value, serde_dynamo::Serializer) {
            Ok(_) => error.into(),
            Err(error) => error.to_string().into(),
        }
    };
    let mut attributes = match serde_dynamo::to_attribute_value(value).map_err(named)? {
        AttributeValue::M(attributes) => attributes,
        // It fails, and says why.
        _ => serde_dynamo::to_item(value).map_err(named)?,
    };
    settle_all(None, &mut attributes)?;
    Ok(attributes)
}

/// Decodes a value with serde.
pub(super) fn decode<T: DeserializeOwned>(attributes: impl Fn() -> Attributes) -> Result<T, Source> {
    serde_dynamo::from_attribute_value(AttributeValue::M(attributes())).map_err(|error| {
        // Again, to name the value that does not decode.
        let deserializer = serde_dynamo::Deserializer::from_attribute_value(AttributeValue::M(attributes()));
        match serde_path_to_error::deserialize::<_, T>(deserializer) {
            Ok(_) => error.into(),
            Err(error) => error.to_string().into(),
        }
    })
}
