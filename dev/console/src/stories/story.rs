//! [`Story`]: the play, its clients and its counters, with its [`Settings`].

use super::ledger::{Held, Totals, Twice};
use super::scene::{Scene, Verdict};
use fencepost_test::Engine;
use serde_json::{Value, json};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

/// One story.
#[derive(Debug)]
pub struct Story {
    /// Its name in the address of the page.
    pub name: &'static str,
    pub(super) title: &'static str,
    pub(super) summary: &'static str,
    pub(super) settings: Settings,
    /// The settings in words.
    pub(super) facts: fn(&Settings) -> String,
    /// The seeds of the recorded plays.
    pub(super) seeds: &'static [u64],
    /// How many of 100 answers to writes are lost in the recorded plays.
    pub(super) lost_answers: &'static [u8],
    pub(super) sides: &'static [Side],
    /// The clients, by name.
    pub(super) clients: fn(&Settings) -> Vec<String>,
    /// The counters of its own. The first one is its subject.
    pub(super) counters: &'static [Counter],
    pub(super) twice: Twice,
}

/// One way to reach the goal of a story.
#[derive(Debug)]
pub struct Side {
    pub id: &'static str,
    pub title: &'static str,
    pub how: &'static str,
    /// Its tables, each with its partition key.
    pub tables: &'static [(&'static str, &'static str)],
    pub held: Held,
    pub play: fn(Rc<Scene>, Settings) -> Playing,
    pub verdict: fn(&Totals) -> Verdict,
}

pub type Playing = Pin<Box<dyn Future<Output = ()>>>;

/// A number shown while a story plays.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub name: &'static str,
    pub label: &'static str,
    pub help: &'static str,
}

pub const fn counter(name: &'static str, label: &'static str, help: &'static str) -> Counter {
    Counter { name, label, help }
}

pub const ACKNOWLEDGED: Counter = counter("acknowledged", "Acknowledged", "Calls that were told that they succeeded.");
pub const UNKNOWN: Counter =
    counter("unknown", "Unknown", "Calls that were told that nothing proves what became of them.");
pub const HELD: Counter = counter("held", "Held", "Effects that are in the table.");
pub const TWICE: Counter = counter("appliedTwice", "Applied twice", "What was applied more than once.");
const REQUESTS: Counter = counter("requests", "Requests", "Requests that left for DynamoDB.");
const WRITE_UNITS: Counter =
    counter("writeUnits", "Write units", "What DynamoDB charges for the writes, refused ones included.");
const READ_UNITS: Counter = counter("readUnits", "Read units", "What DynamoDB charges for the reads.");
const CONFLICTS: Counter =
    counter("conflicts", "Conflicts", "Requests whose condition did not hold, or that met a transaction.");
const LOST: Counter = counter("lostAnswers", "Lost answers", "Requests whose connection broke before an answer came.");
const RESENDS: Counter = counter("resends", "Resends", "Writes that were sent again, unchanged.");
/// The cost of every request, in this order.
const COSTS: [Counter; 6] = [REQUESTS, WRITE_UNITS, READ_UNITS, CONFLICTS, LOST, RESENDS];

impl Story {
    /// The description for the page, with the players and the counters.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let side = |side: &Side| json!({ "id": side.id, "title": side.title, "how": side.how });
        let counter = |counter: &Counter| json!({ "name": counter.name, "label": counter.label, "help": counter.help });
        json!({
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "facts": (self.facts)(&self.settings),
            "clients": (self.clients)(&self.settings),
            "sides": self.sides.iter().map(side).collect::<Vec<_>>(),
            "lead": self.counters.first().map(|counter| counter.name),
            "counters": self.counters.iter().chain(&COSTS).map(counter).collect::<Vec<_>>(),
        })
    }

    /// Its own settings, with this seed.
    #[must_use]
    pub fn settings(&self, seed: u64) -> Settings {
        Settings { seed, lost_answers: self.lost_answers[0], ..self.settings }
    }

    /// The settings of the recorded plays. The first ones show the point of the story.
    pub fn recorded(&self) -> impl Iterator<Item = Settings> {
        let lost = self.lost_answers.iter();
        lost.flat_map(|lost| self.seeds.iter().map(|seed| Settings { lost_answers: *lost, ..self.settings(*seed) }))
    }
}

/// A client for each of the writers in the settings: `user 1`, `user 2` …
pub fn numbered(name: &str, settings: &Settings) -> Vec<String> {
    (1..=settings.writers).map(|number| format!("{name} {number}")).collect()
}

/// The number of rows of a table, without tombstones. A burned create leaves one too.
pub fn live_rows(engine: &Engine, table: &str) -> i64 {
    let scan = json!({
        "TableName": table,
        "Select": "COUNT",
        "FilterExpression": "attribute_not_exists(#purgeAt) AND attribute_not_exists(#buried)",
        "ExpressionAttributeNames": { "#purgeAt": "_purgeAt", "#buried": "_buried" },
    });
    engine.raw("Scan", &scan)["Count"].as_i64().unwrap_or(0)
}

/// `1 change was`, `2 changes were`.
pub fn were(count: i64, thing: &str) -> String {
    if count == 1 { format!("1 {thing} was") } else { format!("{count} {thing}s were") }
}

/// The settings of one play of a story.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// All chance of the play comes from it.
    pub seed: u64,
    /// How many of 100 answers to writes are lost.
    pub lost_answers: u8,
    /// Whether the first answer to a write is lost.
    pub loses_first: bool,
    /// By how many milliseconds one request in ten is late.
    pub late_by: u64,
    /// How many clients there are, if the story can have any number.
    pub writers: usize,
    /// How many changes each client makes.
    pub changes: u32,
    /// The milliseconds of the delay in a story about one.
    pub delay: u64,
}

impl Settings {
    pub(super) const PLAIN: Settings =
        Settings { seed: 0, lost_answers: 0, loses_first: false, late_by: 0, writers: 0, changes: 1, delay: 0 };

    /// Loses answers to writes in this scene and delays requests.
    pub(super) fn trouble(&self, scene: &Scene) {
        if self.loses_first {
            scene.db().lose_answer().of_writes().once();
        }
        if self.lost_answers > 0 {
            scene.db().lose_answer().of_writes().with_probability(f64::from(self.lost_answers) / 100.0);
        }
        if self.late_by > 0 {
            scene.db().delay(Duration::from_millis(self.late_by)).with_probability(0.1);
        }
    }
}
