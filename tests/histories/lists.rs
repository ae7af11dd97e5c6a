//! Histories of several lists: transactions read some of them and append to others, under every fault. A judge that knows
//! nothing of the protocol says whether this was serializable. The rules broken at the end show that it notices. Whether
//! each list alone is a register, with the versions shown, is judged in `programs`.

use super::history::{History, says_not_applied};
use super::scene::{self, Begun, STORM, rates, with_few_attempts, work_together};
use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Applied, Broken, Freezing, Rates, network_that_breaks};
use crate::harness::total::Total;
use fencepost::{Call, Error, Failure, Key, Reads, Record, Table, UpdateError};
use judges::cycles::{self, List, Told, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

const TABLE: &str = "Lists";
const KEY: &str = "id";
const LISTS: [List; 3] = ["x", "y", "z"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Entries {
    entries: Vec<u64>,
}

impl Entries {
    fn plus(&self, entry: u64) -> Self {
        Entries { entries: self.entries.iter().copied().chain([entry]).collect() }
    }
}

type Scene = scene::Scene<Broken, Operation>;

fn id(scene: &str, list: List) -> String {
    format!("{list}-{scene}")
}

/// A client's read of a list, and whether it appended to it.
#[derive(Clone, Debug)]
struct Touched {
    read: Vec<u64>,
    appended: bool,
}

/// One transaction, with the reads that its answer shows, otherwise those of its last decision.
#[derive(Clone, Debug)]
struct Operation {
    /// The element that it appends.
    number: u64,
    told: Told,
    lists: BTreeMap<List, Touched>,
}

struct Client {
    client: scene::Client<Broken, Operation>,
    table: Table<Entries>,
}

impl Client {
    fn new(scene: &Arc<Scene>, number: u64) -> Self {
        let client = scene::Client::new(scene, &scene.network, number);
        let table = client.open().with_policy(with_few_attempts()).table(TABLE);
        let table = if client.below(2) == 0 { table.remembering_items() } else { table };
        Client { client, table }
    }

    async fn work(self, turns: u64) {
        for _ in 0..turns {
            self.client.pause(60).await;
            let first = self.client.pick(LISTS.len());
            let (one, two) = (LISTS[first], LISTS[(first + 1 + self.client.pick(2)) % LISTS.len()]);
            let Begun { number, call, .. } = self.client.begin(3000);
            let lists = Mutex::default();
            let told = Freezing::new(&self.client.network, self.perform(number, one, two, &call, &lists)).await;
            let lists = lists.into_inner().expect("no panic");
            self.client.scene.note(Operation { number, told, lists });
        }
    }

    fn id(&self, list: List) -> String {
        id(&self.client.scene.name, list)
    }

    async fn perform(&self, number: u64, one: List, two: List, call: &Call, lists: &Noted) -> Told {
        match self.client.below(10) {
            0 | 1 => self.look(one, call, lists).await,
            2..=4 => self.append(number, one, call, lists).await,
            5 | 6 => self.transact(number, &[one, two], None, call, lists).await,
            _ => self.transact(number, &[one], Some(two), call, lists).await,
        }
    }

    async fn look(&self, list: List, call: &Call, lists: &Noted) -> Told {
        match self.table.in_call(call).get(self.id(list)).await {
            Ok(seen) => {
                let seen = seen.expect("nobody deletes a list");
                note(lists, list, Touched { read: seen.value.entries, appended: false });
                Told::Committed
            }
            Err(failure) => told_by(&failure),
        }
    }

    async fn append(&self, number: u64, list: List, call: &Call, lists: &Noted) -> Told {
        let append = |now: &Entries| {
            note(lists, list, Touched { read: now.entries.clone(), appended: true });
            now.plus(number)
        };
        match self.table.in_call(call).update_with_retry(self.id(list), append).await {
            Ok(written) => {
                // The answer counts, not the last decision.
                let mut read = written.value.entries;
                assert_eq!(read.pop(), Some(number), "told of an append that is not this one");
                note(lists, list, Touched { read, appended: true });
                Told::Committed
            }
            Err(UpdateError::Failed(failure)) => told_by(&failure),
            Err(other) => panic!("no such thing happens here: {other}"),
        }
    }

    /// Appends to some lists in one transaction, which depends on its reads in another list too.
    async fn transact(
        &self,
        number: u64,
        appends: &[List],
        reads_too: Option<List>,
        call: &Call,
        lists: &Noted,
    ) -> Told {
        let mut reads = Reads::new();
        let mut items = Vec::new();
        for list in appends.iter().copied().chain(reads_too) {
            let key = Key::from(self.id(list));
            let item = match self.client.below(2) {
                0 => reads.remembered(list, &self.table, &key),
                _ => reads.item(list, &self.table, &key),
            };
            items.push((list, item));
        }
        let store = self.table.store().in_call(call);
        let done = store.transact_with_retry(reads, |attempt| {
            let mut touched = BTreeMap::new();
            for &(list, item) in &items {
                let now = attempt.get(item)?.expect("nobody deletes a list");
                let appended = reads_too != Some(list);
                if appended {
                    attempt.update_at(item, &now.value.plus(number))?;
                } else if **self.client.scene != Broken::Unchecked {
                    attempt.check(item)?;
                }
                touched.insert(list, Touched { read: now.value.entries, appended });
            }
            lists.lock().expect("no panic").clone_from(&touched);
            Ok::<_, Error>(touched)
        });
        match done.await {
            Ok(touched) => {
                *lists.lock().expect("no panic") = touched;
                Told::Committed
            }
            Err(Error::Failed(failure)) => told_by(&failure),
        }
    }
}

type Noted = Mutex<BTreeMap<List, Touched>>;

fn note(lists: &Noted, list: List, touched: Touched) {
    lists.lock().expect("no panic").insert(list, touched);
}

fn told_by(failure: &Failure) -> Told {
    if says_not_applied(failure) { Told::NotCommitted } else { Told::Unknown }
}

/// Creates an empty list before the faults begin.
async fn create(engine: &Engine, scene: &str, list: List) {
    let table = store(&engine.client(), || SystemTime::UNIX_EPOCH, || 7).table::<Entries>(TABLE);
    table.create(id(scene, list), &Entries { entries: Vec::new() }).await.expect("a free key and no fault");
}

struct Lists {
    scene: String,
    done: Vec<Operation>,
    applied: Vec<Applied>,
}

impl History for Lists {
    const TABLES: &'static [(&'static str, &'static str)] = &[(TABLE, KEY)];
    const SAMPLE: u64 = 80;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = Rates { held: 60, second_copy: 80, transaction_conflict: 100, frozen: 20, ..STORM };
        let rates = rates(&mut rng, 1..=8, most);
        let (clients, turns) = (rng.u64(2..=5), rng.u64(2..=6));
        let network = network_that_breaks(engine, rates, broken, rng);
        let scene = Scene::new(seed, format!("{seed}-{broken:?}"), network, broken);
        for list in LISTS {
            create(engine, &scene.name, list).await;
        }
        work_together((0..clients).map(|number| Client::new(&scene, number).work(turns))).await;
        let applied = scene.network.applied().clone();
        Lists { scene: scene.name.clone(), done: scene.take_done(), applied }
    }

    fn violations(&self, engine: &Engine) -> Vec<String> {
        let transactions: Vec<_> = self.done.iter().map(transaction).collect();
        let last = LISTS.map(|list| (list, entries_of(&engine.row(TABLE, KEY, &id(&self.scene, list)))));
        let anomalies = cycles::anomalies(&transactions, &last);
        let found: Vec<_> = anomalies.iter().map(ToString::to_string).collect();
        found
    }

    fn total(&self) -> Total {
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|operation| such(operation)).count();
        let committed = |operation: &Operation, of: usize| {
            let appended = operation.lists.values().filter(|touched| touched.appended).count();
            operation.told == Told::Committed && appended == of
        };
        let has_landed = |operation: &Operation| self.applied.iter().any(|applied| applied.op == operation.number);
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

    fn assert_enough_happened(total: &Total) {
        let enough = total.least(&["looks", "appends", "appendsToTwo", "appendsThatRestOnAnother"]);
        assert!(enough > total["histories"], "little happened: {total}");
        assert!(total["toldNotCommitted"] > 0, "nobody gave up: {total}");
        total.assert_unknown_is_worth_its_name();
    }
}

fn entries_of(row: &Value) -> Vec<u64> {
    let entries = row["entries"]["L"].as_array().expect("a list");
    entries.iter().map(|entry| entry["N"].as_str().expect("a number").parse().expect("small")).collect()
}

fn transaction(operation: &Operation) -> Transaction {
    let read = operation.lists.iter().map(|(list, touched)| (*list, touched.read.clone())).collect();
    let appends = |(list, touched): (&List, &Touched)| touched.appended.then_some(*list);
    let appended = operation.lists.iter().filter_map(appends).collect();
    Transaction { name: operation.number, told: operation.told, read, appended }
}

#[test]
fn transactions_over_several_lists_are_serializable_under_every_fault() {
    Lists::holds();
}

#[test]
fn each_broken_rule_is_noticed() {
    Lists::notices(&[(Broken::Unchecked, 0..2000, cycles::WRITE_SKEW), (Broken::NoJudge, 0..2000, "double append")]);
}
