//! One client that reads lists and appends to them, over a wire of its own.

use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Broken, Freezing, Network, Wire, store_on};
use crate::harness::off::OffClocks;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Call, Deadline, Error, Failure, ItemVersion, Key, Reads, Record, RetryPolicy, Table, UpdateError};
use judges::cycles::{List, Told};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

pub const TABLE: &str = "Lists";
pub const KEY: &str = "id";
pub const LISTS: [List; 3] = ["x", "y", "z"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entries {
    pub entries: Vec<u64>,
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

/// Which rule is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// By what the wire does to requests and answers; `Broken::Nothing` for none.
    Wire(Broken),
    /// A transaction does not check what it only reads.
    Unchecked,
    /// What is to change as one is changed one after the other, and sometimes taken back.
    TakenBack,
    /// What was made of a list replaces it, whatever it is by then.
    Blind,
}

/// What the clients of one history share.
pub struct Scene {
    /// No other history has it.
    pub name: String,
    pub rule: Rule,
    pub numbers: AtomicU64,
    pub clocks: OffClocks,
    pub done: Mutex<Vec<Operation>>,
}

impl Scene {
    pub fn key(&self, list: List) -> String {
        format!("{list}-{}", self.name)
    }
}

/// What a client read of a list, and what it made of that.
#[derive(Clone, Debug)]
pub struct Touched {
    pub read: Vec<u64>,
    /// The version that it read, if that was told.
    pub at: Option<ItemVersion>,
    /// `None` if it only read.
    pub append: Option<Append>,
}

/// What an append makes of a list.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    /// The version, if that was told.
    pub makes: Option<ItemVersion>,
}

/// One transaction, by what it was told that it rested on. Where it was told nothing, by what its last decision rested on.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it appends.
    pub number: u64,
    pub client: u64,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
    pub lists: BTreeMap<List, Touched>,
}

pub struct Client {
    scene: Arc<Scene>,
    network: Arc<Network>,
    number: u64,
    wire: Wire,
    table: Table<Entries>,
}

impl Client {
    pub fn new(scene: &Arc<Scene>, network: &Arc<Network>, number: u64) -> Self {
        let clock = scene.clocks.draw();
        let wire = clock.wire(network);
        let mut policy = RetryPolicy::default();
        policy.max_attempts = 12;
        let now = move || clock.now(Duration::from_hours(500_000));
        let table = store_on(network, &wire.client(), now).with_policy(policy).table(TABLE);
        let table = if network.below(2) == 0 { table.remembering_items() } else { table };
        Client { scene: scene.clone(), network: network.clone(), number, wire, table }
    }

    pub async fn work(self, turns: u64) {
        for _ in 0..turns {
            sleep(Duration::from_millis(self.network.below(60))).await;
            let first = self.below(LISTS.len());
            let (one, two) = (LISTS[first], LISTS[(first + 1 + self.below(2)) % LISTS.len()]);
            let number = self.scene.numbers.fetch_add(1, Relaxed);
            self.wire.works_on(number);
            let began = Instant::now();
            let call = Call::new(Deadline::within(Duration::from_millis(200 + self.network.below(3000))));
            let lists = Mutex::default();
            let told = Freezing::new(&self.network, self.perform(number, one, two, &call, &lists)).await;
            let lists = lists.into_inner().expect("no panic");
            let operation = Operation { number, client: self.number, began, ended: Instant::now(), told, lists };
            self.scene.done.lock().expect("no panic").push(operation);
        }
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.network.below(u64::try_from(bound).expect("small"))).expect("small")
    }

    fn key(&self, list: List) -> Key {
        Key::from(self.scene.key(list).as_str())
    }

    async fn perform(&self, number: u64, one: List, two: List, call: &Call, lists: &Lists) -> Told {
        match (self.below(10), self.scene.rule) {
            (0 | 1, _) => self.look(one, call, lists).await,
            (2..=4, Rule::Blind) => self.overwrite(number, one, call, lists).await,
            (2..=4, _) => self.append(number, one, call, lists).await,
            (5 | 6, Rule::TakenBack) => self.append_and_take_back(number, one, two, call, lists).await,
            (5 | 6, _) => self.transact(number, &[one, two], None, call, lists).await,
            _ => self.transact(number, &[one], Some(two), call, lists).await,
        }
    }

    async fn look(&self, list: List, call: &Call, lists: &Lists) -> Told {
        match self.table.in_call(call).get(&self.key(list)).await {
            Ok(seen) => {
                let seen = seen.expect("nobody deletes a list");
                let touched = Touched { read: seen.value.entries, at: Some(seen.at), append: None };
                note(lists, list, touched);
                Told::Committed
            }
            Err(failure) => told_by(&failure),
        }
    }

    async fn append(&self, number: u64, list: List, call: &Call, lists: &Lists) -> Told {
        let append = |now: &Entries| {
            let append = Some(Append { makes: None });
            note(lists, list, Touched { read: now.entries.clone(), at: None, append });
            Ok::<_, Infallible>(Some(now.plus(number)))
        };
        match self.table.in_call(call).update_with_retry(&self.key(list), append).await {
            Ok(written) => {
                // What was told counts, and not the last decision.
                let mut read = written.value.entries;
                assert_eq!(read.pop(), Some(number), "told of an append that is not this one");
                note(lists, list, Touched { read, at: None, append: Some(Append { makes: Some(written.at) }) });
                Told::Committed
            }
            Err(UpdateError::Failed(failure)) => told_by(&failure),
            Err(other) => panic!("no such thing happens here: {other}"),
        }
    }

    /// Appends to some lists in one transaction, which rests on what it read in another one too.
    async fn transact(
        &self,
        number: u64,
        appends: &[List],
        reads_too: Option<List>,
        call: &Call,
        lists: &Lists,
    ) -> Told {
        let mut reads = Reads::new();
        let mut items = Vec::new();
        for list in appends.iter().copied().chain(reads_too) {
            let key = self.key(list);
            let item = match self.below(2) {
                0 => reads.remembered(list, &self.table, &key),
                _ => reads.item(list, &self.table, &key),
            };
            items.push((list, item));
        }
        let transactions = self.table.store().transactions();
        let transactions = transactions.in_call(call);
        let done = transactions.transact_with_retry(reads, |attempt| {
            let mut touched = BTreeMap::new();
            for &(list, item) in &items {
                let now = attempt.get(item)?.expect("nobody deletes a list");
                let append = if reads_too == Some(list) {
                    if self.scene.rule != Rule::Unchecked {
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

    /// Reads, thinks, and writes what it made of what it read.
    async fn overwrite(&self, number: u64, list: List, call: &Call, lists: &Lists) -> Told {
        let Ok(Some(seen)) = self.table.in_call(call).get(&self.key(list)).await else { return Told::NotCommitted };
        sleep(Duration::from_millis(self.network.below(40))).await;
        let entries = seen.value.plus(number).entries;
        let append = Some(Append { makes: None });
        note(lists, list, Touched { read: seen.value.entries, at: Some(seen.at), append });
        let entries = entries.iter().map(|entry| AttributeValue::N(entry.to_string())).collect();
        let update = self.wire.client().update_item().table_name(TABLE);
        let update = update.key(KEY, AttributeValue::S(self.scene.key(list)));
        let update = update.update_expression("SET entries = :entries ADD #version :one");
        let update = update.expression_attribute_names("#version", "_version");
        let update = update.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
        match update.expression_attribute_values(":entries", AttributeValue::L(entries)).send().await {
            Ok(_) => Told::Committed,
            Err(_) => Told::Unknown,
        }
    }

    /// Appends to one list and then to the other. Where that does not work out, takes the first back.
    async fn append_and_take_back(&self, number: u64, one: List, two: List, call: &Call, lists: &Lists) -> Told {
        let told = self.append(number, one, call, lists).await;
        if told != Told::Committed {
            return told;
        }
        sleep(Duration::from_millis(self.network.below(40))).await;
        if self.below(2) == 0 {
            return self.append(number, two, call, lists).await;
        }
        let without = |now: &Entries| {
            let kept = now.entries.iter().copied().filter(|entry| *entry != number);
            Ok::<_, Infallible>(Some(Entries { entries: kept.collect() }))
        };
        let long = Call::new(Deadline::within(Duration::from_mins(3)));
        let taken = self.table.in_call(&long).update_with_retry(&self.key(one), without).await;
        if taken.is_ok() { Told::NotCommitted } else { Told::Unknown }
    }
}

type Lists = Mutex<BTreeMap<List, Touched>>;

fn note(lists: &Lists, list: List, touched: Touched) {
    lists.lock().expect("no panic").insert(list, touched);
}

fn told_by(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } | Failure::Rejected { .. } => Told::NotCommitted,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        _ => panic!("no such thing happens here: {failure}"),
    }
}

/// Creates an empty list before anything goes wrong.
pub async fn create(engine: &Engine, scene: &Scene, list: List) {
    let table = store(&engine.client(), || SystemTime::UNIX_EPOCH, || 7).table::<Entries>(TABLE);
    let key = Key::from(scene.key(list).as_str());
    table.create(&key, &Entries { entries: Vec::new() }).await.expect("a free key and no fault");
}
