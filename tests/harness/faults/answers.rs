//! Answers that the service gives and the embedded engine never does, and what they are made of.

use crate::harness::engine::is_read;
use serde_json::{Map, Value, json};

/// An error of the service that says nothing but its name.
pub fn error(code: &str) -> Value {
    json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "on purpose"})
}

/// A transaction is cancelled because of others in flight that some of its steps met.
pub fn cancelled_by_conflict(met: &[bool]) -> Value {
    let reasons: Vec<_> = met.iter().map(|met| if *met { conflict() } else { json!({"Code": "None"}) }).collect();
    let codes: Vec<_> = reasons.iter().filter_map(|reason| reason["Code"].as_str()).collect();
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
            codes.join(", ")
        ),
        "CancellationReasons": reasons,
    })
}

fn conflict() -> Value {
    json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"})
}

/// Shows transactions in flight in place of some of the reasons of a cancellation.
pub fn mix_reasons(answer: &mut Value, some_of: impl Fn(usize) -> Vec<bool>) {
    let Some(reasons) = answer.get_mut("CancellationReasons").and_then(Value::as_array_mut) else { return };
    let met = some_of(reasons.len());
    for (reason, met) in reasons.iter_mut().zip(met) {
        if met {
            *reason = conflict();
        }
    }
}

/// Takes some of the keys out of a batch of reads, and returns them in the shape of `UnprocessedKeys`.
pub fn leave_out(request: &mut Value, some_of: impl Fn(usize) -> Vec<bool>) -> Value {
    let tables = request["RequestItems"].as_object_mut().expect("tables");
    let mut left_out = Map::new();
    let count = tables.values().map(|wanted| wanted["Keys"].as_array().map_or(0, Vec::len)).sum();
    let mut chosen = some_of(count).into_iter();
    for (table, wanted) in tables.iter_mut() {
        let keys = wanted["Keys"].as_array_mut().expect("keys");
        let out: Vec<_> = keys.extract_if(.., |_| chosen.next() == Some(true)).collect();
        if !out.is_empty() {
            let mut same = wanted.clone();
            same["Keys"] = Value::Array(out);
            left_out.insert(table.clone(), same);
        }
    }
    tables.retain(|_, wanted| wanted["Keys"].as_array().is_some_and(|keys| !keys.is_empty()));
    Value::Object(left_out)
}

/// Whether a request is a read that may be answered with an old state.
pub fn may_be_stale(operation: &str, body: &Value) -> bool {
    let consistent = |read: &Value| read["ConsistentRead"] == true;
    match operation {
        "BatchGetItem" => !body["RequestItems"].as_object().expect("tables").values().all(consistent),
        "TransactGetItems" => false,
        _ => is_read(operation) && !consistent(body),
    }
}
