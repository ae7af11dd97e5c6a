//! Leases of the crate: their tokens and their end, waiting for a lease and working under one.

use crate::harness::engine::Engine;
use crate::harness::functions::LEASES;
use serde_json::{Value, json};

mod tokens;
mod waiting;
mod work;

/// Another client updates the row of the lease `k`.
fn update(engine: &Engine, expression: &str, values: &Value) {
    let mut request = json!({"TableName": LEASES, "Key": {"leaseKey": {"S": "k"}}, "UpdateExpression": expression});
    if expression.contains("#t") {
        request["ExpressionAttributeNames"] = json!({"#t": "token"});
    }
    if !values.is_null() {
        request["ExpressionAttributeValues"] = values.clone();
    }
    engine.raw("UpdateItem", &request);
}

/// Another client acquires the lease, as if it had ended or were free.
fn take_over(engine: &Engine) {
    let values = json!({":b": {"S": "b"}, ":one": {"N": "1"}, ":zero": {"N": "0"}, ":id": {"B": "AAAA"}});
    update(engine, "SET holder = :b, #t = #t + :one, renewals = :zero, acquireId = :id", &values);
}

/// The holder releases the lease elsewhere.
fn release_elsewhere(engine: &Engine) {
    update(engine, "REMOVE holder", &Value::Null);
}
