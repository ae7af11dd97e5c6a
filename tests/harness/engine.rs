//! The engine of a test, from the test kit. It is embedded, unless `DYNAMODB_ENDPOINT` names another one.

use aws_sdk_dynamodb::Client;
use dev::template::{KeyAttribute, Template};
use fencepost::{Clock, Rng, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::SystemTime;

pub use fencepost_test::{Asked, Engine, Step, Use, is_read, number};

pub static TEMPLATE: LazyLock<Template> =
    LazyLock::new(|| Template::load(dev::workspace()).unwrap_or_else(|failure| panic!("{failure}")));

/// A store over this client, under this clock and with these random numbers.
pub fn store(
    client: &Client,
    now: impl Fn() -> SystemTime + Send + Sync + 'static,
    random: impl Fn() -> u64 + Send + Sync + 'static,
) -> Store {
    Store::new(client).with_clock(Clock::new(now)).with_rng(Rng::new(random))
}

/// Empty tables, `(name, partition key)`, with their indexes of template.yaml, on the engine named by
/// `DYNAMODB_ENDPOINT`, or on the embedded one without this variable.
pub fn with_indexed_tables(tables: &[(&str, &str)]) -> Engine {
    filled(Engine::with_tables(&[]), tables)
}

/// The same on the embedded engine, in any environment.
pub fn embedded_with_indexed_tables(tables: &[(&str, &str)]) -> Engine {
    filled(Engine::embedded(&[]), tables)
}

fn filled(engine: Engine, tables: &[(&str, &str)]) -> Engine {
    for (table, key) in tables {
        engine.raw("CreateTable", &description(table, key));
    }
    engine
}

/// The properties of the table in a template of `CloudFormation` with no other resource.
pub fn properties_of(template: &str) -> Value {
    let template: Value = serde_json::from_str(template).expect("JSON");
    let table = template["Resources"].as_object().and_then(|resources| resources.values().next()).expect("a table");
    assert_eq!(table["Type"], "AWS::DynamoDB::Table");
    table["Properties"].clone()
}

/// The engine with the table of these properties, which the requests name alike.
pub fn with_properties(engine: Engine, properties: &Value) -> Engine {
    let mut request = properties.clone();
    let ttl = request.as_object_mut().and_then(|request| request.remove("TimeToLiveSpecification"));
    engine.raw("CreateTable", &request);
    if let Some(ttl) = ttl {
        engine.raw("UpdateTimeToLive", &json!({"TableName": properties["TableName"], "TimeToLiveSpecification": ttl}));
    }
    engine
}

/// A table with this partition key, and with the indexes that template.yaml gives it.
fn description(table: &str, key: &str) -> Value {
    let part = |attribute: &KeyAttribute| json!({"AttributeName": attribute.name, "KeyType": attribute.role});
    let mut attributes = BTreeMap::from([(key, "S")]);
    let mut indexes = Vec::new();
    for index in TEMPLATE.tables.iter().filter(|own| own.name == table).flat_map(|own| &own.indexes) {
        attributes.extend(index.key.iter().map(|attribute| (attribute.name.as_str(), attribute.kind.as_str())));
        let mut projection = json!({"ProjectionType": index.projection});
        if !index.includes.is_empty() {
            projection["NonKeyAttributes"] = json!(index.includes);
        }
        let schema: Vec<_> = index.key.iter().map(part).collect();
        indexes.push(json!({"IndexName": index.name, "KeySchema": schema, "Projection": projection}));
    }
    let attribute = |(name, kind): (&str, &str)| json!({"AttributeName": name, "AttributeType": kind});
    let mut description = json!({
        "TableName": table,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "AttributeDefinitions": attributes.into_iter().map(attribute).collect::<Vec<_>>(),
        "BillingMode": "PAY_PER_REQUEST",
    });
    if !indexes.is_empty() {
        description["GlobalSecondaryIndexes"] = json!(indexes);
    }
    description
}
