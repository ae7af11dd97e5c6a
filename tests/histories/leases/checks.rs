//! Checks a history by the applied writes, the leaders' answers and beliefs, and the stored rows.

use super::record::{Belief, Done, Told, What};
use super::record::{REPORTS, Scene};
use super::timeline::{Change, Protected, State, Timeline};
use crate::harness::engine::Engine;
use crate::harness::faults::Applied;
use crate::harness::states::number;
use crate::histories::history::{APPLIED_TWICE, DENIED, NEVER_APPLIED, without_count_of_tickets};
use fencepost::lease::Leases;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const FELL: &str = "the tokens of what was written fell";
pub const NOT_HELD: &str = "written though the lease was not held under its token";
pub const NOT_RISEN: &str = "an acquire has no higher token than all before";
pub const TWO_BELIEVED: &str = "two held the lease at one moment though their clocks agree";
pub const RELEASED_RENEWED: &str = "a lease that was released was renewed";
pub const RENEWED_TWICE: &str = "one renewal was applied twice";

/// A finished history: the last holder has written.
pub struct Leaders {
    pub scene: Arc<Scene>,
    pub applied: Vec<Applied>,
    /// The operations with an effect before the calm.
    pub landed: BTreeSet<u64>,
    /// The mistakes during the calm.
    pub wrong: Vec<String>,
}

/// The broken promises, one sentence each.
pub fn violations(engine: &Engine, ended: &Leaders) -> Vec<String> {
    let scene = &ended.scene;
    let timeline = Timeline::of(scene, &ended.applied);
    let done = scene.done.lock().expect("no panic");
    let mut found = ended.wrong.clone();
    found.extend(lease_is_sound(&timeline));
    for (item, requires) in [(scene.fenced(), false), (scene.required(), true)] {
        found.extend(written_in_order(&timeline, &item, requires));
        let stored = without_count_of_tickets(engine.row(REPORTS, "reportId", &item));
        found.extend(written_once(&timeline, &item, &stored, &done));
    }
    for one in done.iter().filter(|one| matches!(one.what, What::Renew { .. })) {
        let renewed = timeline.lease.iter().filter(|state| state.op == one.number && state.change == Change::Renewed);
        let ends: Vec<_> = renewed.map(|state| state.expires_at).collect();
        // A second copy of a renewal has the same end as the first.
        if ends.iter().collect::<BTreeSet<_>>().len() < ends.len() {
            found.push(format!("{RENEWED_TWICE}: {one:?} made it end at {ends:?}"));
        }
    }
    for one in done.iter() {
        found.extend(verdict(&timeline, &done, one).map(|why| format!("{why}: {one:?}")));
    }
    for (older, newer) in both_believed(scene) {
        // The leader that took the lease must be further ahead than is assumed.
        let taken = timeline.lease.iter().find(|state| state.change == Change::Acquired && state.token > older.token);
        let taker = taken.and_then(|state| scene.leader(state.holder.as_deref()?)).unwrap_or(newer.leader);
        let ahead = scene.offsets[taker].saturating_sub(scene.offsets[older.leader]);
        if ahead <= Leases::CLOCK_SKEW {
            found.push(format!("{TWO_BELIEVED}: {older:?} and {newer:?}; leader {taker} took it, {ahead:?} ahead"));
        }
    }
    found
}

/// Tokens rise with every acquire and at no other time. Only a held lease is renewed.
fn lease_is_sound(timeline: &Timeline) -> Vec<String> {
    let mut found = Vec::new();
    let mut highest = 0;
    let mut before: Option<&State> = None;
    for state in &timeline.lease {
        match state.change {
            Change::Acquired if state.token <= highest => found.push(format!("{NOT_RISEN}: {state:?} after {highest}")),
            Change::Renewed if before.is_none_or(|before| before.holder.is_none()) => {
                found.push(format!("{RELEASED_RENEWED}: {state:?}"));
            }
            Change::Renewed | Change::Released if before.is_some_and(|before| before.token != state.token) => {
                found.push(format!("it has another token without an acquire: {state:?}"));
            }
            _ => {}
        }
        highest = highest.max(state.token);
        before = Some(state);
    }
    found
}

/// The tokens of writes never fall. Where a write requires the lease, it was held at that moment.
fn written_in_order(timeline: &Timeline, item: &str, requires: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut highest = 0;
    for Protected { op, token, row, lease, .. } in timeline.writes(item) {
        let say = |why: &str| {
            format!("{why}: operation {op} wrote {item} under {token} after {highest}, and the lease was {lease:?}")
        };
        if *token < highest {
            found.push(say(FELL));
        }
        if requires && !lease.as_ref().is_some_and(|lease| lease.is_held_under(*token)) {
            found.push(say(NOT_HELD));
        }
        if !requires && number(row, "_fence") != Some(*token) {
            found.push(say("another token was left there"));
        }
        highest = highest.max(*token);
    }
    found
}

/// Each commit does the work of its operation and raises the version by one. No operation commits twice.
fn written_once(timeline: &Timeline, item: &str, stored: &Value, done: &[Done]) -> Vec<String> {
    let mut found = Vec::new();
    let whats: BTreeMap<_, _> = done.iter().map(|done| (done.number, done.what)).collect();
    let mut seen = BTreeSet::new();
    for Protected { op, row, before, .. } in timeline.writes(item) {
        let mut say = |why: &str| found.push(format!("{why}: operation {op} made {row} of {before}"));
        if !seen.insert(*op) {
            say(APPLIED_TWICE);
        }
        if number(row, "_version") != Some(number(before, "_version").unwrap_or(0) + 1) {
            say("it left a wrong version");
        }
        let (was, is) = (operations(before), operations(row));
        let appended: Vec<_> = was.iter().copied().chain([*op]).collect();
        let right = match whats.get(op) {
            Some(What::Append | What::Require) => is == appended,
            Some(What::Add) => is == was && number(row, "added") == Some(number(before, "added").unwrap_or(0) + 1),
            Some(What::Delete | What::RequireDelete) => row.get("_purgeAt").is_some(),
            // The write was cancelled together with its work, without a note.
            _ => is == appended || is == was || row.get("_purgeAt").is_some(),
        };
        if !right {
            say("it did not do what it was to do");
        }
    }
    let last = timeline.items.get(item).and_then(|writes| writes.last()).map_or(&Value::Null, |last| last.row);
    if last != stored {
        found.push(format!("the last write to {item} left {last}, but {stored} is there"));
    }
    found
}

fn operations(row: &Value) -> Vec<u64> {
    let list = row.get("operations").and_then(|list| list["L"].as_array());
    list.into_iter().flatten().filter_map(|number| number["N"].as_str()?.parse().ok()).collect()
}

/// The mistake in the answer to an operation, if any.
fn verdict(timeline: &Timeline, done: &[Done], one: &Done) -> Option<&'static str> {
    let applied = timeline.count(one.number, one.what);
    let mut within = timeline.lease_within(one.began, one.ended);
    // A lost lease stays lost: the last state of the call shows it.
    let is_held = |token: u64| timeline.lease_within(one.ended, one.ended).any(|state| state.is_held_under(token));
    let is_lost = || !one.token.is_some_and(is_held);
    let is_own = |number: u64| done.iter().any(|other| other.number == number && other.acquire() == one.acquire());
    let denies = match (&one.told, one.what) {
        // A request of an earlier look may take the lease later, for no leader.
        (Told::NotApplied, What::AcquireWithin) => false,
        // A late second copy of a refused add may find another state than the first.
        (Told::NotApplied | Told::NotFound, What::Add) => !timeline.is_copy_of_refused(one.number),
        (Told::NotApplied | Told::Conflict, _) => true,
        (Told::NotFound | Told::Fenced, what) => what.is_protected() || matches!(what, What::Release { .. }),
        _ => false,
    };
    if denies && applied > 0 {
        return Some(DENIED);
    }
    match &one.told {
        Told::Fenced if matches!(one.what, What::Append | What::Add | What::Delete) => {
            let seen = |write: &Protected| write.time <= one.ended && number(write.row, "_fence") > one.token;
            let is_fenced = timeline.items.values().flatten().any(seen);
            (!is_fenced).then_some("told that the item has seen a higher token, but it had not")
        }
        Told::Fenced => (!is_lost()).then_some("told that the lease is lost, but it was held"),
        Told::NotFound if !one.what.is_protected() => {
            (!is_lost()).then_some("told that there is no lease, but it was held")
        }
        // The judge checks more about another holder.
        Told::Unknown | Told::NotApplied | Told::Conflict | Told::NotFound | Told::Held { .. } => None,
        Told::Lease { token, renewals, expires_at } => {
            let is_that = |state: &State| {
                is_own(state.op) && (state.token, state.renewals, state.expires_at) == (*token, *renewals, *expires_at)
            };
            if let What::Renew { at: Some(at) } = one.what
                && *renewals != at + 1
            {
                return Some("renewed, though it was renewed more often than demanded");
            }
            (!within.any(|state| is_that(state) && state.holder.is_some())).then_some("told of a lease that never was")
        }
        Told::Done if one.what.is_protected() => (applied != 1).then_some(NEVER_APPLIED),
        // Its release may have failed.
        Told::Done if one.what == What::Work => None,
        Told::Done => (!is_lost()).then_some("told that it was released, but it was held"),
    }
}

/// Leaders that believed in the lease at one moment, the one with the lower token first.
pub fn both_believed(scene: &Scene) -> Vec<(Belief, Belief)> {
    let beliefs = scene.beliefs.lock().expect("no panic");
    let mut both = Vec::new();
    for (index, one) in beliefs.iter().enumerate() {
        for other in &beliefs[..index] {
            if one.token != other.token && one.from.max(other.from) < one.until.min(other.until) {
                both.push(if one.token < other.token { (*one, *other) } else { (*other, *one) });
            }
        }
    }
    both
}
