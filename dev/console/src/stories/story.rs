//! [`Story`]: the play, its clients and its counters, with its [`Settings`] and their values in a request.

use super::ledger::{Held, Totals, Twice};
use super::scene::{Scene, Verdict};
use fencepost_test::Engine;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

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

/// One number that a visitor can set.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its member in a request.
    pub name: &'static str,
    /// Its name on the page.
    pub label: &'static str,
    /// The unit after the number on the page.
    pub unit: &'static str,
    /// The least value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The distance between two values of the slider.
    pub step: u64,
    /// The value if a request does not set it.
    pub default: u64,
}

impl Setting {
    /// How many clients there are.
    pub(super) const fn writers(label: &'static str, default: u64, max: u64) -> Self {
        Setting { name: "writers", label, unit: "", min: 1, max, step: 1, default }
    }

    /// How many changes each client makes.
    pub(super) const fn changes(default: u64, max: u64) -> Self {
        Setting { name: "changes", label: "Changes each", unit: "", min: 1, max, step: 1, default }
    }

    /// How many of 100 answers to writes are lost.
    pub(super) const fn lost_answers(default: u64) -> Self {
        Setting { name: "lostAnswers", label: "Lost answers", unit: "%", min: 0, max: 50, step: 5, default }
    }

    /// By how much one request in ten is late.
    pub(super) const fn late_by() -> Self {
        let label = "One request in ten is late by";
        Setting { name: "lateBy", label, unit: "ms", min: 0, max: 2000, step: 50, default: 0 }
    }

    /// The length of the delay in a story about it.
    pub(super) const fn delay(label: &'static str, default: u64) -> Self {
        Setting { name: "delay", label, unit: "ms", min: 0, max: 60_000, step: 500, default }
    }

    /// Its description for the page.
    pub(super) fn to_json(self) -> Value {
        let Setting { name, label, unit, min, max, step, default } = self;
        json!({ "name": name, "label": label, "unit": unit, "min": min, "max": max, "step": step, "default": default })
    }
}

/// The largest seed: the largest whole number that every reader of JSON keeps.
const MAX_SEED: u64 = (1 << 53) - 1;

/// The settings requested for one play of a story.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// All chance of the play comes from it.
    pub seed: u64,
    values: BTreeMap<&'static str, u64>,
}

/// An unacceptable member of a request.
#[derive(PartialEq, Eq, Debug)]
pub struct Invalid {
    /// A JSON Pointer to the member.
    pub field: String,
    /// The fault, in a sentence.
    pub detail: String,
}

impl Settings {
    /// Reads the body of a request: an object with some of the `known` settings and the seed. An empty body sets nothing,
    /// and then the seed is `seed`.
    ///
    /// # Errors
    /// The first member that is unknown or out of range.
    pub fn parse(body: &[u8], known: &[Setting], seed: u64) -> Result<Self, Invalid> {
        let mut settings =
            Settings { seed, values: known.iter().map(|setting| (setting.name, setting.default)).collect() };
        if body.is_empty() {
            return Ok(settings);
        }
        let body: Map<String, Value> = serde_json::from_slice(body).map_err(|error| Invalid {
            field: String::new(),
            detail: format!("the body must be a JSON object: {error}"),
        })?;
        for (name, value) in body {
            let invalid = |detail| Invalid { field: format!("/{name}"), detail };
            let within = |min: u64, max: u64| {
                let whole = value.as_u64().filter(|whole| (min..=max).contains(whole));
                whole.ok_or_else(|| invalid(format!("{name} must be a whole number from {min} to {max}")))
            };
            if name == "seed" {
                settings.seed = within(0, MAX_SEED)?;
                continue;
            }
            let Some(setting) = known.iter().find(|setting| setting.name == name) else {
                let names: Vec<_> = known.iter().map(|setting| setting.name).collect();
                return Err(invalid(format!("this story has no {name}; it has seed, {}", names.join(", "))));
            };
            settings.values.insert(setting.name, within(setting.min, setting.max)?);
        }
        Ok(settings)
    }

    /// Loses answers to writes in this scene and delays requests, as often as a request set it. One request in ten is
    /// delayed.
    pub(super) fn trouble(&self, scene: &Scene) {
        let lost = u8::try_from(self.get("lostAnswers")).unwrap_or(100);
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

    /// The settings as a request would set them, without the seed.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!(self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Setting] = &[Setting::writers("Users", 5, 20), Setting::lost_answers(10)];

    fn refused(body: &str) -> Invalid {
        Settings::parse(body.as_bytes(), KNOWN, 1).expect_err(body)
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let settings = Settings::parse(b"", KNOWN, 1).expect("defaults");
        assert_eq!((settings.seed, settings.get("writers"), settings.get("lostAnswers")), (1, 5, 10));
        let settings = Settings::parse(br#"{"writers": 20, "seed": 7}"#, KNOWN, 1).expect("two are set");
        assert_eq!((settings.seed, settings.get("writers"), settings.get("lostAnswers")), (7, 20, 10));
        assert_eq!(settings.to_json(), json!({"writers": 20, "lostAnswers": 10}));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, field) in [
            ("[]", ""),
            ("{", ""),
            (r#"{"writers": 21}"#, "/writers"),
            (r#"{"writers": 0}"#, "/writers"),
            (r#"{"writers": "5"}"#, "/writers"),
            (r#"{"writers": 1.5}"#, "/writers"),
            (r#"{"seed": -1}"#, "/seed"),
            (r#"{"seed": 9007199254740992}"#, "/seed"),
            (r#"{"changes": 1}"#, "/changes"),
        ] {
            assert_eq!(refused(body).field, field, "{body}");
        }
        assert_eq!(refused(r#"{"writers": 21}"#).detail, "writers must be a whole number from 1 to 20");
    }
}
