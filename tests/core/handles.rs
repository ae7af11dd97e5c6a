//! The futures of all operations are `Send`, for a multi-threaded runtime, and small.
#![allow(dead_code, reason = "what is sent between threads is compiled and never run")]

use super::accounts::{Account, Leader, TABLE, engine};
use fencepost::http::{
    ChangeRequest, CreateRequest, DeleteRequest, IfMatch, IfNoneMatch, Items, Preconditions, Problem, Resource,
};
use fencepost::lease::{Lease, LeaseTerms, Leases};
use fencepost::lww::{LwwTable, OrderKey};
use fencepost::{
    Attempt, Edit, Error, FencingToken, Idempotency, IdempotencyClaim, ItemVersion, Key, Reads, Record, Store, Table,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

fn is_send<T: Send>(_: T) {}

fn is_send_and_sync<T: Send + Sync + 'static>() {}

fn of_a_table(table: &Table<Account>, key: &Key, at: ItemVersion, add: &Edit<Account>) {
    let decide = |account: &Account| Ok::<_, String>(Some(account.clone()));
    is_send(table.get(key));
    is_send(table.create(key, &Account { balance: 1 }));
    is_send(table.update_with_retry(key, decide));
    is_send(table.update_at_version(key, at, decide));
    is_send(table.delete(key));
    is_send(table.delete_at_version(key, at));
    is_send(table.edit(key, add));
}

fn of_a_check(store: &Store) {
    is_send(store.check::<Account>("Accounts"));
}

fn of_many_items(store: &Store, once: &Idempotency<u64>, claim: &IdempotencyClaim) {
    is_send(store.transact_with_retry(Reads::new(), |_| Ok::<_, Error<String>>(())));
    is_send(once.change(claim, Reads::new(), |_| Ok::<_, Error<String>>(1)));
}

fn of_leases(leases: &Leases, token: &FencingToken, claim: &IdempotencyClaim, lease: Lease) {
    let terms = LeaseTerms::default();
    let mut renewed = lease.clone();
    is_send(leases.get("k"));
    is_send(leases.stored("k"));
    is_send(leases.acquire("k", "me", terms));
    is_send(leases.acquire_once("k", "me", terms, claim));
    is_send(leases.acquire_within("k", "me", terms, Duration::from_secs(1)));
    is_send(leases.renew(&mut renewed, terms));
    is_send(leases.renew_at(token, None, terms));
    is_send(leases.release(lease));
    is_send(leases.release_at(token, None));
    is_send(leases.while_held("k", "me", terms, |_| async { 1 }));
    is_send(leases.campaign("k", "me", terms, async {}, |_| async { 1 }));
    is_send(leases.hold("k", "me", terms, Duration::ZERO));
}

fn of_the_newest(table: &LwwTable<Leader>, key: &Key, instance: &OrderKey) {
    is_send(table.get(key));
    is_send(table.register(key, &Leader { term: 1, node: "a".to_owned() }));
    is_send(table.delete(key, instance));
}

fn of_http_items(items: &Items<Room>, create: &CreateRequest, change: &ChangeRequest, delete: DeleteRequest) {
    let preconditions = Preconditions { if_match: IfMatch::None, if_none_match: IfNoneMatch::None };
    let decide = |room: &Room| Ok::<_, Problem>(Some(room.clone()));
    is_send(items.get("a", &preconditions));
    is_send(items.create("a", &Room { seats: 1 }, create));
    is_send(items.change("a", change, decide));
    is_send(items.delete("a", delete));
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "roomId")]
struct Room {
    seats: u64,
}

impl Resource for Room {
    const NOT_FOUND: (&'static str, &'static str) = ("room_not_found", "there is no such room");

    fn location(&self, id: &str) -> String {
        format!("/rooms/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> impl Serialize {
        json!({ "roomId": id, "seats": self.seats, "version": at.version.get() })
    }
}

fn handles_go_between_threads() {
    is_send_and_sync::<Store>();
    is_send_and_sync::<Table<Account>>();
    is_send_and_sync::<Idempotency<u64>>();
    is_send_and_sync::<Leases>();
    is_send_and_sync::<LwwTable<Leader>>();
    is_send_and_sync::<fencepost::Failure>();
}

/// The SDK's futures take kilobytes, and nested in a caller's futures they overflow the compiler and small stacks.
#[test]
fn futures_are_small() {
    let store = Store::new(&engine().client());
    let (table, leases, key) = (store.table::<Account>(TABLE), store.leases("Leases"), Key::from("a"));
    let decide = |account: &Account| Ok::<_, String>(Some(account.clone()));
    let nothing = |_: &mut Attempt| Ok::<_, Error<String>>(());
    for (operation, bytes) in [
        ("get", size_of_val(&table.get(&key))),
        ("update_with_retry", size_of_val(&table.update_with_retry(&key, decide))),
        ("transact_with_retry", size_of_val(&store.transact_with_retry(Reads::new(), nothing))),
        ("acquire", size_of_val(&leases.acquire("k", "me", LeaseTerms::default()))),
        ("while_held", size_of_val(&leases.while_held("k", "me", LeaseTerms::default(), |_| async {}))),
    ] {
        assert!(bytes < 8 * 1024, "{operation} takes {bytes} bytes");
    }
}
