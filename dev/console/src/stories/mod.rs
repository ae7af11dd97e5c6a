//! The stories: races that are played for real, each on tables of its own.
//!
//! A [`Story`] has one or two sides, which play at once, each on an embedded engine of its own and with the same seed. The
//! functions' own handlers answer the clients. The faults are those of the test kit. Time is virtual, so a seed always gives
//! the same play. In reading order: `settings`, `told`, `cost`, `ledger`, `trace`, `scene`, the stories themselves, and
//! `player`.

mod cost;
mod counting;
mod last_item;
mod late_delete;
mod ledger;
mod naive;
mod player;
mod scene;
mod settings;
mod told;
mod trace;
mod two_leaders;

use fencepost_test::Engine;
use ledger::{Held, Twice};
use scene::{Scene, Verdict};
use serde_json::{Value, json};
use std::pin::Pin;
use std::rc::Rc;

pub use player::{Ended, play};
pub use settings::{Invalid, Setting, Settings};
pub use told::Told;

/// One story.
#[derive(Debug)]
pub struct Story {
    /// Its name in a path.
    pub name: &'static str,
    title: &'static str,
    summary: &'static str,
    /// What can be set of it.
    settings: &'static [Setting],
    /// The seed if a visitor chooses none: one whose play shows what the story is about.
    seed: u64,
    sides: &'static [Side],
    /// The clients, by name.
    clients: fn(&Settings) -> Vec<String>,
    /// The counters of its own. The first one is what it is about.
    counters: &'static [Counter],
    twice: Twice,
}

/// One way to do what a story is about.
#[derive(Debug)]
struct Side {
    id: &'static str,
    title: &'static str,
    how: &'static str,
    /// Its tables, each with its partition key.
    tables: &'static [(&'static str, &'static str)],
    held: Held,
    play: fn(Rc<Scene>, Settings) -> Playing,
    verdict: fn(&Scene) -> Verdict,
}

type Playing = Pin<Box<dyn Future<Output = ()>>>;

/// A number that is shown while a story plays.
#[derive(Clone, Copy, Debug)]
struct Counter {
    name: &'static str,
    label: &'static str,
    help: &'static str,
}

const fn counter(name: &'static str, label: &'static str, help: &'static str) -> Counter {
    Counter { name, label, help }
}

const ACKNOWLEDGED: Counter = counter("acknowledged", "Acknowledged", "Calls that were told that they succeeded.");
const UNKNOWN: Counter = counter("unknown", "Unknown", "Calls that were told that nothing proves what became of them.");
const HELD: Counter = counter("held", "Held", "Effects that are in the table.");
const TWICE: Counter = counter("appliedTwice", "Applied twice", "What was applied more than once.");
const REQUESTS: Counter = counter("requests", "Requests", "Requests that left for DynamoDB.");
const WRITE_UNITS: Counter =
    counter("writeUnits", "Write units", "What DynamoDB charges for the writes, refused ones included.");
const READ_UNITS: Counter = counter("readUnits", "Read units", "What DynamoDB charges for the reads.");
const CONFLICTS: Counter =
    counter("conflicts", "Conflicts", "Requests whose condition did not hold, or that met a transaction.");
const LOST: Counter = counter("lostAnswers", "Lost answers", "Requests whose connection broke before an answer came.");
const RESENDS: Counter = counter("resends", "Resends", "Writes that were sent again, unchanged.");
/// What every request costs, in this order.
const COSTS: [Counter; 6] = [REQUESTS, WRITE_UNITS, READ_UNITS, CONFLICTS, LOST, RESENDS];

/// Every story, in the order of the page.
pub const STORIES: &[&Story] = &[
    &counting::FIVE_USERS,
    &counting::LOST_ANSWERS,
    &last_item::STORY,
    &late_delete::STORY,
    &two_leaders::STORY,
    &counting::ONE_HUNDRED,
];

/// The story with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Story> {
    STORIES.iter().copied().find(|story| story.name == name)
}

impl Story {
    /// What the page is told before anything is played.
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

    /// Reads what a request has set: an object with some of the settings and the seed, or nothing.
    ///
    /// # Errors
    /// The first member that is unknown or out of range.
    pub fn parse(&self, body: &[u8]) -> Result<Settings, Invalid> {
        Settings::parse(body, self.settings, self.seed)
    }

    /// Who plays, and what is counted.
    fn begin(&self, settings: &Settings) -> Value {
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

/// How many rows a table has, without tombstones. A create that was burned leaves one too.
fn live_rows(engine: &Engine, table: &str) -> i64 {
    let scan = json!({
        "TableName": table,
        "Select": "COUNT",
        "FilterExpression": "attribute_not_exists(#purgeAt)",
        "ExpressionAttributeNames": { "#purgeAt": "_purgeAt" },
    });
    engine.raw("Scan", &scan)["Count"].as_i64().unwrap_or(0)
}

/// `1 change was`, `2 changes were`.
fn were(count: i64, thing: &str) -> String {
    if count == 1 { format!("1 {thing} was") } else { format!("{count} {thing}s were") }
}
