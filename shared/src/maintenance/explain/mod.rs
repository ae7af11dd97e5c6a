//! [`explain`] (pure): the past of a row and its problems, in plain sentences.

mod memory;
mod others;
mod values;

use crate::settings::Settings;
use crate::timestamp::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fencepost_core::Names;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::{self, Deletes, Layout};
use fencepost_core::format::row::{self, Row};
use fencepost_core::format::{AsKind, Unwritable};
use fencepost_core::hold::{Hold, read_holds};
use memory::{NAMED, explain_memory};
use others::{explain_lease, explain_mapping, is_lease, is_mapping};
pub use values::{Explanation, Kind};
use values::{Whole, in_words, plural, when};

const MAX_VERSION: u64 = (1 << 53) - 1;

/// Explains a row from its attributes, in a table that is set up like this.
///
/// It takes any attributes: each missing, malformed or absurd one becomes a sentence.
///
/// ```
/// # fn main() -> Result<(), fencepost::InvalidValue> {
/// use fencepost::AttributeValue;
/// use fencepost::maintenance::{Kind, explain};
/// use fencepost::{Names, Settings, Timestamp};
/// use std::collections::HashMap;
///
/// let settings = Settings::without_ttl().swept().names(Names::DEFAULT.version("version"));
/// let row = HashMap::from([("version".to_owned(), AttributeValue::N("7".to_owned()))]);
/// let told = explain(&row, settings, Timestamp::from_rfc3339("2026-03-07T10:00:00Z")?);
/// assert_eq!(told.kind, Kind::Foreign);
/// assert_eq!(told.sentences[0], "Another program wrote this row. Its version `version` is 7.");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn explain(attributes: &Attributes, settings: Settings, now: Timestamp) -> Explanation {
    explain_in(attributes, &Layout { settings: settings.0, ..Layout::of_key("") }, now)
}

/// Explains a row of a table where the newest instance wins. `instance` has the names in its
/// [`LwwRecord`](crate::lww::LwwRecord): `ORDERED_BY` and `NAMED_BY`. Without them, [`explain`] knows only the mappings of the
/// function `host-mapping`.
#[must_use]
pub fn explain_instance(attributes: &Attributes, instance: [&'static str; 2], now: Timestamp) -> Explanation {
    explain_in(attributes, &Layout { instance: Some(instance), ..Layout::of_key("") }, now)
}

pub(super) fn explain_in(attributes: &Attributes, layout: &Layout, now: Timestamp) -> Explanation {
    let (kind, row) = kind_of(attributes, layout);
    match kind {
        Kind::Lease => explain_lease(attributes, now),
        Kind::Mapping => explain_mapping(attributes, layout, now),
        _ => explain_row(attributes, &layout.names, kind, row, now),
    }
}

/// The kind of a row, with the row as the operations read it: neither leases and mappings nor damaged rows.
pub(super) fn kind_of(attributes: &Attributes, layout: &Layout) -> (Kind, Result<Row, Unwritable>) {
    let has = |name: &str| attributes.contains_key(name);
    let Names { incarnation, buried, .. } = layout.names;
    // A mark counts wherever there is one. So the tables in which deletes leave marks need no setting.
    let deletes = if has(buried) && layout.deletes == Deletes::Expire { Deletes::Sweep } else { layout.deletes };
    let settings = layout::Settings { deletes, ..layout.settings };
    let row = Row::read(&Layout { settings, ..*layout }, attributes.clone());
    let kind = match &row {
        _ if !has(incarnation) && is_lease(attributes) => Kind::Lease,
        _ if !has(incarnation) && is_mapping(attributes, layout) => Kind::Mapping,
        Err(_) => Kind::Damaged,
        Ok(row) if row.at.incarnation.is_foreign() => Kind::Foreign,
        Ok(row) if row.is_tombstone => Kind::Tombstone,
        Ok(_) => Kind::Live,
    };
    (kind, row)
}

fn explain_row(
    attributes: &Attributes,
    names: &Names,
    kind: Kind,
    row: Result<Row, Unwritable>,
    now: Timestamp,
) -> Explanation {
    let mut told = Explanation::new(kind);
    let is_own = attributes.contains_key(names.incarnation);
    let version = Whole::read(attributes, names.version, u64::from(is_own), MAX_VERSION);
    told.version = version.unless_wrong(&mut told.problems);
    if is_own {
        explain_identity(attributes, names, &mut told);
    } else {
        explain_foreign(attributes, names, &mut told);
    }
    explain_tombstone(attributes, names, now, &mut told);
    if let Some(memory) = attributes.get(names.writes) {
        explain_memory(names.writes, memory, told.version, &mut told);
    }
    if let Some(fence) = Whole::read(attributes, names.fence, 0, u64::MAX).unless_wrong(&mut told.problems) {
        told.sentences.push(format!("It refuses writes under a fencing token below {fence}."));
    }
    explain_line(attributes, names, &mut told);
    explain_holds(attributes, names, &mut told);
    if let (Err(failure), true) = (row, told.problems.is_empty()) {
        told.problems.push(format!("{failure}."));
    }
    told
}

fn explain_identity(attributes: &Attributes, names: &Names, told: &mut Explanation) {
    for name in [names.version, names.writes].iter().filter(|name| !attributes.contains_key(**name)) {
        told.problems.push(format!("`{name}` is missing, though the row has an incarnation."));
    }
    if let Some(value) = attributes.get(names.incarnation) {
        let bytes = value.as_b().and_then(|bytes| <[u8; 8]>::try_from(bytes.as_slice()).ok());
        if bytes.is_none() {
            let what = in_words(value);
            told.problems.push(format!("`{}` is {what}, and must be 8 bytes.", names.incarnation));
        }
        told.incarnation = bytes.map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    }
    let at = told.version.map_or_else(|| "an unreadable version".to_owned(), |version| format!("version {version}"));
    told.sentences.push(match told.kind {
        Kind::Damaged => format!("This crate wrote this row, at {at}. It does not change the row as it is."),
        Kind::Tombstone => format!("A tombstone: a delete made {at}."),
        _ => format!("A live item at {at}."),
    });
    if let (Some(version), Some(incarnation), true) = (told.version, &told.incarnation, told.kind == Kind::Live) {
        told.sentences.push(format!("Its ETag is \"{version}.{incarnation}\"."));
    }
}

fn explain_foreign(attributes: &Attributes, names: &Names, told: &mut Explanation) {
    let name = names.version;
    told.sentences.push(match told.version {
        Some(version) => format!("Another program wrote this row. Its version `{name}` is {version}."),
        None if attributes.contains_key(name) => "Another program wrote this row.".to_owned(),
        None => format!("Another program wrote this row. It has no version `{name}`."),
    });
    told.sentences.push(match (told.kind, told.version) {
        (Kind::Damaged, _) => "It cannot be adopted as it is.".to_owned(),
        (_, version) => format!("The first change adopts it and makes version {}.", version.unwrap_or(0) + 1),
    });
    for (name, what) in [(names.writes, "a memory"), (names.buried, "the mark of a tombstone")] {
        if attributes.contains_key(name) {
            told.problems.push(format!("It has {what} `{name}` and no incarnation: another program dropped that."));
        }
    }
}

/// The tickets of writers that met at the row.
fn explain_line(attributes: &Attributes, names: &Names, told: &mut Explanation) {
    let mut number = |name| Whole::read(attributes, name, 0, u64::MAX).unless_wrong(&mut told.problems);
    let (given, served) = (number(names.given), number(names.served));
    if let Some(given) = given {
        let tickets = plural(given, "ticket");
        told.sentences.push(format!("Writers that met here took {tickets}. They only wait by them."));
    }
    if let Some(served) = served {
        told.sentences.push(format!("The last ticket whose writer has committed is number {served}."));
    }
}

/// The parts of its number that orders hold, and the attempt that placed it.
fn explain_holds(attributes: &Attributes, names: &Names, told: &mut Explanation) {
    if let Some(id) = attributes.get(names.placed_by).and_then(row::read_id) {
        let id = URL_SAFE_NO_PAD.encode(id);
        told.sentences.push(format!("The attempt {id} placed it. Holds under this id belong to it."));
    }
    match read_holds(names, attributes) {
        Err(failure) => told.problems.push(format!("{failure}.")),
        Ok(holds) => {
            for Hold { attempt, quantity, key, .. } in holds.iter().take(NAMED) {
                let order = key.iter().map(in_words).collect::<Vec<_>>().join(" and ");
                told.sentences
                    .push(format!("The attempt {} holds {quantity} for the row whose key is {order}.", attempt.name()));
            }
            if holds.len() > NAMED {
                told.sentences.push(format!("It has {} in all.", plural(holds.len() as u64, "hold")));
            }
        }
    }
}

/// The mark and the time of a tombstone, also where another program made it an item again.
fn explain_tombstone(attributes: &Attributes, names: &Names, now: Timestamp, told: &mut Explanation) {
    let purge_at = Whole::read(attributes, names.purge_at, 0, u64::MAX).unless_wrong(&mut told.problems);
    let buried = Whole::read(attributes, names.buried, 0, u64::MAX).unless_wrong(&mut told.problems);
    if told.kind != Kind::Tombstone {
        if let Some(buried) = buried.filter(|_| told.kind == Kind::Live) {
            let sentence = format!("A delete made version {buried}, and another program wrote to the row after that.");
            told.sentences.push(sentence);
        }
        if let Some(purge_at) = purge_at {
            let (name, when) = (names.purge_at, when(purge_at, now));
            told.sentences.push(format!("If `{name}` is the TTL attribute, TTL may remove the row at {when}."));
        }
        return;
    }
    told.purge_at = purge_at;
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

#[cfg(test)]
mod tests;
