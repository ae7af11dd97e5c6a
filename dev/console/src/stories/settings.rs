//! The settings of a story, and their values in a request.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

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
