//! The data of these tests: accounts, and changes of them by other programs.

use crate::harness::engine::{Engine, number};
use crate::harness::states::{set, set_by_another};
use fencepost::{Call, Deadline, Record, Rng, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
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

/// Another program sets a balance without a new version.
pub fn set_balance(engine: &Engine, id: &str, balance: i64) {
    set(engine, TABLE, id, &[("balance", json!({"N": balance.to_string()}))]);
}

/// Another client's committed write, between two of ours.
pub fn rival(engine: &Engine, id: &str) {
    let balance = json!({"N": (balance(engine, id) + 1).to_string()});
    set_by_another(engine, TABLE, id, &[("balance", balance)]);
}

/// Random numbers with which a change goes again at once after its first lost race, or else looks first.
pub fn chance(goes_at_once: bool) -> Rng {
    let next = AtomicU64::new(1);
    Rng::new(move || 10 * next.fetch_add(1, Relaxed) + if goes_at_once { 0 } else { 9 })
}
