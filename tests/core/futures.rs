//! The futures of all operations are `Send`, so that a multi-threaded runtime takes them. This is compiled and never run.
#![allow(dead_code, reason = "it is enough that this compiles")]

use super::accounts::Account;
use fencepost::idempotency::{Idempotency, IdempotencyClaim};
use fencepost::lww::{LwwTable, OrderKey};
use fencepost::{
    Call, Decision, FencingToken, ItemVersion, Key, Lease, LeaseTerms, Leases, LwwRecord, Plan, Reads, Record, Table,
    Transactions,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

fn is_send<T: Send>(_: T) {}

fn is_send_and_sync<T: Send + Sync + 'static>() {}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Leader {
    term: u64,
    node: String,
}

impl Record for Leader {
    const PARTITION_KEY: &'static str = "shard";
    const ATTRIBUTES: &'static [&'static str] = &["term", "node"];
}

impl LwwRecord for Leader {
    const ORDERED_BY: &'static str = "term";
    const NAMED_BY: &'static str = "node";
}

fn of_a_table(table: &Table<Account>, key: &Key, at: ItemVersion, call: &Call) {
    let decide = |account: &Account| Decision::<Account, String>::Put(account.clone());
    is_send(table.get(key, call));
    is_send(table.create(key, &Account { balance: 1 }, call));
    is_send(table.update_with_retry(key, call, decide));
    is_send(table.update_at_version(key, at, call, decide));
    is_send(table.delete(key, call));
    is_send(table.delete_at_version(key, at, call));
    is_send(table.add_within(key, "balance", 1, 0..=9, call));
}

fn of_many_items(transactions: &Transactions, once: &Idempotency<u64>, claim: &IdempotencyClaim, call: &Call) {
    is_send(transactions.transact_with_retry(Reads::new(), call, |_| Ok(Plan::<(), String>::Keep(()))));
    is_send(once.change(claim, Reads::new(), call, |_| Ok(Plan::<u64, String>::Keep(1))));
}

fn of_leases(leases: &Leases, token: &FencingToken, claim: &IdempotencyClaim, lease: Lease, call: &Call) {
    let terms = LeaseTerms::default();
    let mut renewed = lease.clone();
    is_send(leases.get("k", call));
    is_send(leases.stored("k", call));
    is_send(leases.acquire("k", "me", terms, call));
    is_send(leases.acquire_once("k", "me", terms, claim, call));
    is_send(leases.acquire_within("k", "me", terms, Duration::from_secs(1), call));
    is_send(leases.renew(&mut renewed, terms, call));
    is_send(leases.renew_at(token, None, terms, call));
    is_send(leases.release(lease, call));
    is_send(leases.release_at(token, None, call));
    is_send(leases.while_held("k", "me", terms, call, |_| async { 1 }));
}

fn of_the_newest(table: &LwwTable<Leader>, key: &Key, instance: &OrderKey, call: &Call) {
    is_send(table.get(key, call));
    is_send(table.register(key, &Leader { term: 1, node: "a".to_owned() }, call));
    is_send(table.delete(key, instance, call));
}

fn handles_go_between_threads() {
    is_send_and_sync::<fencepost::Store>();
    is_send_and_sync::<Table<Account>>();
    is_send_and_sync::<Transactions>();
    is_send_and_sync::<Idempotency<u64>>();
    is_send_and_sync::<Leases>();
    is_send_and_sync::<LwwTable<Leader>>();
    is_send_and_sync::<fencepost::Failure>();
}
