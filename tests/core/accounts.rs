//! The data of these tests: accounts, and changes of them by other programs.

use crate::harness::engine::{Engine, number};
use fencepost::{Call, Deadline, Record, Rng, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
pub struct Account {
    pub balance: i64,
}

pub fn add_one(account: &Account) -> Account {
    Account { balance: account.balance + 1 }
}

pub const TABLE: &str = "Accounts";

pub fn engine() -> Engine {
    Engine::with_tables(&[(TABLE, Account::PARTITION_KEY)])
}

pub fn call() -> Call {
    Call::new(Deadline::within(Duration::from_mins(1)))
}

/// The accounts of these ids with 50 each. No test uses the client that makes them.
pub async fn with_accounts(engine: &Engine, ids: &[&str]) {
    let accounts: Table<Account> = Store::new(&engine.client()).table(TABLE);
    for id in ids {
        accounts.create(*id, &Account { balance: 50 }).await.expect("a free key");
    }
    engine.take_log();
}

pub fn balance(engine: &Engine, id: &str) -> i64 {
    number(&engine.row(TABLE, "accountId", id), "balance")
}

/// An update by another program. In its expression, `#v` is the version, `#w` the memory and `#p` the end of a tombstone,
/// `#given` and `#served` are the numbers of the line.
pub fn change(engine: &Engine, table: &str, key: &Value, expression: &str, values: &Value) {
    let mut request = json!({"TableName": table, "Key": key, "UpdateExpression": expression,
        "ExpressionAttributeValues": values});
    let names =
        [("#v", "_version"), ("#w", "_writes"), ("#p", "_purgeAt"), ("#given", "_given"), ("#served", "_served")];
    for (name, attribute) in names {
        if expression.contains(name) {
            request["ExpressionAttributeNames"][name] = json!(attribute);
        }
    }
    engine.raw("UpdateItem", &request);
}

fn change_account(engine: &Engine, id: &str, expression: &str, number: i64) {
    let values = json!({":n": {"N": number.to_string()}});
    change(engine, TABLE, &json!({"accountId": {"S": id}}), expression, &values);
}

/// Another program sets a balance without a new version.
pub fn set_balance(engine: &Engine, id: &str, balance: i64) {
    change_account(engine, id, "SET balance = :n", balance);
}

/// Another client's committed write, between two of ours.
pub fn rival(engine: &Engine, id: &str) {
    change_account(engine, id, "SET balance = balance + :n, #v = #v + :n", 1);
}

/// Random numbers with which a change goes again at once after its first lost race, or else looks first.
pub fn chance(goes_at_once: bool) -> Rng {
    let next = AtomicU64::new(1);
    Rng::new(move || 10 * next.fetch_add(1, Relaxed) + if goes_at_once { 0 } else { 9 })
}
