//! [`explain`] (pure): what a row says about its past, and what is wrong with it, in plain sentences.

mod memory;
mod others;
mod values;

use crate::layout::Names;
use crate::protocol::item::Attributes;
use crate::timestamp::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memory::explain_memory;
use others::{explain_lease, explain_mapping, is_lease, is_mapping};
use std::fmt;
use values::{Whole, in_words, when};

/// The largest version.
const MAX_VERSION: u64 = (1 << 53) - 1;

/// What a row is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// An item that this crate has written.
    Live,
    /// What a delete left.
    Tombstone,
    /// An item of another program. The first change adopts it.
    Foreign,
    /// A lease.
    Lease,
    /// A row of a table where the newest instance wins.
    Mapping,
    /// A row that contradicts itself. This crate refuses to change it
    /// ([`Failure::CorruptItem`](crate::Failure::CorruptItem)).
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

/// What a row says about itself.
///
/// `Display` writes all sentences, one per line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// What the row is.
    pub kind: Kind,
    /// Its version, if that can be read.
    pub version: Option<u64>,
    /// Its incarnation in base64url, as in the `ETag`, if that can be read.
    pub incarnation: Option<String>,
    /// The time after which TTL or a sweep may remove a tombstone, in epoch seconds, if that can be read.
    pub purge_at: Option<u64>,
    /// What is so, in sentences.
    pub sentences: Vec<String>,
    /// What is wrong, in sentences. A row that is not damaged may have some too.
    pub problems: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentences.iter().try_for_each(|sentence| writeln!(f, "{sentence}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "Wrong: {problem}"))
    }
}

impl Explanation {
    fn new(kind: Kind) -> Self {
        let (sentences, problems) = (Vec::new(), Vec::new());
        Explanation { kind, version: None, incarnation: None, purge_at: None, sentences, problems }
    }

    /// A row with a problem of its own kind is damaged.
    fn if_damaged(mut self) -> Self {
        if !self.problems.is_empty() {
            self.kind = Kind::Damaged;
        }
        self
    }
}

/// Explains a row from its attributes, in a table whose attributes of this crate have these names.
///
/// It takes any attributes: what is missing, malformed or absurd becomes a sentence.
///
/// ```
/// use aws_sdk_dynamodb::types::AttributeValue;
/// use fencepost::Names;
/// use fencepost::operate::{Kind, explain};
/// use fencepost::timestamp::Timestamp;
/// use std::collections::HashMap;
///
/// let names = Names::DEFAULT.version("version");
/// let row = HashMap::from([("version".to_owned(), AttributeValue::N("7".to_owned()))]);
/// let told = explain(&row, &names, Timestamp::from_rfc3339("2026-03-07T10:00:00Z")?);
/// assert_eq!(told.kind, Kind::Foreign);
/// assert_eq!(told.sentences[0], "Another program wrote this row. Its version `version` is 7.");
/// # Ok::<(), fencepost::timestamp::InvalidTimestamp>(())
/// ```
#[must_use]
pub fn explain(attributes: &Attributes, names: &Names, now: Timestamp) -> Explanation {
    if attributes.contains_key(names.incarnation) {
        return explain_own(attributes, names, now);
    }
    if is_lease(attributes) {
        return explain_lease(attributes, now);
    }
    if is_mapping(attributes) && !attributes.contains_key(names.version) {
        return explain_mapping(attributes, names, now);
    }
    explain_foreign(attributes, names, now)
}

/// A row that has an incarnation.
fn explain_own(attributes: &Attributes, names: &Names, now: Timestamp) -> Explanation {
    let mut told = Explanation::new(Kind::Live);
    told.version = Whole::read(attributes, names.version, 1, MAX_VERSION).unless_wrong(&mut told.problems);
    told.incarnation = incarnation_of(attributes, names, &mut told.problems);
    for name in [names.version, names.writes].iter().filter(|name| !attributes.contains_key(**name)) {
        told.problems.push(format!("`{name}` is missing, though the row has an incarnation."));
    }
    let purge_at = Whole::read(attributes, names.purge_at, 0, u64::MAX).unless_wrong(&mut told.problems);
    let is_damaged = !told.problems.is_empty();
    explain_life(attributes, names, purge_at, now, &mut told);
    match (told.version, &told.incarnation) {
        (Some(version), Some(incarnation)) => told.sentences.push(format!("Its ETag is \"{version}.{incarnation}\".")),
        _ => told.sentences.push("This crate has written it, and does not change it as it is.".to_owned()),
    }
    let memory = attributes.get(names.writes);
    let is_readable = memory.is_some_and(|memory| explain_memory(names.writes, memory, told.version, &mut told));
    explain_fence(attributes, names, &mut told);
    if is_damaged || !is_readable {
        told.kind = Kind::Damaged;
    }
    told
}

/// A row that has no incarnation, and is no lease and no mapping.
fn explain_foreign(attributes: &Attributes, names: &Names, now: Timestamp) -> Explanation {
    let mut told = Explanation::new(Kind::Foreign);
    let name = names.version;
    let version = Whole::read(attributes, name, 0, MAX_VERSION - 1);
    let sentences: &[String] = match &version {
        Whole::Is(version) => &[
            format!("Another program wrote this row. Its version `{name}` is {version}."),
            format!("The first change adopts it and makes version {}.", version + 1),
        ],
        Whole::Absent => &[
            format!("Another program wrote this row. It has no version `{name}`."),
            "The first change adopts it and gives it one.".to_owned(),
            "Rows of a table where the newest instance wins have none either.".to_owned(),
        ],
        Whole::Wrong(_) => {
            told.kind = Kind::Damaged;
            &["Another program wrote this row. It cannot be adopted as it is.".to_owned()]
        }
    };
    told.sentences.extend_from_slice(sentences);
    told.version = version.unless_wrong(&mut told.problems);
    for (name, what) in [(names.writes, "a memory"), (names.buried, "the mark of a tombstone")] {
        if attributes.contains_key(name) {
            told.problems.push(format!("It has {what} `{name}` and no incarnation: another program dropped that."));
        }
    }
    let name = names.purge_at;
    if let Some(purge_at) = Whole::read(attributes, name, 0, u64::MAX).unless_wrong(&mut told.problems) {
        let when = when(purge_at, now);
        told.sentences.push(format!("If `{name}` is the TTL attribute, TTL may remove it at {when}."));
    }
    explain_fence(attributes, names, &mut told);
    told
}

fn incarnation_of(attributes: &Attributes, names: &Names, problems: &mut Vec<String>) -> Option<String> {
    let value = attributes.get(names.incarnation)?;
    let bytes = value.as_b().ok().and_then(|bytes| <[u8; 8]>::try_from(bytes.as_ref()).ok());
    if bytes.is_none() {
        problems.push(format!("`{}` is {}, and must be 8 bytes.", names.incarnation, in_words(value)));
    }
    bytes.map(|bytes| URL_SAFE_NO_PAD.encode(bytes))
}

/// Whether a row of this crate is an item or a tombstone, and until when.
fn explain_life(attributes: &Attributes, names: &Names, purge_at: Option<u64>, now: Timestamp, told: &mut Explanation) {
    let buried = Whole::read(attributes, names.buried, 1, MAX_VERSION).unless_wrong(&mut told.problems);
    let at = told.version.map_or_else(|| "an unreadable version".to_owned(), |version| format!("version {version}"));
    let has = |name: &str| attributes.contains_key(name);
    // Older builds left no mark.
    let is_tombstone = if has(names.buried) { buried.is_some() && buried == told.version } else { has(names.purge_at) };
    if !is_tombstone {
        told.sentences.push(format!("A live item at {at}."));
        if let Some(buried) = buried {
            let sentence = format!("A delete made version {buried}, and another program wrote to the row after that.");
            told.sentences.push(sentence);
        }
        return;
    }
    (told.kind, told.purge_at) = (Kind::Tombstone, purge_at);
    told.sentences.push(format!("A tombstone: a delete made {at}."));
    let has_passed = |time: u64| now.epoch_millis().is_some_and(|now| time <= now / 1000);
    told.sentences.push(match purge_at {
        Some(time) if has_passed(time) => {
            format!("Its time has passed, so TTL or a sweep may remove it: {}.", when(time, now))
        }
        Some(time) => format!("TTL or a sweep may remove it at {}.", when(time, now)),
        None => "It has no time, so nothing removes it.".to_owned(),
    });
    told.sentences.push("A create goes on from its version.".to_owned());
}

fn explain_fence(attributes: &Attributes, names: &Names, told: &mut Explanation) {
    if let Some(fence) = Whole::read(attributes, names.fence, 0, u64::MAX).unless_wrong(&mut told.problems) {
        told.sentences.push(format!("It refuses writes under a fencing token below {fence}."));
    }
}

#[cfg(test)]
mod tests;
