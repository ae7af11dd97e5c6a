//! [`Story`]: the play, its clients and its counters.

use super::ledger::{Held, Totals, Twice};
use super::scene::{Scene, Verdict};
use super::settings::{Invalid, Setting, Settings};
use fencepost_test::Engine;
use serde_json::{Value, json};
use std::pin::Pin;
use std::rc::Rc;

/// One story.
#[derive(Debug)]
pub struct Story {
    /// Its name in a path.
    pub name: &'static str,
    pub(super) title: &'static str,
    pub(super) summary: &'static str,
    /// Its settings.
    pub(super) settings: &'static [Setting],
    /// The seed if a visitor chooses none: one with a play that shows the point of the story.
    pub(super) seed: u64,
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
    /// The description for the page before any play.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "sides": self.sides.iter().map(|side| side.title).collect::<Vec<_>>(),
            "settings": self.settings.iter().map(|setting| setting.to_json()).collect::<Vec<_>>(),
            "seed": self.seed,
        })
    }

    /// Reads the settings of a request: an object with some of the settings and the seed, or nothing.
    ///
    /// # Errors
    /// The first member that is unknown or out of range.
    pub fn parse(&self, body: &[u8]) -> Result<Settings, Invalid> {
        Settings::parse(body, self.settings, self.seed)
    }

    /// The players and the counters.
    pub fn begin(&self, settings: &Settings) -> Value {
        let clients = (self.clients)(settings);
        let side = |side: &Side| json!({ "id": side.id, "title": side.title, "how": side.how, "clients": clients });
        let counter = |counter: &Counter| json!({ "name": counter.name, "label": counter.label, "help": counter.help });
        json!({
            "story": self.name,
            "title": self.title,
            "seed": settings.seed,
            "settings": settings.to_json(),
            "sides": self.sides.iter().map(side).collect::<Vec<_>>(),
            "lead": self.counters.first().map(|counter| counter.name),
            "counters": self.counters.iter().chain(&COSTS).map(counter).collect::<Vec<_>>(),
        })
    }
}

/// A client for each of the writers in the settings: `user 1`, `user 2` …
pub fn numbered(name: &str, settings: &Settings) -> Vec<String> {
    (1..=settings.get("writers")).map(|number| format!("{name} {number}")).collect()
}

/// The number of rows of a table, without tombstones. A burned create leaves one too.
pub fn live_rows(engine: &Engine, table: &str) -> i64 {
    let scan = json!({
        "TableName": table,
        "Select": "COUNT",
        "FilterExpression": "attribute_not_exists(#purgeAt)",
        "ExpressionAttributeNames": { "#purgeAt": "_purgeAt" },
    });
    engine.raw("Scan", &scan)["Count"].as_i64().unwrap_or(0)
}

/// `1 change was`, `2 changes were`.
pub fn were(count: i64, thing: &str) -> String {
    if count == 1 { format!("1 {thing} was") } else { format!("{count} {thing}s were") }
}
