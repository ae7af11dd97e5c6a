//! The tool `fencepost`: explains damaged tables, adopts while others write, sweeps, and goes on after an interruption.

mod adopting;
mod explaining;
mod interrupted;
mod sweeping;

use crate::harness::engine::Engine;
use serde_json::{Value, json};

const TABLE: &str = "Accounts";
const KEY: &str = "accountId";

fn accounts() -> Engine {
    Engine::with_tables(&[(TABLE, KEY)])
}

/// Writes a row as it is given, in DynamoDB's JSON.
fn put(engine: &Engine, id: &str, attributes: &Value) {
    let mut item = attributes.clone();
    item[KEY] = json!({"S": id});
    engine.raw("PutItem", &json!({"TableName": TABLE, "Item": item}));
}

fn row(engine: &Engine, id: &str) -> Value {
    engine.row(TABLE, KEY, id)
}

/// Changes one row as a program does that knows only the version, and demands it.
fn foreign_update(engine: &Engine, id: &str, version: u64) -> u16 {
    let request = json!({
        "TableName": TABLE,
        "Key": {KEY: {"S": id}},
        "UpdateExpression": "SET #b = #b + :one, #v = #v + :one",
        "ConditionExpression": "#v = :at",
        "ExpressionAttributeNames": {"#b": "balance", "#v": "_version"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":at": {"N": version.to_string()}},
    });
    engine.answer("UpdateItem", request.to_string().as_bytes()).0
}
