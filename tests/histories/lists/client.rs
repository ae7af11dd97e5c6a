//! One client that reads lists and appends to them, over a wire of its own.

use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Broken, Freezing};
use crate::histories::scene::{self, Begun, patient};
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Call, Deadline, Error, Failure, ItemVersion, Key, Reads, Record, Table, UpdateError};
use judges::cycles::{List, Told};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
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

/// The rule that is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// On the wire. `Broken::Nothing` breaks no rule.
    Wire(Broken),
    /// A transaction does not check the items that it only reads.
    Unchecked,
    /// The appends of a transaction are made one after the other, and sometimes taken back.
    TakenBack,
    /// A result replaces the list without a condition.
    Blind,
}

pub type Scene = scene::Scene<Rule, Operation>;

pub fn id(scene: &str, list: List) -> String {
    format!("{list}-{scene}")
}

/// A client's read of a list, and its append.
#[derive(Clone, Debug)]
pub struct Touched {
    pub read: Vec<u64>,
    /// The version that it read, if an answer showed it.
    pub at: Option<ItemVersion>,
    /// `None` if it only read.
    pub append: Option<Append>,
}

#[derive(Clone, Copy, Debug)]
pub struct Append {
    /// The version that the append makes, if an answer showed it.
    pub makes: Option<ItemVersion>,
}

/// One transaction, with the reads that its answer shows, otherwise those of its last decision.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The element that it appends.
    pub number: u64,
    pub client: u64,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
    pub lists: BTreeMap<List, Touched>,
}

pub struct Client {
    client: scene::Client<Rule, Operation>,
    table: Table<Entries>,
}

impl Client {
    pub fn new(scene: &Arc<Scene>, number: u64) -> Self {
        let client = scene::Client::new(scene, &scene.network, number);
        let table = client.open().with_policy(patient()).table(TABLE);
        let table = if client.below(2) == 0 { table.remembering_items() } else { table };
        Client { client, table }
    }

    pub async fn work(self, turns: u64) {
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

    fn rule(&self) -> Rule {
        **self.client.scene
    }

    async fn perform(&self, number: u64, one: List, two: List, call: &Call, lists: &Lists) -> Told {
        match (self.client.below(10), self.rule()) {
            (0 | 1, _) => self.look(one, call, lists).await,
            (2..=4, Rule::Blind) => self.overwrite(number, one, call, lists).await,
            (2..=4, _) => self.append(number, one, call, lists).await,
            (5 | 6, Rule::TakenBack) => self.append_and_take_back(number, one, two, call, lists).await,
            (5 | 6, _) => self.transact(number, &[one, two], None, call, lists).await,
            _ => self.transact(number, &[one], Some(two), call, lists).await,
        }
    }

    async fn look(&self, list: List, call: &Call, lists: &Lists) -> Told {
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

    async fn append(&self, number: u64, list: List, call: &Call, lists: &Lists) -> Told {
        let append = |now: &Entries| {
            let append = Some(Append { makes: None });
            note(lists, list, Touched { read: now.entries.clone(), at: None, append });
            Ok::<_, Infallible>(Some(now.plus(number)))
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
        lists: &Lists,
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
                    if self.rule() != Rule::Unchecked {
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
    async fn overwrite(&self, number: u64, list: List, call: &Call, lists: &Lists) -> Told {
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
    async fn append_and_take_back(&self, number: u64, one: List, two: List, call: &Call, lists: &Lists) -> Told {
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
            Ok::<_, Infallible>(Some(Entries { entries: kept.collect() }))
        };
        let long = Call::new(Deadline::within(Duration::from_mins(3)));
        let taken = self.table.in_call(&long).update_with_retry(self.id(one), without).await;
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

/// Creates an empty list before the faults begin.
pub async fn create(engine: &Engine, scene: &str, list: List) {
    let table = store(&engine.client(), || SystemTime::UNIX_EPOCH, || 7).table::<Entries>(TABLE);
    table.create(id(scene, list), &Entries { entries: Vec::new() }).await.expect("a free key and no fault");
}
