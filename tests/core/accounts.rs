//! The items of the tests of the crate alone: accounts, and leaders of whom the newest counts.

use crate::harness::engine::Engine;
use fencepost::lww::LwwRecord;
use fencepost::{Call, Deadline, Record};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
pub struct Account {
    pub balance: i64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "shard")]
pub struct Leader {
    pub term: u64,
    pub node: String,
}

impl LwwRecord for Leader {
    const ORDERED_BY: &'static str = "term";
    const NAMED_BY: &'static str = "node";
}

pub const TABLE: &str = "Accounts";

pub fn engine() -> Engine {
    Engine::with_tables(&[(TABLE, Account::PARTITION_KEY)])
}

pub fn call() -> Call {
    Call::new(Deadline::within(Duration::from_mins(1)))
}

/// Another program sets a balance, and does not raise the version.
pub fn set_balance(engine: &Engine, id: &str, balance: i64) {
    let request = json!({"TableName": TABLE, "Key": {"accountId": {"S": id}},
        "UpdateExpression": "SET balance = :balance",
        "ExpressionAttributeValues": {":balance": {"N": balance.to_string()}}});
    engine.raw("UpdateItem", &request);
}

/// Another client's committed write, between two of ours.
pub fn rival(engine: &Engine, id: &str) {
    let request = json!({
        "TableName": TABLE,
        "Key": {"accountId": {"S": id}},
        "UpdateExpression": "SET balance = balance + :one, #v = #v + :one",
        "ExpressionAttributeNames": {"#v": "_version"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    });
    engine.raw("UpdateItem", &request);
}
