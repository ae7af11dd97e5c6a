//! [`Story`]: the play, its clients and its counters, with its [`Settings`].

use super::ledger::{Held, Totals, Twice};
use super::scene::{Scene, Verdict};
use fencepost_test::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    /// Its settings beside the lost answers. The page shows those above 0.
    pub(super) settings: &'static [Setting],
    /// The seeds of the recorded plays. The play of the first one shows the point of the story.
    pub(super) seeds: [u64; 3],
    /// How many of 100 answers to writes are lost in the recorded plays. The first number is the default.
    pub(super) lost_answers: [u64; 2],
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
        let setting = |one: &Setting| json!({ "label": one.label, "value": one.default, "unit": one.unit });
        let side = |side: &Side| json!({ "id": side.id, "title": side.title, "how": side.how });
        let counter = |counter: &Counter| json!({ "name": counter.name, "label": counter.label, "help": counter.help });
        json!({
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "settings": self.settings.iter().filter(|setting| setting.default > 0).map(setting).collect::<Vec<_>>(),
            "clients": (self.clients)(&self.settings(self.seeds[0])),
            "sides": self.sides.iter().map(side).collect::<Vec<_>>(),
            "lead": self.counters.first().map(|counter| counter.name),
            "counters": self.counters.iter().chain(&COSTS).map(counter).collect::<Vec<_>>(),
        })
    }

    /// Its own settings, with this seed.
    #[must_use]
    pub fn settings(&self, seed: u64) -> Settings {
        let mut values: BTreeMap<_, _> = self.settings.iter().map(|setting| (setting.name, setting.default)).collect();
        values.insert(LOST_ANSWERS, self.lost_answers[0]);
        Settings { seed, values }
    }

    /// Its own settings, with the first seed.
    #[must_use]
    pub fn defaults(&self) -> Settings {
        self.settings(self.seeds[0])
    }

    /// The settings of the recorded plays.
    pub fn recorded(&self) -> impl Iterator<Item = Settings> {
        let lost = self.lost_answers.into_iter();
        lost.flat_map(|lost| self.seeds.map(|seed| self.settings(seed).with(LOST_ANSWERS, lost)))
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

/// One number of a play.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in the settings of a play.
    pub name: &'static str,
    /// Its name on the page.
    pub label: &'static str,
    /// The unit after the number on the page.
    pub unit: &'static str,
    /// Its value in the recorded plays.
    pub default: u64,
}

/// The setting that every story has: how many of 100 answers to writes are lost.
pub const LOST_ANSWERS: &str = "lostAnswers";

impl Setting {
    /// How many clients there are.
    pub(super) const fn writers(label: &'static str, default: u64) -> Self {
        Setting { name: "writers", label, unit: "", default }
    }

    /// How many changes each client makes.
    pub(super) const fn changes(default: u64) -> Self {
        Setting { name: "changes", label: "Changes each", unit: "", default }
    }

    /// By how much one request in ten is late.
    pub(super) const fn late_by() -> Self {
        Setting { name: "lateBy", label: "One request in ten is late by", unit: "ms", default: 0 }
    }

    /// The length of the delay in a story about it.
    pub(super) const fn delay(label: &'static str, default: u64) -> Self {
        Setting { name: "delay", label, unit: "ms", default }
    }
}

/// The settings of one play of a story.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// All chance of the play comes from it.
    pub seed: u64,
    values: BTreeMap<&'static str, u64>,
}

impl Settings {
    /// These settings with another value.
    ///
    /// # Panics
    /// If the story does not have this setting.
    #[must_use]
    pub fn with(mut self, name: &str, value: u64) -> Self {
        *self.values.get_mut(name).unwrap_or_else(|| panic!("the story has no {name}")) = value;
        self
    }

    /// Loses answers to writes in this scene and delays requests, as often as the settings say. One request in ten is
    /// delayed.
    pub(super) fn trouble(&self, scene: &Scene) {
        let lost = u8::try_from(self.get(LOST_ANSWERS)).unwrap_or(100);
        if lost > 0 {
            scene.db().lose_answer().of_writes().with_probability(f64::from(lost) / 100.0);
        }
        let delay = self.get("lateBy");
        if delay > 0 {
            scene.db().delay(Duration::from_millis(delay)).with_probability(0.1);
        }
    }

    /// The value of a setting, or 0 if the story does not have it.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.values.get(name).copied().unwrap_or(0)
    }
}
