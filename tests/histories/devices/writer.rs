//! One client that adds, changes, deletes and creates, over a wire of its own.

use super::record::{Ledger, NOTES, Note, Operation, TABLE, Told, add, amount, at, by_failure, state_of};
use crate::harness::faults::{Freezing, Network, Wire, store_on};
use fencepost::error::{AddError, CreateError, DeleteError, TransactError, UpdateError, VersionedUpdateError};
use fencepost::{Call, Deadline, Decision, ItemVersion, Key, Plan, Reads, RetryPolicy, Table, Version};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// What all writers of a history share.
pub struct Scene {
    pub network: Arc<Network>,
    pub key: String,
    /// Whether the writers rest for hours now and then, so that TTL removes tombstones.
    pub hours: bool,
    pub numbers: AtomicU64,
    pub start: Instant,
    pub done: Mutex<Vec<Operation>>,
}

impl Scene {
    pub fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + self.start.elapsed()
    }
}

/// One client: its own SDK client, table handle and wire.
pub struct Writer {
    scene: Arc<Scene>,
    wire: Wire,
    table: Table<Ledger>,
    known: Option<ItemVersion>,
}

impl Writer {
    pub fn new(scene: &Arc<Scene>) -> Self {
        let wire = Wire::new(&scene.network);
        let table = table(scene, &wire);
        let table = if scene.network.below(2) == 0 { table.remembering_items() } else { table };
        Writer { scene: scene.clone(), wire, table, known: None }
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
        let number = scene.numbers.fetch_add(1, Ordering::Relaxed);
        self.wire.works_on(number);
        let began = Instant::now();
        let call = Call::new(Deadline::within(Duration::from_millis(200 + scene.network.below(3000))));
        let told = Freezing::new(&scene.network, self.perform(what, number, &call)).await;
        let conflicts = call.tally().conflicts;
        let operation = Operation { number, what, began, ended: Instant::now(), told, conflicts };
        scene.done.lock().expect("no panic").push(operation);
    }

    async fn perform(&mut self, what: &str, number: u64, call: &Call) -> Told {
        let key = Key::from(self.scene.key.as_str());
        let change = |ledger: &Ledger| Decision::<Ledger, ()>::Put(ledger.changed(number));
        let told = match what {
            "add" => self.add(&key, number, call).await,
            "add with a note" | "add where no note is" => {
                transact(&self.table, &key, number, what == "add with a note", call).await
            }
            "update" => match self.table.update_with_retry(&key, call, change).await {
                Ok(written) => Told::Applied(written.at),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Refused(())) => unreachable!("the decision never refuses"),
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
            "get" => match self.table.get(&key, call).await {
                Ok(Some(current)) => at(&current),
                Ok(None) => Told::SawNothing,
                Err(failure) => by_failure(&failure),
            },
            "create" => match self.table.create(&key, &Ledger::first(number), call).await {
                Ok(written) => Told::Applied(written.at),
                Err(CreateError::Exists(current)) => at(&current),
                Err(CreateError::Failed(failure)) => by_failure(&failure),
            },
            "update at version" => {
                let Some(known) = self.known_version(&key, call).await else { return Told::NotApplied };
                match self.table.update_at_version(&key, known, call, change).await {
                    Ok(written) => Told::Applied(written.at),
                    Err(VersionedUpdateError::NotFound) => Told::SawNothing,
                    Err(VersionedUpdateError::Conflict(current)) => at(&current),
                    Err(VersionedUpdateError::Refused(())) => unreachable!("the decision never refuses"),
                    Err(VersionedUpdateError::Failed(failure)) => by_failure(&failure),
                }
            }
            "delete at version" => {
                let Some(known) = self.known_version(&key, call).await else { return Told::NotApplied };
                deleted(known, self.table.delete_at_version(&key, known, call).await)
            }
            _ => match self.table.delete(&key, call).await {
                // Which state it deleted is its own affair; the timeline knows the incarnation.
                Ok(version) => {
                    let incarnation = self.incarnation_of(number, version.get());
                    Told::Applied(ItemVersion { version, incarnation })
                }
                Err(error) => deleted_not(error),
            },
        };
        if let Told::Applied(at) | Told::Saw(at) | Told::OutOfRange(at) = &told {
            self.known = Some(*at);
        }
        told
    }

    /// Adds with what this client knows, or as a new process that was told of a state: an old one, or one that is yet to
    /// come.
    async fn add(&self, key: &Key, number: u64, call: &Call) -> Told {
        let below = |bound| self.scene.network.below(bound);
        let added = match self.known {
            Some(known) if below(5) == 0 => {
                let version = Version::new(known.version.get() + below(4)).expect("small");
                let add = add(number).seen(ItemVersion { version, ..known });
                table(&self.scene, &self.wire).add(key, &add, call).await
            }
            _ => self.table.add(key, &add(number), call).await,
        };
        match added {
            Ok(added) => Told::Applied(added.at),
            Err(AddError::NotFound) => Told::SawNothing,
            Err(AddError::OutOfRange(current)) => Told::OutOfRange(current.at),
            Err(AddError::Failed(failure)) => by_failure(&failure),
            Err(other) => panic!("no such thing happens here: {other}"),
        }
    }

    async fn known_version(&self, key: &Key, call: &Call) -> Option<ItemVersion> {
        match self.known {
            Some(known) => Some(known),
            None => self.table.get(key, call).await.ok().flatten().map(|current| current.at),
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

fn table(scene: &Arc<Scene>, wire: &Wire) -> Table<Ledger> {
    let mut policy = RetryPolicy::default();
    policy.max_attempts = 12;
    let clock = scene.clone();
    let store = store_on(&scene.network, &wire.client(), move || clock.now()).with_policy(policy);
    store.table(TABLE).with_tombstone_retention(Duration::from_hours(1))
}

/// An add in a transaction. Beside the create of a note it is bare: the note remembers. Beside a check of one, the add
/// itself must.
async fn transact(ledgers: &Table<Ledger>, key: &Key, number: u64, creates: bool, call: &Call) -> Told {
    let notes = ledgers.store().table::<Note>(NOTES);
    let mut reads = Reads::new();
    let note_key = Key::from(note_id(key, number));
    let (note, ledger) = if creates {
        (reads.later("note", &notes, &note_key), reads.later("ledger", ledgers, key))
    } else {
        (reads.item("note", &notes, &note_key), reads.remembered("ledger", ledgers, key))
    };
    let transactions = ledgers.store().transactions();
    let landed = transactions.transact_with_retry(reads, call, |attempt| {
        match attempt.get(ledger)? {
            None if attempt.knows(ledger) => return Ok(Plan::Refuse(Told::SawNothing)),
            Some(current) if !current.value.added(number).is_right() => {
                return Ok(Plan::Refuse(Told::OutOfRange(current.at)));
            }
            _ => attempt.add(ledger, &add(number))?,
        }
        if creates {
            attempt.put_if_absent(note, &Note { by: amount(number) })?;
        } else {
            attempt.check(note)?;
        }
        Ok(Plan::Commit(Told::Landed))
    });
    match landed.await {
        Ok(told) | Err(TransactError::Refused(told)) => told,
        Err(TransactError::Failed(failure)) => by_failure(&failure),
    }
}

/// Each operation has a note of its own.
fn note_id(key: &Key, number: u64) -> String {
    format!("{key:?} {number}")
}
