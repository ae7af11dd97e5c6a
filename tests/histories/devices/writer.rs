//! One client that adds, changes, deletes and creates, over a wire of its own.

use super::record::{
    AskedFor, Build, Ledger, NOTES, Note, Operation, TABLE, Today, Told, add, amount, by_failure, saw, state_of, wrote,
};
use crate::harness::faults::{Freezing, Network, Wire, store_on};
use crate::harness::off::{OffClock, OffClocks};
use fencepost::{
    Call, Deadline, Error, Exists, ItemVersion, Key, NotAdded, Reads, RetryPolicy, Table, UpdateError, Version,
    VersionError,
};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// When histories begin, since 1970.
const EPOCH: Duration = Duration::from_hours(500_000);

/// What all writers of a history share.
pub struct Scene {
    pub network: Arc<Network>,
    pub key: String,
    /// Whether the writers rest for hours now and then, so that TTL removes tombstones.
    pub hours: bool,
    pub numbers: AtomicU64,
    pub start: Instant,
    pub clocks: OffClocks,
    /// Which build runs where, drawn by itself, in a history with a canary and rollbacks.
    pub rollout: Option<Mutex<fastrand::Rng>>,
    pub done: Mutex<Vec<Operation>>,
}

impl Scene {
    /// By the service's clock.
    pub fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + EPOCH + self.start.elapsed()
    }
}

/// What the client runs now. A restart forgets what the process has seen.
#[derive(Clone)]
enum Process {
    Today(Table<Today>),
    Before(Table<Ledger>),
}

/// One client: its own SDK client, table handle, wire and clock.
pub struct Writer {
    scene: Arc<Scene>,
    client: u64,
    clock: OffClock,
    wire: Wire,
    process: Process,
    known: Option<ItemVersion>,
}

impl Writer {
    pub fn new(scene: &Arc<Scene>, client: u64) -> Self {
        let clock = scene.clocks.draw();
        let wire = clock.wire(&scene.network);
        let remembers = scene.network.below(2) == 0;
        let mut writer = Writer {
            scene: scene.clone(),
            client,
            process: Process::Today(open(scene, &wire, &clock)),
            clock,
            wire,
            known: None,
        };
        if remembers && let Process::Today(table) = writer.process {
            writer.process = Process::Today(table.remembering_items());
        }
        writer.deploy();
        writer
    }

    /// In some histories, a deployment goes back and forth between two builds.
    fn deploy(&mut self) {
        let Some(rollout) = &self.scene.rollout else { return };
        let mut rng = rollout.lock().expect("no panic while drawing");
        match rng.u32(..6) {
            0 => self.process = Process::Today(open(&self.scene, &self.wire, &self.clock).remembering_items()),
            1 | 2 => self.process = Process::Before(open(&self.scene, &self.wire, &self.clock)),
            _ => {}
        }
    }

    pub async fn work(mut self, operations: u64, deletes: bool) {
        let scene = self.scene.clone();
        for turn in 0..operations {
            sleep(Duration::from_millis(scene.network.below(60))).await;
            if scene.hours && scene.network.below(6) == 0 {
                sleep(Duration::from_mins(60 + scene.network.below(240))).await;
            }
            let drawn = scene.network.below(14);
            let what = match (deletes, drawn) {
                (true, _) if turn % 2 == 1 => "create",
                (true, 0..=9) => "delete at version",
                (true, _) => "delete",
                (false, 0..=2) => "update",
                (false, 3) => "update at version",
                (false, 4) => "get",
                (false, 5..=6) => "add with a note",
                (false, 7) => "add where no note is",
                (false, _) => "add",
            };
            self.run(what).await;
        }
    }

    /// One operation, and what it is told.
    pub async fn run(&mut self, what: &'static str) {
        let scene = self.scene.clone();
        self.deploy();
        let number = scene.numbers.fetch_add(1, Ordering::Relaxed);
        self.wire.works_on(number);
        let began = Instant::now();
        let call = Call::new(Deadline::within(Duration::from_millis(200 + scene.network.below(3000))));
        let by_before = matches!(self.process, Process::Before(_));
        let asked = Mutex::default();
        let told = match self.process.clone() {
            Process::Today(table) => {
                Freezing::new(&scene.network, self.perform(&table, what, number, &call, &asked)).await
            }
            Process::Before(table) => {
                Freezing::new(&scene.network, self.perform(&table, what, number, &call, &asked)).await
            }
        };
        let (client, conflicts, ended) = (self.client, call.tally().conflicts, Instant::now());
        let asked = asked.into_inner().expect("no panic");
        let operation = Operation { number, client, what, began, ended, told, asked, conflicts, by_before };
        scene.done.lock().expect("no panic").push(operation);
    }

    async fn perform<L: Build>(
        &mut self,
        table: &Table<L>,
        what: &str,
        number: u64,
        call: &Call,
        asked: &Mutex<AskedFor>,
    ) -> Told {
        let key = self.scene.key.as_str();
        let change = |ledger: &L| {
            let ledger: Ledger = ledger.clone().into();
            let changed = ledger.changed(number);
            asked.lock().expect("no panic").decided = Some((ledger, changed.clone()));
            Ok::<_, Infallible>(Some(changed.into()))
        };
        let told = match what {
            "add" => self.add(table, key, number, call).await,
            "add with a note" | "add where no note is" => {
                transact(table, key, number, what == "add with a note", call).await
            }
            "update" => match table.in_call(call).update_with_retry(key, change).await {
                Ok(written) => wrote(written),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
            "get" => match table.in_call(call).get(key).await {
                Ok(Some(current)) => saw(current),
                Ok(None) => Told::SawNothing,
                Err(failure) => by_failure(&failure),
            },
            "create" => match table.in_call(call).create(key, &Ledger::first(number).into()).await {
                Ok(written) => wrote(written),
                Err(Error::Refused(Exists(current))) => saw(*current),
                Err(Error::Failed(failure)) => by_failure(&failure),
            },
            "update at version" => {
                let Some(known) = self.known_version(table, key, call).await else { return Told::NotApplied };
                asked.lock().expect("no panic").at = Some(known);
                match table.in_call(call).update_at_version(key, known, change).await {
                    Ok(written) => wrote(written),
                    Err(VersionError::NotFound) => Told::SawNothing,
                    Err(VersionError::Conflict(current)) => saw(*current),
                    Err(VersionError::Failed(failure)) => by_failure(&failure),
                }
            }
            "delete at version" => {
                let Some(known) = self.known_version(table, key, call).await else { return Told::NotApplied };
                asked.lock().expect("no panic").at = Some(known);
                deleted(known, table.in_call(call).delete_at_version(key, known).await)
            }
            _ => match table.in_call(call).delete(key).await {
                // Which state it deleted is its own affair; the timeline knows the incarnation.
                Ok(version) => {
                    let incarnation = self.incarnation_of(number, version.get());
                    Told::Applied(ItemVersion { version, incarnation }, None)
                }
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
        };
        if let Told::Applied(at, _) | Told::Saw(at, _) | Told::OutOfRange(at, _) = &told {
            self.known = Some(*at);
        }
        told
    }

    /// Adds with what this client knows, or as a new process that was told of a state: an old one, or one that is yet to
    /// come.
    async fn add<L: Build>(&self, table: &Table<L>, key: &str, number: u64, call: &Call) -> Told {
        let below = |bound| self.scene.network.below(bound);
        let added = match self.known {
            Some(known) if below(5) == 0 => {
                let version = Version::new(known.version.get() + below(4)).expect("small");
                let add = add(number).seen(ItemVersion { version, ..known });
                open::<L>(&self.scene, &self.wire, &self.clock).in_call(call).add(key, &add).await
            }
            _ => table.in_call(call).add(key, &add(number)).await,
        };
        match added {
            Ok(added) => Told::Applied(added.at, added.item.map(|shown| (shown.at, shown.value.into()))),
            Err(UpdateError::NotFound) => Told::SawNothing,
            Err(UpdateError::Refused(NotAdded::OutOfRange(current))) => {
                Told::OutOfRange(current.at, current.value.into())
            }
            Err(UpdateError::Failed(failure)) => by_failure(&failure),
            Err(other) => panic!("no such thing happens here: {other}"),
        }
    }

    async fn known_version<L: Build>(&self, table: &Table<L>, key: &str, call: &Call) -> Option<ItemVersion> {
        match self.known {
            Some(known) => Some(known),
            None => table.in_call(call).get(key).await.ok().flatten().map(|current| current.at),
        }
    }

    fn incarnation_of(&self, number: u64, version: u64) -> fencepost::Incarnation {
        let applied = self.scene.network.applied();
        let of_delete = applied.iter().filter(|applied| applied.op == number);
        let mut states = of_delete.filter_map(|applied| state_of(applied.left_in(TABLE, &self.scene.key)?));
        let same = states.find(|at| at.version.get() == version);
        same.expect("a delete that was told applied was applied").incarnation
    }
}

fn deleted<L: Build>(known: ItemVersion, result: Result<fencepost::Version, VersionError<L>>) -> Told {
    match result {
        Ok(version) => Told::Applied(ItemVersion { version, ..known }, None),
        Err(VersionError::NotFound) => Told::SawNothing,
        Err(VersionError::Conflict(current)) => saw(*current),
        Err(VersionError::Failed(failure)) => by_failure(&failure),
    }
}

fn open<L: Build>(scene: &Arc<Scene>, wire: &Wire, clock: &OffClock) -> Table<L> {
    let mut policy = RetryPolicy::default();
    policy.max_attempts = 12;
    let clock = clock.clone();
    let store = store_on(&scene.network, &wire.client(), move || clock.now(EPOCH)).with_policy(policy);
    store.table(TABLE).with_tombstone_retention(Duration::from_hours(1))
}

/// An add in a transaction. Beside the create of a note it is bare: the note remembers. Beside a check of one, the add
/// itself must.
async fn transact<L: Build>(ledgers: &Table<L>, key: &str, number: u64, creates: bool, call: &Call) -> Told {
    let notes = ledgers.store().table::<Note>(NOTES);
    let mut reads = Reads::new();
    let note_key = Key::from(note_id(key, number));
    let (note, ledger) = if creates {
        (reads.later("note", &notes, &note_key), reads.later("ledger", ledgers, key))
    } else {
        (reads.item("note", &notes, &note_key), reads.remembered("ledger", ledgers, key))
    };
    let transactions = ledgers.store().transactions();
    let transactions = transactions.in_call(call);
    let landed = transactions.transact_with_retry(reads, |attempt| {
        match attempt.get(ledger)? {
            None if attempt.knows(ledger) => return Err(Error::Refused(Box::new(Told::SawNothing))),
            Some(current) if !current.value.clone().into().added(number).is_right() => {
                return Err(Error::Refused(Box::new(Told::OutOfRange(current.at, current.value.into()))));
            }
            _ => attempt.add(ledger, &add(number))?,
        }
        if creates {
            attempt.put_if_absent(note, &Note { by: amount(number) })?;
        } else {
            attempt.check(note)?;
        }
        Ok(Told::Landed)
    });
    match landed.await {
        Ok(told) => told,
        Err(Error::Refused(told)) => *told,
        Err(Error::Failed(failure)) => by_failure(&failure),
    }
}

/// Each operation has a note of its own.
fn note_id(key: &str, number: u64) -> String {
    format!("{key:?} {number}")
}
