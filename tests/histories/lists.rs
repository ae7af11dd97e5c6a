//! Histories of several lists: transactions read some of them and append to others, under every fault. Judges that know
//! nothing of the protocol say whether this was serializable. The rules broken at the end show that each judge notices.

use super::history::{History, says_not_applied};
use super::scene::{self, Begun, STORM, rates, with_few_attempts, work_together};
use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Applied, Broken, Freezing, Rates, network_that_breaks};
use crate::harness::states::version;
use crate::harness::total::Total;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Call, Deadline, Error, Failure, ItemVersion, Key, Reads, Record, Table, UpdateError};
use judges::cycles::{self, List, Told, Transaction};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

const TABLE: &str = "Lists";
const KEY: &str = "id";
const LISTS: [List; 3] = ["x", "y", "z"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entries {
    entries: Vec<u64>,
}

impl Record for Entries {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["entries"];
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

/// A client's read of a list, and its append.
#[derive(Clone, Debug)]
struct Touched {
    read: Vec<u64>,
    /// The version that it read, if an answer showed it.
    at: Option<ItemVersion>,
    /// `None` if it only read.
    append: Option<Append>,
}

#[derive(Clone, Copy, Debug)]
struct Append {
    /// The version that the append makes, if an answer showed it.
    makes: Option<ItemVersion>,
}

/// One transaction, with the reads that its answer shows, otherwise those of its last decision.
#[derive(Clone, Debug)]
struct Operation {
    /// The element that it appends.
    number: u64,
    client: u64,
    began: Instant,
    ended: Instant,
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
            let Begun { number, began, call } = self.client.begin(3000);
            let lists = Mutex::default();
            let told = Freezing::new(&self.client.network, self.perform(number, one, two, &call, &lists)).await;
            let (client, ended, lists) = (self.client.number, Instant::now(), lists.into_inner().expect("no panic"));
            self.client.scene.note(Operation { number, client, began, ended, told, lists });
        }
    }

    fn id(&self, list: List) -> String {
        id(&self.client.scene.name, list)
    }

    fn broken(&self) -> Broken {
        **self.client.scene
    }

    async fn perform(&self, number: u64, one: List, two: List, call: &Call, lists: &Noted) -> Told {
        match (self.client.below(10), self.broken()) {
            (0 | 1, _) => self.look(one, call, lists).await,
            (2..=4, Broken::Blind) => self.overwrite(number, one, call, lists).await,
            (2..=4, _) => self.append(number, one, call, lists).await,
            (5 | 6, Broken::TakenBack) => self.append_and_take_back(number, one, two, call, lists).await,
            (5 | 6, _) => self.transact(number, &[one, two], None, call, lists).await,
            _ => self.transact(number, &[one], Some(two), call, lists).await,
        }
    }

    async fn look(&self, list: List, call: &Call, lists: &Noted) -> Told {
        match self.table.in_call(call).get(self.id(list)).await {
            Ok(seen) => {
                let seen = seen.expect("nobody deletes a list");
                let touched = Touched { read: seen.value.entries, at: Some(seen.at), append: None };
                note(lists, list, touched);
                Told::Committed
            }
            Err(failure) => told_by(&failure),
        }
    }

    async fn append(&self, number: u64, list: List, call: &Call, lists: &Noted) -> Told {
        let append = |now: &Entries| {
            let append = Some(Append { makes: None });
            note(lists, list, Touched { read: now.entries.clone(), at: None, append });
            now.plus(number)
        };
        match self.table.in_call(call).update_with_retry(self.id(list), append).await {
            Ok(written) => {
                // The answer counts, not the last decision.
                let mut read = written.value.entries;
                assert_eq!(read.pop(), Some(number), "told of an append that is not this one");
                note(lists, list, Touched { read, at: None, append: Some(Append { makes: Some(written.at) }) });
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
                let append = if reads_too == Some(list) {
                    if self.broken() != Broken::Unchecked {
                        attempt.check(item)?;
                    }
                    None
                } else {
                    Some(Append { makes: Some(attempt.update_at(item, &now.value.plus(number))?) })
                };
                touched.insert(list, Touched { read: now.value.entries, at: Some(now.at), append });
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

    /// Reads, pauses, and writes the result back.
    async fn overwrite(&self, number: u64, list: List, call: &Call, lists: &Noted) -> Told {
        let Ok(Some(seen)) = self.table.in_call(call).get(self.id(list)).await else { return Told::NotCommitted };
        sleep(Duration::from_millis(self.client.below(40))).await;
        let entries = seen.value.plus(number).entries;
        let append = Some(Append { makes: None });
        note(lists, list, Touched { read: seen.value.entries, at: Some(seen.at), append });
        let entries = entries.iter().map(|entry| AttributeValue::N(entry.to_string())).collect();
        let update = self.client.wire.client().update_item().table_name(TABLE);
        let update = update.key(KEY, AttributeValue::S(self.id(list)));
        let update = update.update_expression("SET entries = :entries ADD #version :one");
        let update = update.expression_attribute_names("#version", "_version");
        let update = update.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
        match update.expression_attribute_values(":entries", AttributeValue::L(entries)).send().await {
            Ok(_) => Told::Committed,
            Err(_) => Told::Unknown,
        }
    }

    /// Appends to one list and then to the other. If the second append fails, takes the first back.
    async fn append_and_take_back(&self, number: u64, one: List, two: List, call: &Call, lists: &Noted) -> Told {
        let told = self.append(number, one, call, lists).await;
        if told != Told::Committed {
            return told;
        }
        sleep(Duration::from_millis(self.client.below(40))).await;
        if self.client.below(2) == 0 {
            return self.append(number, two, call, lists).await;
        }
        let without = |now: &Entries| {
            let kept = now.entries.iter().copied().filter(|entry| *entry != number);
            Entries { entries: kept.collect() }
        };
        let long = Call::new(Deadline::within(Duration::from_mins(3)));
        let taken = self.table.in_call(&long).update_with_retry(self.id(one), without).await;
        if taken.is_ok() { Told::NotCommitted } else { Told::Unknown }
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

    /// The objections of the register judge to each list.
    fn judged(&self) -> Vec<String> {
        LISTS.iter().filter_map(|list| register::judge(Some(Vec::new()), self.seen(list)).err()).collect()
    }

    fn total(&self) -> Total {
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|operation| such(operation)).count();
        let committed = |operation: &Operation, of: usize| {
            let appended = operation.lists.values().filter(|touched| touched.append.is_some()).count();
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

impl Lists {
    /// The clients' view of one list.
    fn seen(&self, list: &List) -> Vec<SeenOf<Vec<u64>>> {
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
        self.done.iter().filter_map(of_list).collect()
    }
}

fn with(entries: &[u64], entry: u64) -> Vec<u64> {
    entries.iter().copied().chain([entry]).collect()
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

#[test]
fn transactions_over_several_lists_are_serializable_under_every_fault() {
    Lists::holds();
}

#[test]
fn each_broken_rule_is_noticed() {
    Lists::notices(&[
        (Broken::Unchecked, 0..2000, cycles::WRITE_SKEW),
        (Broken::Blind, 0..2000, "lost update"),
        (Broken::TakenBack, 0..2000, "dirty read"),
        (Broken::NoJudge, 0..2000, "double append"),
    ]);
}

#[test]
fn the_independent_judge_notices_broken_rules() {
    Lists::notices_by_the_judge(&[(Broken::Blind, 0..2000), (Broken::TakenBack, 0..2000), (Broken::NoJudge, 0..2000)]);
}
