//! What does not hold in a history of lists, by the judge of cycles and by that of single registers.

use super::client::{KEY, LISTS, Operation, Scene, TABLE, Touched};
use crate::harness::engine::Engine;
use crate::harness::faults::Applied;
use crate::harness::states::version;
use crate::histories::total::Total;
use fencepost::ItemVersion;
use judges::cycles::{self, List, Told, Transaction};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

pub const TOLD_ANOTHER: &str = "told a list that was never stored at its version";

/// A history that is over: all copies have arrived.
pub struct Ended {
    pub scene: Arc<Scene>,
    pub done: Vec<Operation>,
    pub applied: Vec<Applied>,
}

/// What does not hold; each in a sentence.
pub fn violations(engine: &Engine, ended: &Ended) -> Vec<String> {
    let transactions: Vec<_> = ended.done.iter().map(transaction).collect();
    let last = LISTS.map(|list| (list, entries(engine, &ended.scene.key(list))));
    let anomalies = cycles::anomalies(&transactions, &last);
    let mut found: Vec<_> = anomalies.iter().map(ToString::to_string).collect();
    found.extend(ended.done.iter().filter_map(|operation| told_another(ended, operation)));
    found
}

/// What a committed transaction was told with a version, where the list never had that at this version.
fn told_another(ended: &Ended, operation: &Operation) -> Option<String> {
    let committed = operation.lists.iter().filter(|_| operation.told == Told::Committed);
    let told = committed.flat_map(|(list, Touched { read, at, append })| {
        let made = append.and_then(|append| append.makes).map(|at| (at, with(read, operation.number)));
        [at.map(|at| (at, read.clone())), made].into_iter().flatten().map(move |told| (*list, told))
    });
    let mut never = told.filter(|(list, (at, entries))| !had(ended, &ended.scene.key(list), *at, entries));
    never.next().map(|never| format!("{TOLD_ANOTHER}: {never:?} of {operation:?}"))
}

/// Whether a list had these entries at this version. It began without any.
fn had(ended: &Ended, key: &str, at: ItemVersion, entries: &[u64]) -> bool {
    let rows = ended.applied.iter().filter_map(|applied| applied.left_in(TABLE, key));
    let mut at_version = rows.filter(|row| row["_version"]["N"] == at.version.get().to_string().as_str());
    at_version.any(|row| entries_of(row) == entries) || (at.version.get() == 1 && entries.is_empty())
}

fn with(entries: &[u64], entry: u64) -> Vec<u64> {
    entries.iter().copied().chain([entry]).collect()
}

/// What the judge of registers says against each list.
pub fn judged(ended: &Ended) -> Vec<String> {
    LISTS.iter().filter_map(|list| register::judge(Some(Vec::new()), seen(ended, list)).err()).collect()
}

/// A list as it is stored.
fn entries(engine: &Engine, key: &str) -> Vec<u64> {
    entries_of(&engine.row(TABLE, KEY, key))
}

fn entries_of(row: &Value) -> Vec<u64> {
    let entries = row["entries"]["L"].as_array().expect("a list");
    entries.iter().map(|entry| entry["N"].as_str().expect("a number").parse().expect("small")).collect()
}

fn transaction(operation: &Operation) -> Transaction {
    let read = operation.lists.iter().map(|(list, touched)| (*list, touched.read.clone())).collect();
    let appends = |(list, touched): (&List, &Touched)| touched.append.map(|_| *list);
    let appended = operation.lists.iter().filter_map(appends).collect();
    Transaction { name: operation.number, told: operation.told, read, appended }
}

/// What the clients saw of one list.
fn seen(ended: &Ended, list: &List) -> Vec<SeenOf<Vec<u64>>> {
    let of_list = |operation: &Operation| {
        let Touched { read, at, append } = operation.lists.get(list)?.clone();
        let Operation { number, client, began, ended, told, .. } = *operation;
        let op = match append {
            None => Op::Read,
            Some(_) => Op::CompareAndSet { to: with(&read, number), from: read.clone() },
        };
        let told = match (told, append) {
            (Told::NotCommitted, _) | (Told::Unknown, None) => return None,
            (Told::Unknown, Some(_)) => None,
            (Told::Committed, None) => Some(register::Told::Saw(Some(Shown { value: read, at: at.map(version) }))),
            (Told::Committed, Some(append)) => Some(register::Told::Done(append.makes.map(version))),
        };
        let [began, ended] = [began, ended].map(Instant::into_std);
        Some(Seen { client, began, ended, op, told })
    };
    ended.done.iter().filter_map(of_list).collect()
}

/// What a history that holds was made of.
pub fn total(ended: &Ended) -> Total {
    let count = |such: &dyn Fn(&Operation) -> bool| ended.done.iter().filter(|operation| such(operation)).count();
    let committed = |operation: &Operation, of: usize| {
        let appended = operation.lists.values().filter(|touched| touched.append.is_some()).count();
        operation.told == Told::Committed && appended == of
    };
    let has_landed = |operation: &Operation| ended.applied.iter().any(|applied| applied.op == operation.number);
    Total::of(&[
        ("looks", count(&|operation| committed(operation, 0))),
        ("appends", count(&|operation| committed(operation, 1))),
        ("appendsToTwo", count(&|operation| committed(operation, 2))),
        ("appendsThatRestOnAnother", count(&|o| committed(o, 1) && o.lists.len() == 2)),
        ("toldNotCommitted", count(&|operation| operation.told == Told::NotCommitted)),
        ("unknown", count(&|operation| operation.told == Told::Unknown)),
        ("unknownThatLanded", count(&|operation| operation.told == Told::Unknown && has_landed(operation))),
    ])
}

pub fn assert_enough_happened(total: &Total) {
    let enough = total.least(&["looks", "appends", "appendsToTwo", "appendsThatRestOnAnother"]);
    assert!(enough > total["histories"], "little happened: {total}");
    assert!(total["toldNotCommitted"] > 0, "nobody gave up: {total}");
    total.assert_unknown_is_worth_its_name();
}
