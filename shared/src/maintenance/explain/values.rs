//! [`Explanation`]: the account of a row. Attributes in words.

use crate::timestamp::Timestamp;
use fencepost_core::AttributeValue;
use fencepost_core::format::AsKind;
use fencepost_core::format::item::Attributes;
use std::fmt;
use std::time::Duration;

/// The kind of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// An item that this crate has written.
    Live,
    /// The mark that a delete leaves.
    Tombstone,
    /// An item of another program. The first change adopts it.
    Foreign,
    /// A lease.
    Lease,
    /// A row of a table where the newest instance wins.
    Mapping,
    /// A row that contradicts itself. This crate refuses to change it
    /// ([`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem)).
    Damaged,
}

impl Kind {
    /// The kind in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Live => "live",
            Kind::Tombstone => "tombstone",
            Kind::Foreign => "foreign",
            Kind::Lease => "lease",
            Kind::Mapping => "mapping",
            Kind::Damaged => "damaged",
        }
    }
}

/// The account of a row.
///
/// `Display` writes all sentences, one per line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The kind of the row.
    pub kind: Kind,
    /// Its version, if that can be read.
    pub version: Option<u64>,
    /// Its incarnation in base64url, as in the `ETag`, if that can be read.
    pub incarnation: Option<String>,
    /// The time after which TTL or a sweep may remove a tombstone, in epoch seconds, if that can be read.
    pub purge_at: Option<u64>,
    /// Facts, in sentences.
    pub sentences: Vec<String>,
    /// Problems, in sentences. A row that is not damaged may have some too.
    pub problems: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentences.iter().try_for_each(|sentence| writeln!(f, "{sentence}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "Wrong: {problem}"))
    }
}

impl Explanation {
    pub(super) fn new(kind: Kind) -> Self {
        let (sentences, problems) = (Vec::new(), Vec::new());
        Explanation { kind, version: None, incarnation: None, purge_at: None, sentences, problems }
    }

    /// A row with a problem of its own kind is damaged.
    pub(super) fn if_damaged(mut self) -> Self {
        if !self.problems.is_empty() {
            self.kind = Kind::Damaged;
        }
        self
    }
}

const SHOWN: usize = 40;

/// A number of this crate in a row.
pub(super) enum Whole {
    Absent,
    Is(u64),
    /// Something else. The sentence names the found and the expected value.
    Wrong(String),
}

impl Whole {
    pub(super) fn read(attributes: &Attributes, name: &str, from: u64, to: u64) -> Self {
        let Some(value) = attributes.get(name) else { return Whole::Absent };
        let number = value.as_n().and_then(|number| number.parse().ok());
        match number.filter(|number| (from..=to).contains(number)) {
            Some(number) => Whole::Is(number),
            None => Whole::Wrong(format!(
                "`{name}` is {}, and must be a whole number from {from} to {to}.",
                in_words(value)
            )),
        }
    }

    /// The number, if it is one. Errors go to `problems`.
    pub(super) fn unless_wrong(self, problems: &mut Vec<String>) -> Option<u64> {
        match self {
            Whole::Is(number) => Some(number),
            Whole::Absent => None,
            Whole::Wrong(sentence) => {
                problems.push(sentence);
                None
            }
        }
    }
}

pub(super) fn in_words(value: &AttributeValue) -> String {
    let count = |kind: &str, size: usize| format!("{kind} of {size}");
    match value {
        AttributeValue::S(text) => format!("the text {}", quoted(text)),
        AttributeValue::N(number) => format!("the number {}", cut(number)),
        AttributeValue::B(bytes) => match bytes.len() {
            1 => "1 byte".to_owned(),
            size => format!("{size} bytes"),
        },
        AttributeValue::Bool(truth) => truth.to_string(),
        AttributeValue::Null(_) => "null".to_owned(),
        AttributeValue::M(map) => count("a map", map.len()),
        AttributeValue::L(list) => count("a list", list.len()),
        AttributeValue::Ss(set) | AttributeValue::Ns(set) => count("a set", set.len()),
        AttributeValue::Bs(set) => count("a set", set.len()),
    }
}

/// A text in quotes, without control characters, and cut if it is long.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A moment in epoch seconds, and how far it is from `now`. A moment beyond the calendar is shown as its number.
pub(super) fn when(epoch_seconds: u64, now: Timestamp) -> String {
    moment_and_distance(epoch_seconds.checked_mul(1000), epoch_seconds, now)
}

/// The same for epoch milliseconds.
pub(super) fn when_millis(epoch_millis: u64, now: Timestamp) -> String {
    moment_and_distance(Some(epoch_millis), epoch_millis, now)
}

fn moment_and_distance(millis: Option<u64>, number: u64, now: Timestamp) -> String {
    let Some(moment) = millis.and_then(Timestamp::from_epoch_millis) else {
        return format!("{number}, which no calendar has");
    };
    let (later, earlier) = (moment.since(now), now.since(moment));
    if later.is_zero() { format!("{moment}, {} ago", span(earlier)) } else { format!("{moment}, in {}", span(later)) }
}

fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    plural(number, unit)
}

/// `1 write`, `2 writes`, `2 entries`.
pub(super) fn plural(number: u64, thing: &str) -> String {
    match (number, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) if !stem.ends_with('a') => format!("{number} {stem}ies"),
        _ => format!("{number} {thing}s"),
    }
}
