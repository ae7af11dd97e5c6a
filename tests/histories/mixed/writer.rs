//! One client of Fencepost over a wire of its own, under every fault, and the item that it and another program write.

use super::item::{Decided, Operation, Told, by_failure};
use crate::harness::faults::Freezing;
use crate::harness::off::BOUND;
use crate::harness::states::number;
use crate::histories::scene::{self, Begun, Client, with_few_attempts};
use fencepost::field::Field;
use fencepost::{
    Call, Error, Exists, Incarnation, ItemVersion, Names, Reads, Record, Settings, Table, UpdateError, VersionError,
    Versioned,
};
use judges::register;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub const TABLE: &str = "Tallies";
pub const KEY: &str = "id";
/// Only Fencepost writes notes.
pub const NOTES: &str = "Notes";
/// The attribute names of a table from another program.
pub const NAMES: Names = Names::DEFAULT.version("version").purge_at("endsAt");
/// The first number for operations of the other program.
pub const FOREIGN: u64 = 1 << 32;
/// The operation that removes ended tombstones.
pub const SWEEP: u64 = u64::MAX;

/// The other writers, as the `Record` declares them.
pub const NOBODY: u8 = 0;
pub const VERSIONED: u8 = 1;
pub const ANY: u8 = 2;

/// Every change leaves the number of its operation and counts. An add only counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally<const OTHERS: u8>(Counts);

impl<const OTHERS: u8> Record for Tally<OTHERS> {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["operations", "count"];
    const SETTINGS: Settings = match OTHERS {
        NOBODY => Settings::without_ttl().swept(),
        VERSIONED => Settings::without_ttl().shared_with_versioned_writers().swept(),
        _ => Settings::open_to_any(),
    }
    .names(NAMES)
    .remembered_writes(12)
    .edit_window(4);
}

impl<const OTHERS: u8> Tally<OTHERS> {
    fn count() -> Field<Self, i64> {
        Field::of("count")
    }
}

/// The row that a transaction creates beside the tally.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id")]
pub struct Note {
    pub by: u64,
}

/// The contents of a stored row, from any writer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    pub operations: Vec<u64>,
    pub count: i64,
}

impl register::Value for Counts {
    type Amount = i64;

    fn plus(&self, amount: &i64) -> Option<Self> {
        Some(Counts { count: self.count + amount, ..self.clone() })
    }
}

impl Counts {
    /// `None` if there is no row, or only a tombstone.
    pub fn of(row: &Value) -> Option<Self> {
        if !row.is_object() || row["_buried"]["N"].as_str().is_some_and(|at| row["version"]["N"] == at) {
            return None;
        }
        let operations = row["operations"]["L"].as_array().into_iter().flatten();
        let operations = operations.map(|number| number["N"].as_str().expect("a number").parse().expect("small"));
        let count = row["count"]["N"].as_str().map_or(0, |count| count.parse().expect("small"));
        Some(Counts { operations: operations.collect(), count })
    }

    /// Rows of the other program have no incarnation.
    pub fn is_at(row: &Value, at: ItemVersion) -> bool {
        version_of(row) == at.version.get()
    }

    pub fn first(number: u64) -> Self {
        Counts { operations: vec![number], count: 0 }
    }

    pub fn changed(&self, number: u64) -> Self {
        let operations = self.operations.iter().copied().chain([number]).collect();
        Counts { operations, count: self.count + 1 }
    }
}

/// The version of a stored row, 0 if it has none.
pub fn version_of(row: &Value) -> u64 {
    number(row, "version").unwrap_or_default()
}

/// The highest lead of a clock in milliseconds, beside writers that demand nothing.
const FOUR_MINUTES: i64 = 239_000;

/// The part of the scene for these histories alone.
pub struct Own {
    /// Whether the writers sometimes rest for hours, so that tombstones are swept.
    pub hours: bool,
    /// Whether the writers of Fencepost create an absent item.
    pub creates: bool,
}

pub type Scene = scene::Scene<Own, Operation>;

pub struct Writer<const OTHERS: u8> {
    client: Client<Own, Operation>,
    table: Table<Tally<OTHERS>>,
    known: Option<ItemVersion>,
}

impl<const OTHERS: u8> Writer<OTHERS> {
    pub fn new(scene: &Arc<Scene>, number: u64) -> Self {
        // The lead that is assumed beside each kind of writer.
        let clock = scene.clocks.draw_often_far_ahead(if OTHERS == ANY { FOUR_MINUTES } else { BOUND });
        let client = Client::with_clock(scene, &scene.network, number, clock);
        let table = client.open().with_policy(with_few_attempts()).table(TABLE);
        let table = table.with_tombstone_retention(Duration::from_hours(1));
        let table = if client.below(2) == 0 { table.remembering_items() } else { table };
        Writer { client, table, known: None }
    }

    pub async fn work(mut self, turns: u64) {
        for _ in 0..turns {
            self.client.pause(60).await;
            let scene = &self.client.scene;
            if scene.hours && self.client.below(6) == 0 {
                sleep(Duration::from_mins(60 + self.client.below(240))).await;
            }
            let what = match self.client.below(16) {
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
        // Some calls are so long that a paused process sends once more.
        let longest = if self.client.below(4) == 0 { 300_000 } else { 3_000 };
        let begun = self.client.begin(longest);
        let decided = Mutex::default();
        let told = Freezing::new(&self.client.network, self.perform(what, &begun, &decided)).await;
        if let Told::Applied(at, _) | Told::Saw(at, _) = &told
            && !what.starts_with("delete")
        {
            self.known = Some(*at);
        }
        let Begun { number, began, .. } = begun;
        let (decided, client, ended) = (decided.into_inner().expect("no panic"), self.client.number, Instant::now());
        self.client.scene.note(Operation { number, client, what, began, ended, told, decided });
    }

    async fn perform(&self, what: &str, begun: &Begun, decided: &Mutex<Decided>) -> Told {
        let Begun { number, call, .. } = begun;
        let (key, number, table) = (self.client.scene.name.as_str(), *number, self.table.in_call(call));
        let change = |now: &Tally<OTHERS>| {
            let to = now.0.changed(number);
            decided.lock().expect("no panic").push((now.0.clone(), to.clone()));
            Tally::<OTHERS>(to)
        };
        let done = match what {
            "add" => {
                return match table.edit(key, &Tally::count().add(1, ..)).await {
                    Ok(added) => {
                        let item = added.item.expect("it decodes");
                        Told::Applied(added.at, item.map(|shown| (shown.at, shown.value.0)))
                    }
                    Err(UpdateError::NotFound) => Told::SawNothing,
                    Err(UpdateError::Failed(failure)) => by_failure(&failure),
                    Err(other) => panic!("no such thing happens here: {other}"),
                };
            }
            "add with a note" => return self.add_with_note(key, number, call).await,
            "update at version" | "delete at version" => return self.at_version(what, &table, change).await,
            "update" => table.update_with_retry(key, change).await.map(wrote),
            "delete" => {
                let incarnation = Incarnation::from_bytes([0; 8]);
                table.delete(key).await.map(|version| Told::Applied(ItemVersion { version, incarnation }, None))
            }
            "get" => table.get(key).await.map(|seen| seen.map_or(Told::SawNothing, saw)).map_err(UpdateError::Failed),
            _ => match table.create(key, &Tally(Counts::first(number))).await {
                Ok(written) => Ok(wrote(written)),
                Err(Error::Refused(Exists(current))) => Ok(saw(*current)),
                Err(Error::Failed(failure)) => Err(UpdateError::Failed(failure)),
            },
        };
        done.unwrap_or_else(|error| match error {
            UpdateError::NotFound => Told::SawNothing,
            UpdateError::Failed(failure) => by_failure(&failure),
        })
    }

    /// A change at the version of an earlier answer to the client, or else of one that it reads.
    async fn at_version(
        &self,
        what: &str,
        table: &Table<Tally<OTHERS>>,
        change: impl Fn(&Tally<OTHERS>) -> Tally<OTHERS>,
    ) -> Told {
        let key = self.client.scene.name.as_str();
        let known = match self.known {
            Some(known) => known,
            None => match table.get(key).await {
                Ok(Some(current)) => current.at,
                _ => return Told::NotApplied,
            },
        };
        let done = if what == "update at version" {
            table.update_at_version(key, known, change).await.map(wrote)
        } else {
            let deleted = table.delete_at_version(key, known).await;
            deleted.map(|version| Told::Applied(ItemVersion { version, ..known }, None))
        };
        done.unwrap_or_else(|error| match error {
            VersionError::NotFound => Told::SawNothing,
            VersionError::Conflict(current) => saw(*current),
            VersionError::Failed(failure) => by_failure(&failure),
        })
    }

    /// An add in a transaction that creates a note. The note's row remembers the transaction.
    async fn add_with_note(&self, key: &str, number: u64, call: &Call) -> Told {
        let notes = self.table.store().table::<Note>(NOTES);
        let mut reads = Reads::new();
        let note = reads.item("note", &notes, format!("{key:?} {number}"));
        let tally = reads.item("tally", &self.table, key);
        let store = self.table.store().in_call(call);
        let done = store.transact_with_retry(reads, |attempt| {
            if attempt.get(tally)?.is_none() {
                return Err(Error::Refused(Told::SawNothing));
            }
            attempt.edit(tally, &Tally::count().add(1, ..))?;
            attempt.put_if_absent(note, &Note { by: number })?;
            Ok(Told::Landed)
        });
        match done.await {
            Ok(told) | Err(Error::Refused(told)) => told,
            Err(Error::Failed(failure)) => by_failure(&failure),
        }
    }
}

fn saw<const OTHERS: u8>(current: Versioned<Tally<OTHERS>>) -> Told {
    Told::Saw(current.at, current.value.0)
}

fn wrote<const OTHERS: u8>(written: Versioned<Tally<OTHERS>>) -> Told {
    Told::Applied(written.at, Some((written.at, written.value.0)))
}
