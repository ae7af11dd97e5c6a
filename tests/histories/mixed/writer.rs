//! One client of Fencepost, over a wire of its own, which is subject to every fault.

use super::record::{ANY, NOTES, Note, Stored, TABLE, Tally};
use crate::harness::faults::{Freezing, Network, Wire, store_on};
use crate::harness::off::{BOUND, OffClocks};
use fencepost::{
    Add, Call, Deadline, Error, Exists, Failure, ItemVersion, Reads, RetryPolicy, Table, UpdateError, Version,
    VersionError, Versioned,
};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// When histories begin, since 1970.
const EPOCH: Duration = Duration::from_hours(500_000);

/// By how many milliseconds a clock is ahead at most beside writers that demand nothing.
const FOUR_MINUTES: i64 = 239_000;

/// What all writers of a history share.
pub struct Scene {
    pub network: Arc<Network>,
    pub key: String,
    /// Whether the writers rest for hours now and then, so that tombstones are swept.
    pub hours: bool,
    /// Whether the writers of Fencepost create the item where it is gone.
    pub creates: bool,
    pub numbers: AtomicU64,
    pub start: Instant,
    pub clocks: OffClocks,
    pub done: Mutex<Vec<Operation>>,
}

impl Scene {
    /// By the service's clock.
    pub fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + EPOCH + self.start.elapsed()
    }
}

/// What an operation was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Applied, and this is the version that it made; and the value that was told with its version, if one was. That of an
    /// add may be later.
    Applied(Version, Option<(Version, Stored)>),
    /// Applied; which version it made was not said.
    Landed,
    /// Not applied, and nothing is claimed about the row.
    NotApplied,
    /// Not applied, or only read. The row was at this version, and held this, at some moment of the call.
    Saw(Version, Stored),
    /// Not applied, or only read. At some moment of the call nothing was there.
    SawNothing,
    /// Nobody knows.
    Unknown,
}

#[derive(Debug)]
pub struct Operation {
    pub number: u64,
    /// Which client it was.
    pub client: u64,
    pub what: &'static str,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
    /// What its last decision made of what, if it decided.
    pub decided: Option<(Stored, Stored)>,
}

/// One client: its own SDK client, table handle, wire and clock.
pub struct Writer<const OTHERS: u8> {
    scene: Arc<Scene>,
    client: u64,
    wire: Wire,
    table: Table<Tally<OTHERS>>,
    known: Option<ItemVersion>,
}

impl<const OTHERS: u8> Writer<OTHERS> {
    pub fn new(scene: &Arc<Scene>, client: u64) -> Self {
        // As is assumed beside each kind of writers.
        let most = if OTHERS == ANY { FOUR_MINUTES } else { BOUND };
        let clock = scene.clocks.draw_often_far_ahead(most);
        let wire = clock.wire(&scene.network);
        let mut policy = RetryPolicy::default();
        policy.max_attempts = 12;
        let store = store_on(&scene.network, &wire.client(), move || clock.now(EPOCH)).with_policy(policy);
        let table = store.table(TABLE).with_tombstone_retention(Duration::from_hours(1));
        let table = if scene.network.below(2) == 0 { table.remembering_items() } else { table };
        Writer { scene: scene.clone(), client, wire, table, known: None }
    }

    pub async fn work(mut self, turns: u64) {
        let scene = self.scene.clone();
        for _ in 0..turns {
            sleep(Duration::from_millis(scene.network.below(60))).await;
            if scene.hours && scene.network.below(6) == 0 {
                sleep(Duration::from_mins(60 + scene.network.below(240))).await;
            }
            let what = match scene.network.below(16) {
                0..=4 => "update",
                5 => "update at version",
                6 => "get",
                7 if scene.creates => "delete at version",
                8 if scene.creates => "delete",
                9..=10 if scene.creates => "create",
                11..=12 => "add with a note",
                _ => "add",
            };
            self.run(what).await;
        }
    }

    async fn run(&mut self, what: &'static str) {
        let scene = self.scene.clone();
        let number = scene.numbers.fetch_add(1, Relaxed);
        self.wire.works_on(number);
        let began = Instant::now();
        // Some have so long that a process which stood still sends once more.
        let longest = if scene.network.below(4) == 0 { 300_000 } else { 3_000 };
        let call = Call::new(Deadline::within(Duration::from_millis(200 + scene.network.below(longest))));
        let decided = Mutex::default();
        let told = Freezing::new(&scene.network, self.perform(what, number, &call, &decided)).await;
        let decided = decided.into_inner().expect("no panic");
        let (client, ended) = (self.client, Instant::now());
        let operation = Operation { number, client, what, began, ended, told, decided };
        scene.done.lock().expect("no panic").push(operation);
    }

    async fn perform(
        &mut self,
        what: &str,
        number: u64,
        call: &Call,
        decided: &Mutex<Option<(Stored, Stored)>>,
    ) -> Told {
        let key = self.scene.key.as_str();
        let change = |tally: &Tally<OTHERS>| {
            let (from, to) = (Stored::from(tally), Stored::from(tally).changed(number));
            *decided.lock().expect("no panic") = Some((from, to.clone()));
            Ok::<_, Infallible>(Some(to.into()))
        };
        match what {
            "update" => match self.table.in_call(call).update_with_retry(key, change).await {
                Ok(written) => self.applied(written.at, Some(&written)),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
            "add" => match self.table.in_call(call).add(key, &Add::to("count", 1, ..)).await {
                Ok(added) => self.applied(added.at, added.item.as_ref()),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
                Err(other) => panic!("no such thing happens here: {other}"),
            },
            "add with a note" => self.add_with_note(key, number, call).await,
            "get" => match self.table.in_call(call).get(key).await {
                Ok(Some(current)) => self.saw(&current),
                Ok(None) => Told::SawNothing,
                Err(failure) => by_failure(&failure),
            },
            "create" => match self.table.in_call(call).create(key, &Stored::new(number).into()).await {
                Ok(written) => self.applied(written.at, Some(&written)),
                Err(Error::Refused(Exists(current))) => self.saw(&current),
                Err(Error::Failed(failure)) => by_failure(&failure),
            },
            "update at version" => {
                let Some(known) = self.known_version(key, call).await else { return Told::NotApplied };
                match self.table.in_call(call).update_at_version(key, known, change).await {
                    Ok(written) => self.applied(written.at, Some(&written)),
                    Err(VersionError::NotFound) => Told::SawNothing,
                    Err(VersionError::Conflict(current)) => self.saw(&current),
                    Err(VersionError::Failed(failure)) => by_failure(&failure),
                }
            }
            "delete at version" => {
                let Some(known) = self.known_version(key, call).await else { return Told::NotApplied };
                Self::deleted(self.table.in_call(call).delete_at_version(key, known).await)
            }
            _ => match self.table.in_call(call).delete(key).await {
                Ok(version) => Told::Applied(version, None),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
        }
    }

    /// An add in a transaction that creates a note, whose row remembers the transaction.
    async fn add_with_note(&self, key: &str, number: u64, call: &Call) -> Told {
        let notes = self.table.store().table::<Note>(NOTES);
        let mut reads = Reads::new();
        let note = reads.item("note", &notes, format!("{key:?} {number}"));
        let tally = reads.item("tally", &self.table, key);
        let transactions = self.table.store().transactions();
        let transactions = transactions.in_call(call);
        let done = transactions.transact_with_retry(reads, |attempt| {
            if attempt.get(tally)?.is_none() {
                return Err(Error::Refused(Told::SawNothing));
            }
            attempt.add(tally, &Add::to("count", 1, ..))?;
            attempt.put_if_absent(note, &Note { by: number })?;
            Ok(Told::Landed)
        });
        match done.await {
            Ok(told) | Err(Error::Refused(told)) => told,
            Err(Error::Failed(failure)) => by_failure(&failure),
        }
    }

    fn applied(&mut self, at: ItemVersion, shown: Option<&Versioned<Tally<OTHERS>>>) -> Told {
        self.known = Some(at);
        Told::Applied(at.version, shown.map(|shown| (shown.version(), Stored::from(&shown.value))))
    }

    fn saw(&mut self, current: &Versioned<Tally<OTHERS>>) -> Told {
        self.known = Some(current.at);
        Told::Saw(current.version(), Stored::from(&current.value))
    }

    fn deleted(result: Result<Version, VersionError<Tally<OTHERS>>>) -> Told {
        match result {
            Ok(version) => Told::Applied(version, None),
            Err(VersionError::NotFound) => Told::SawNothing,
            Err(VersionError::Conflict(current)) => Told::Saw(current.version(), Stored::from(&current.value)),
            Err(VersionError::Failed(failure)) => by_failure(&failure),
        }
    }

    async fn known_version(&self, key: &str, call: &Call) -> Option<ItemVersion> {
        match self.known {
            Some(known) => Some(known),
            None => self.table.in_call(call).get(key).await.ok().flatten().map(|current| current.at),
        }
    }
}

fn by_failure(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } | Failure::Rejected { .. } => Told::NotApplied,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        // The other program put an old row back.
        Failure::CorruptItem { reason } if reason == "its version went down" => Told::NotApplied,
        _ => panic!("no such thing happens here: {failure}"),
    }
}
