//! One client of Fencepost over a wire of its own, under every fault.

use super::tally::{ANY, Counts, NOTES, Note, TABLE, Tally};
use crate::harness::faults::Freezing;
use crate::harness::off::BOUND;
use crate::histories::item::{Asked, Calling, Operation, Told, by_failure};
use crate::histories::scene::{self, Begun, Client, patient};
use fencepost::{Add, Call, Error, ItemVersion, Reads, Table, UpdateError};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The highest lead of a clock in milliseconds, beside writers that demand nothing.
const FOUR_MINUTES: i64 = 239_000;

/// The part of the scene for these histories alone.
pub struct Own {
    /// Whether the writers sometimes rest for hours, so that tombstones are swept.
    pub hours: bool,
    /// Whether the writers of Fencepost create an absent item.
    pub creates: bool,
}

pub type Scene = scene::Scene<Own, Operation<Counts>>;

pub struct Writer<const OTHERS: u8> {
    client: Client<Own, Operation<Counts>>,
    table: Table<Tally<OTHERS>>,
    known: Option<ItemVersion>,
}

impl<const OTHERS: u8> Writer<OTHERS> {
    pub fn new(scene: &Arc<Scene>, number: u64) -> Self {
        // The lead that is assumed beside each kind of writer.
        let clock = scene.clocks.draw_often_far_ahead(if OTHERS == ANY { FOUR_MINUTES } else { BOUND });
        let client = Client::with_clock(scene, &scene.network, number, clock);
        let table = client.open().with_policy(patient()).table(TABLE);
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
        let asked = Mutex::default();
        let told = Freezing::new(&self.client.network, self.perform(what, &begun, &asked)).await;
        if let Told::Applied(at, _) | Told::Saw(at, _) = &told
            && !what.starts_with("delete")
        {
            self.known = Some(*at);
        }
        let Begun { number, began, call } = begun;
        let (asked, conflicts) = (asked.into_inner().expect("no panic"), call.tally().conflicts);
        let (client, ended, by_before) = (self.client.number, Instant::now(), false);
        self.client.scene.note(Operation { number, client, what, began, ended, told, asked, conflicts, by_before });
    }

    async fn perform(&self, what: &str, begun: &Begun, asked: &Mutex<Asked<Counts>>) -> Told<Counts> {
        let Begun { number, call, .. } = begun;
        let (key, number, known) = (self.client.scene.name.as_str(), *number, self.known);
        match what {
            "add" => match self.table.in_call(call).add(key, &Add::to("count", 1, ..)).await {
                Ok(added) => Told::Applied(added.at, added.item.map(|shown| (shown.at, shown.value.into()))),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
                Err(other) => panic!("no such thing happens here: {other}"),
            },
            "add with a note" => self.add_with_note(key, number, call).await,
            _ => Calling { table: &self.table, key, number, call, known, asked }.perform(what).await,
        }
    }

    /// An add in a transaction that creates a note. The note's row remembers the transaction.
    async fn add_with_note(&self, key: &str, number: u64, call: &Call) -> Told<Counts> {
        let notes = self.table.store().table::<Note>(NOTES);
        let mut reads = Reads::new();
        let note = reads.item("note", &notes, format!("{key:?} {number}"));
        let tally = reads.item("tally", &self.table, key);
        let store = self.table.store().in_call(call);
        let done = store.transact_with_retry(reads, |attempt| {
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
}
