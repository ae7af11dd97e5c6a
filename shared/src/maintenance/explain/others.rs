//! Rows of this crate that have no version: leases and mappings.

use super::values::{Explanation, Kind, Whole, in_words, plural, quoted, when, when_millis};
use crate::timestamp::Timestamp;
use fencepost_core::condition::{ACQUIRE_ID, EXPIRES_AT, HOLDER, LEASE_KEY, RENEWALS, TOKEN};
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::Layout;
use fencepost_core::{AttributeValue, Names};

const OF_A_LEASE: [&str; 4] = [TOKEN, RENEWALS, EXPIRES_AT, ACQUIRE_ID];
/// The attributes by which a mapping of the function `host-mapping` is known.
const OF_A_MAPPING: [&str; 2] = ["hostIp", "creationTimestamp"];

pub(super) fn is_lease(attributes: &Attributes) -> bool {
    let missing = OF_A_LEASE.iter().filter(|name| !attributes.contains_key(**name)).count();
    // The table may give its key another name.
    missing == 0 || missing == 1 && attributes.contains_key(LEASE_KEY)
}

/// Whether this is a mapping, perhaps a damaged one, or the tombstone of any row of which the newest instance wins: it has
/// a time, and nothing else of this crate.
pub(super) fn is_mapping(attributes: &Attributes, layout: &Layout) -> bool {
    let names = &layout.names;
    let has = |name: &str| attributes.contains_key(name);
    let is_named = match layout.instance {
        Some(names) => names.into_iter().any(has),
        None => OF_A_MAPPING.into_iter().all(has),
    };
    let is_tombstone =
        has(Names::DEFAULT.purge_at) && ![names.version, names.writes, names.buried].into_iter().any(has);
    is_named && !has(names.version) || is_tombstone
}

pub(super) fn explain_lease(attributes: &Attributes, now: Timestamp) -> Explanation {
    let mut told = Explanation::new(Kind::Lease);
    let problems = &mut told.problems;
    let mut number = |name: &str| match Whole::read(attributes, name, 0, u64::MAX) {
        Whole::Absent => {
            problems.push(format!("`{name}` is missing, and every lease has it."));
            None
        }
        other => other.unless_wrong(problems),
    };
    let (token, renewals, expires_at) = (number(TOKEN), number(RENEWALS), number(EXPIRES_AT));
    match attributes.get(ACQUIRE_ID) {
        None => problems.push(format!("`{ACQUIRE_ID}` is missing, and every lease has it.")),
        Some(AttributeValue::B(_)) => {}
        Some(other) => problems.push(format!("`{ACQUIRE_ID}` is {}, and must be bytes.", in_words(other))),
    }
    let token = token.map_or_else(|| "an unreadable token".to_owned(), |token| format!("token {token}"));
    told.sentences.push(match attributes.get(HOLDER) {
        None => format!("A lease that nobody holds. Its last acquire had {token}, and the next one gets a higher one."),
        Some(AttributeValue::S(holder)) => format!("A lease of {} under {token}.", quoted(holder)),
        Some(other) => {
            problems.push(format!("`{HOLDER}` is {}, and must be a text.", in_words(other)));
            format!("A lease under {token}.")
        }
    });
    if let (Some(expires_at), true) = (expires_at, attributes.contains_key(HOLDER)) {
        told.sentences.push(format!("By the clock of its holder, it ends at {}.", when_millis(expires_at, now)));
    }
    if let Some(renewals) = renewals {
        told.sentences.push(format!("It was renewed {}.", plural(renewals, "time")));
    }
    told.if_damaged()
}

pub(super) fn explain_mapping(attributes: &Attributes, layout: &Layout, now: Timestamp) -> Explanation {
    let mut told = Explanation::new(Kind::Mapping);
    let [_, created_at] = OF_A_MAPPING;
    let order = layout.instance.map_or(created_at, |[order, _]| order);
    let purge = Names::DEFAULT.purge_at;
    let number = Whole::read(attributes, order, 0, u64::MAX).unless_wrong(&mut told.problems);
    told.purge_at = Whole::read(attributes, purge, 0, u64::MAX).unless_wrong(&mut told.problems);
    let what = if attributes.contains_key(purge) { "The tombstone of a mapping" } else { "A mapping" };
    told.sentences.push(format!("{what}: the newest instance wins, so the row has no version."));
    if let Some(number) = number {
        told.sentences.push(match layout.instance {
            Some(_) => format!("Its instance has the number {number}, by which a newer one wins."),
            None => format!("Its instance was created at {}.", when_millis(number, now)),
        });
    }
    if let Some(AttributeValue::S(name)) = layout.instance.and_then(|[_, name]| attributes.get(name)) {
        told.sentences.push(format!("Its instance is {}.", quoted(name)));
    }
    if let Some(purge_at) = told.purge_at {
        told.sentences.push(format!("TTL may remove it at {}.", when(purge_at, now)));
    }
    told.if_damaged()
}
