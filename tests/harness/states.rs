//! The states of items, as rows and answers tell them, and rows that become tombstones.

use super::engine::{self, Engine};
use fencepost::ItemVersion;
use judges::register::Version;
use serde_json::{Value, json};

/// The number of an attribute, if it has one.
pub fn number(row: &Value, name: &str) -> Option<u64> {
    row[name]["N"].as_str()?.parse().ok()
}

/// The version told to a client, in the type of the judges.
pub fn version(at: ItemVersion) -> Version {
    let row = at.incarnation.as_bytes().try_into().expect("a row of Fencepost");
    Version { row, number: at.version.get() }
}

/// Makes the row a tombstone, as a delete leaves it.
pub fn bury(engine: &Engine, table: &str, id: &str) {
    let key = engine.key_of(table);
    let row = engine.row(table, &key, id);
    let mut tombstone = json!({"_purgeAt": {"N": "1772971200"}});
    for kept in [key.as_str(), "_incarnation", "_writes"] {
        tombstone[kept] = row[kept].clone();
    }
    tombstone["_version"] = json!({"N": (engine::number(&row, "_version") + 1).to_string()});
    engine.raw("PutItem", &json!({"TableName": table, "Item": tombstone}));
}

/// A process takes from this item for the order `o-of-` its attempt, and dies before it creates the order. If the orders are
/// named, an earlier attempt to place it was burned.
pub fn leave_hold(engine: &Engine, table: &str, id: &str, (attempt, quantity): (&str, i64), burned: Option<&str>) {
    let order = format!("o-of-{attempt}");
    let mut hold = vec![json!({"N": quantity.to_string()}), json!({"S": order})];
    if let Some(orders) = burned {
        burn_order(engine, orders, &order);
        hold.extend([json!({"B": "AQIDBAUGBwg="}), json!({"N": "1"})]);
    }
    let request = json!({"TableName": table, "Key": {engine.key_of(table): {"S": id}},
        "UpdateExpression": "SET stock = stock - :q, #v = #v + :one, #h.#a = :hold",
        "ExpressionAttributeNames": {"#v": "_version", "#h": "_holds", "#a": attempt},
        "ExpressionAttributeValues": {":q": {"N": quantity.to_string()}, ":one": {"N": "1"}, ":hold": {"L": hold}}});
    engine.raw("UpdateItem", &request);
}

/// Leaves the tombstone of an attempt to place this order that was burned.
pub fn burn_order(engine: &Engine, orders: &str, order: &str) {
    let tombstone = json!({engine.key_of(orders): {"S": order}, "_version": {"N": "1"}, "_buried": {"N": "1"},
        "_incarnation": {"B": "AQIDBAUGBwg="}, "_writes": {"M": {"AQIDBAUGBwg": {"N": "0"}}}});
    engine.raw("PutItem", &json!({"TableName": orders, "Item": tombstone}));
}

/// Another client sets these attributes of an item and raises its version.
pub fn set_by_another(engine: &Engine, table: &str, id: &str, attributes: &[(&str, Value)]) {
    let row = engine.row(table, &engine.key_of(table), id);
    let version = json!({"N": (engine::number(&row, "_version") + 1).to_string()});
    set(engine, table, id, &[attributes, &[("_version", version)]].concat());
}

/// Another program sets these attributes of an item at any version.
pub fn set(engine: &Engine, table: &str, id: &str, attributes: &[(&str, Value)]) {
    let (mut parts, mut names, mut values) = (Vec::new(), json!({}), json!({}));
    for (place, (name, value)) in attributes.iter().enumerate() {
        parts.push(format!("#a{place} = :a{place}"));
        names[format!("#a{place}")] = json!(name);
        values[format!(":a{place}")] = value.clone();
    }
    let request = json!({
        "TableName": table,
        "Key": {engine.key_of(table): {"S": id}},
        "UpdateExpression": format!("SET {}", parts.join(", ")),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    });
    engine.raw("UpdateItem", &request);
}
