//! The contract of the HTTP API: `docs/openapi.yaml`.

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value};

/// The text of the file.
pub const TEXT: &str = include_str!("../../docs/openapi.yaml");

/// Parses the file.
///
/// # Panics
/// Never, because the tests parse the file that is built in.
#[must_use]
pub fn document() -> Value {
    let documents = Yaml::load_from_str(TEXT).expect("docs/openapi.yaml is YAML");
    to_json(documents.first().expect("docs/openapi.yaml has a document"))
}

fn to_json(node: &Yaml<'_>) -> Value {
    match node {
        Yaml::Value(Scalar::Boolean(value)) => Value::from(*value),
        Yaml::Value(Scalar::Integer(value)) => Value::from(*value),
        Yaml::Value(Scalar::FloatingPoint(value)) => Value::from(**value),
        Yaml::Value(Scalar::String(value)) => Value::from(value.as_ref()),
        Yaml::Sequence(items) => items.iter().map(to_json).collect(),
        Yaml::Mapping(entries) => {
            let entries =
                entries.iter().map(|(name, value)| (name.as_str().unwrap_or_default().to_owned(), to_json(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}
