//! Histories: writers, a deleter-and-recreator and every fault at once, and what must hold after each.
//!
//! `FENCEPOST_HISTORIES=10000` says how many (a plain `cargo test` runs a sample), `FENCEPOST_SEED=7` replays one.

use crate::harness::engine::Engine;
use crate::harness::faults::{Applied, Broken, Freezing, Network, Rates, Wire};
use crate::harness::seeds::{self, Broke};
use fencepost::error::{CreateError, DeleteError, UpdateError, VersionedUpdateError};
use fencepost::{Call, Deadline, Decision, Failure, ItemVersion, Key, Record, RetryPolicy, Table, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

const TABLE: &str = "Ledgers";

/// Every change leaves the number of its operation, so that one applied twice is seen in the value itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ledger {
    operations: Vec<u64>,
}

impl Record for Ledger {
    const PARTITION_KEY: &'static str = "id";
    const ATTRIBUTES: &'static [&'static str] = &["operations"];
}

/// What an operation was told.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    /// Applied, and this is the state that it left.
    Applied(ItemVersion),
    /// Not applied, and nothing is claimed about the row.
    NotApplied,
    /// Not applied (or only read); this was the row's state at some moment of the call.
    Saw(ItemVersion),
    /// Not applied (or only read); at some moment of the call nothing was there.
    SawNothing,
    /// Nobody knows.
    Unknown,
}

#[derive(Debug)]
struct Operation {
    number: u64,
    what: &'static str,
    began: Instant,
    ended: Instant,
    told: Told,
}

fn by_failure(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } | Failure::Rejected { .. } => Told::NotApplied,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        _ => panic!("no such thing happens here: {failure}"),
    }
}

fn at<T>(versioned: &Versioned<T>) -> Told {
    Told::Saw(versioned.at)
}

/// One client: its own SDK client, table handle and wire.
struct Writer {
    table: Table<Ledger>,
    wire: Wire,
    network: Arc<Network>,
    numbers: Arc<AtomicU64>,
    done: Arc<Mutex<Vec<Operation>>>,
    key: String,
    known: Option<ItemVersion>,
}

impl Writer {
    fn new(
        network: &Arc<Network>,
        key: &str,
        numbers: &Arc<AtomicU64>,
        done: &Arc<Mutex<Vec<Operation>>>,
        start: Instant,
    ) -> Self {
        let wire = Wire::new(network);
        let base = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let mut policy = RetryPolicy::default();
        policy.max_attempts = 12;
        let store = network.store(&wire.client(), move || base + start.elapsed()).with_policy(policy);
        let table = store.table(TABLE);
        let (network, numbers, done) = (network.clone(), numbers.clone(), done.clone());
        Writer { table, wire, network, numbers, done, key: key.to_owned(), known: None }
    }

    async fn work(mut self, operations: u64, deletes: bool) {
        for turn in 0..operations {
            sleep(Duration::from_millis(self.network.below(60))).await;
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            self.wire.works_on(number);
            let drawn = self.network.below(10);
            let what = match (deletes, drawn) {
                (true, _) if turn % 2 == 1 => "create",
                (true, 0..=6) => "delete at version",
                (true, _) => "delete",
                (false, 0..=6) => "update",
                (false, 7..=8) => "update at version",
                (false, _) => "get",
            };
            let began = Instant::now();
            let network = self.network.clone();
            let told = Freezing::new(&network, self.perform(what, number)).await;
            let operation = Operation { number, what, began, ended: Instant::now(), told };
            self.done.lock().expect("no panic").push(operation);
        }
    }

    async fn perform(&mut self, what: &str, number: u64) -> Told {
        let key = Key::from(self.key.as_str());
        let call = Call::new(Deadline::within(Duration::from_millis(200 + self.network.below(3000))));
        let append = |ledger: &Ledger| {
            let mut next = ledger.clone();
            next.operations.push(number);
            Decision::<Ledger, ()>::Put(next)
        };
        let told = match what {
            "update" => match self.table.update_with_retry(&key, &call, append).await {
                Ok(written) => Told::Applied(written.at),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Refused(())) => unreachable!("the decision never refuses"),
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
            "get" => match self.table.get(&key, &call).await {
                Ok(Some(current)) => at(&current),
                Ok(None) => Told::SawNothing,
                Err(failure) => by_failure(&failure),
            },
            "create" => {
                let value = Ledger { operations: vec![number] };
                match self.table.create(&key, &value, &call).await {
                    Ok(written) => Told::Applied(written.at),
                    Err(CreateError::Exists(current)) => at(&current),
                    Err(CreateError::Failed(failure)) => by_failure(&failure),
                }
            }
            "update at version" => {
                let Some(known) = self.known_version(&key, &call).await else { return Told::NotApplied };
                match self.table.update_at_version(&key, known, &call, append).await {
                    Ok(written) => Told::Applied(written.at),
                    Err(VersionedUpdateError::NotFound) => Told::SawNothing,
                    Err(VersionedUpdateError::Conflict(current)) => at(&current),
                    Err(VersionedUpdateError::Refused(())) => unreachable!("the decision never refuses"),
                    Err(VersionedUpdateError::Failed(failure)) => by_failure(&failure),
                }
            }
            "delete at version" => {
                let Some(known) = self.known_version(&key, &call).await else { return Told::NotApplied };
                deleted(known, self.table.delete_at_version(&key, known, &call).await)
            }
            _ => match self.table.delete(&key, &call).await {
                // Which state it deleted is its own affair; the timeline knows the incarnation.
                Ok(version) => {
                    let incarnation = self.incarnation_of(version.get());
                    Told::Applied(ItemVersion { version, incarnation })
                }
                Err(error) => deleted_not(error),
            },
        };
        if let Told::Applied(at) | Told::Saw(at) = &told {
            self.known = Some(*at);
        }
        told
    }

    async fn known_version(&self, key: &Key, call: &Call) -> Option<ItemVersion> {
        match self.known {
            Some(known) => Some(known),
            None => self.table.get(key, call).await.ok().flatten().map(|current| current.at),
        }
    }

    fn incarnation_of(&self, version: u64) -> fencepost::Incarnation {
        let applied = self.network.applied.lock().expect("no panic");
        let number = version.to_string();
        let same = |applied: &&Applied| applied.row()["_version"]["N"].as_str() == Some(&number);
        state_of(applied.iter().rev().find(same).expect("a delete that was told applied was applied").row())
            .expect("a row")
            .incarnation
    }
}

fn deleted(known: ItemVersion, result: Result<fencepost::Version, DeleteError<Ledger>>) -> Told {
    match result {
        Ok(version) => Told::Applied(ItemVersion { version, ..known }),
        Err(error) => deleted_not(error),
    }
}

fn deleted_not(error: DeleteError<Ledger>) -> Told {
    match error {
        DeleteError::NotFound => Told::SawNothing,
        DeleteError::Conflict(current) => at(&current),
        DeleteError::Failed(failure) => by_failure(&failure),
    }
}

/// The state that a stored row is in; `None` for no row and for a tombstone's reader.
fn state_of(row: &Value) -> Option<ItemVersion> {
    let version = row["_version"]["N"].as_str()?.parse().ok().and_then(fencepost::Version::new)?;
    let base64 = row["_incarnation"]["B"].as_str()?;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&aws_smithy_types::base64::decode(base64).ok()?);
    Some(ItemVersion { version, incarnation: fencepost::Incarnation::from_bytes(bytes) })
}

fn is_live(row: &Value) -> bool {
    row.is_object() && row.get("_purgeAt").is_none()
}

/// What histories were made of, added up: a run in which something never happened shows little.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    histories: usize,
    requests: usize,
    commits: usize,
    told_applied: usize,
    told_not_applied: usize,
    told_unknown: usize,
    unknown_that_landed: usize,
}

impl std::ops::AddAssign for Total {
    fn add_assign(&mut self, more: Total) {
        self.histories += more.histories;
        self.requests += more.requests;
        self.commits += more.commits;
        self.told_applied += more.told_applied;
        self.told_not_applied += more.told_not_applied;
        self.told_unknown += more.told_unknown;
        self.unknown_that_landed += more.unknown_that_landed;
    }
}

impl Total {
    fn of(requests: usize, applied: &[Applied], done: &[Operation]) -> Self {
        let told = |such: fn(&Told) -> bool| done.iter().filter(|operation| such(&operation.told)).count();
        let landed = |operation: &&Operation| applied.iter().any(|applied| applied.op == operation.number);
        let unknown = done.iter().filter(|operation| operation.told == Told::Unknown);
        Total {
            histories: 1,
            requests,
            commits: applied.len(),
            told_applied: told(|told| matches!(told, Told::Applied(_))),
            told_not_applied: told(|told| !matches!(told, Told::Applied(_) | Told::Unknown)),
            told_unknown: told(|told| *told == Told::Unknown),
            unknown_that_landed: unknown.filter(landed).count(),
        }
    }
}

/// Runs the history of a seed and checks it.
fn run(engine: &Engine, seed: u64, broken: Broken) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    engine.take_log();
    let (network, done) = runtime.block_on(play(engine, seed, broken));
    let requests = engine.take_log().len();
    let applied = network.applied.lock().expect("no panic");
    let done = done.lock().expect("no panic");
    let row = engine.row(TABLE, "id", &key_of(seed, broken));
    check(&applied, &done, &row).map(|()| Total::of(requests, &applied, &done))
}

fn key_of(seed: u64, broken: Broken) -> String {
    format!("ledger-{seed}-{broken:?}")
}

async fn play(engine: &Engine, seed: u64, broken: Broken) -> (Arc<Network>, Arc<Mutex<Vec<Operation>>>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    let rates = Rates {
        dropped: rate(60),
        answer_lost: rate(200),
        applied_500: rate(80),
        refused_500: rate(40),
        held: rate(60),
        second_copy: rate(80),
        throttled: rate(250),
        transaction_conflict: rate(80),
        denied: rate(20),
        frozen: rate(25),
        ..Rates::default()
    };
    let writers = rng.u64(2..=8);
    let operations = rng.u64(2..=9);
    let network = Network::new(engine, rates, broken, rng);
    let key = key_of(seed, broken);
    let (numbers, done, start) = (Arc::new(AtomicU64::new(1)), Arc::default(), Instant::now());
    // The first create sees faults too: it is part of the history.
    let mut first = Writer::new(&network, &key, &numbers, &done, start);
    first.wire.works_on(0);
    let began = Instant::now();
    let told = first.perform("create", 0).await;
    done.lock().expect("no panic").push(Operation { number: 0, what: "create", began, ended: Instant::now(), told });
    let mut working = tokio::task::JoinSet::new();
    for index in 0..writers {
        let writer = Writer::new(&network, &key, &numbers, &done, start);
        working.spawn(writer.work(operations, index == 0));
    }
    while let Some(ended) = working.join_next().await {
        ended.expect("a writer does not panic");
    }
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    (network, done)
}

/// Every invariant of a history, from what the engine applied, what the writers were told and what is stored.
fn check(applied: &[Applied], done: &[Operation], row: &Value) -> Result<(), String> {
    let timeline = Timeline(applied);
    for operation in done {
        let mine: Vec<_> = applied.iter().filter(|applied| applied.op == operation.number).collect();
        let fail =
            |why: String| Err(format!("{} {operation:?}: {why}; it was applied {} times", operation.what, mine.len()));
        if mine.len() > 1 {
            return fail("a change was applied twice".to_owned());
        }
        match &operation.told {
            Told::Unknown => {}
            Told::Applied(at) => {
                let Some(applied) = mine.first() else { return fail("told applied, but it was not".to_owned()) };
                if state_of(applied.row()) != Some(*at) {
                    return fail(format!("told a state that it did not make: {}", applied.row()));
                }
                if applied.time < operation.began || applied.time > operation.ended {
                    return fail("applied outside its call, and told so".to_owned());
                }
            }
            _ if !mine.is_empty() => return fail("told not applied, but it was".to_owned()),
            Told::NotApplied => {}
            Told::Saw(at) if timeline.was(operation, |row| is_live(row) && state_of(row) == Some(*at)) => {}
            Told::SawNothing if timeline.was(operation, |row| !is_live(row)) => {}
            Told::Saw(_) | Told::SawNothing => return fail("told a state that never was during its call".to_owned()),
        }
    }
    let stored = if is_live(row) { row["operations"]["L"].as_array().cloned().unwrap_or_default() } else { Vec::new() };
    for (index, number) in stored.iter().enumerate() {
        if stored[..index].contains(number) {
            return Err(format!("the stored value holds an operation twice: {stored:?}"));
        }
    }
    timeline.rises_by_one()?;
    let commits = u64::try_from(applied.len()).expect("small");
    match state_of(row) {
        Some(at) if at.version.get() == commits => Ok(()),
        None if commits == 0 => Ok(()),
        other => Err(format!("{commits} commits, but the row is at {other:?}")),
    }
}

/// The states that the row went through, in order.
struct Timeline<'a>(&'a [Applied]);

impl Timeline<'_> {
    /// Checks that every commit raised the version by one.
    fn rises_by_one(&self) -> Result<(), String> {
        for (index, one) in self.0.iter().enumerate() {
            let version = state_of(one.row()).map(|at| at.version.get());
            if version != u64::try_from(index + 1).ok() {
                return Err(format!("commit {} left version {version:?}", index + 1));
            }
        }
        Ok(())
    }

    /// Whether the row was in such a state at some moment of the operation.
    fn was(&self, operation: &Operation, such: impl Fn(&Value) -> bool) -> bool {
        let states = std::iter::once((None, &Value::Null)).chain(self.0.iter().map(|one| (Some(one.time), one.row())));
        let ends = self.0.iter().map(|one| Some(one.time)).chain([None]);
        states.zip(ends).any(|((from, row), until)| {
            from.is_none_or(|from| from <= operation.ended)
                && until.is_none_or(|until| until >= operation.began)
                && such(row)
        })
    }
}

/// The first of these seeds whose history breaks, and how; else what they were made of.
fn explore(seeds: Range<u64>, broken: Broken) -> Result<Total, Broke> {
    let engine = Engine::embedded(&[(TABLE, "id")]);
    seeds::explore(seeds, |seed| run(&engine, seed, broken))
}

#[test]
fn no_change_is_applied_twice_and_no_verdict_is_false_under_every_fault() {
    let Some(total) = seeds::play(300, |seeds| explore(seeds, Broken::Nothing)) else { return };
    println!("{total:?}");
    let Total { told_applied, told_not_applied, told_unknown, unknown_that_landed, .. } = total;
    assert!(told_applied > total.histories && told_not_applied > total.histories, "little happened: {total:?}");
    let told = told_applied + told_not_applied + told_unknown;
    assert!(told_unknown * 50 < told, "unknown is for the rare case: {total:?}");
    assert!(
        0 < unknown_that_landed && unknown_that_landed < told_unknown,
        "unknown was never worth its name: {total:?}"
    );
}

/// Breaks a rule and looks for the harm that it prevents, from this seed on.
fn is_noticed(broken: Broken, from: u64, harm: &str) {
    seeds::is_noticed(from..2000, |seeds| explore(seeds, broken), |why| why.contains(harm));
}

#[test]
fn without_the_judge_changes_are_applied_twice() {
    is_noticed(Broken::NoJudge, 0, "a change was applied twice");
}

#[test]
fn judging_by_the_last_writer_alone_applies_changes_twice() {
    is_noticed(Broken::LastWriterOnly, 0, "a change was applied twice");
}

#[test]
fn without_tombstones_a_delayed_create_brings_a_deleted_item_back() {
    is_noticed(Broken::RowsDeleted, 600, "told not applied, but it was");
}

#[test]
fn a_throttled_resend_that_clears_a_lost_answer_makes_false_verdicts() {
    is_noticed(Broken::ThrottlingClears, 0, "told not applied, but it was");
}
