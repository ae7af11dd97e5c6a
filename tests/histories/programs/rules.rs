//! The rules of leases, and of tables where the newest instance wins: what may be told of them. The audit checks their rows.

use super::plan::{LeaseOp, NewestOp, Op};
use super::player::{LEADERS, LEASES};
use super::rows::{Ended, Facts, Rows};
use super::told::{About, Hold, Note, Outcome, SKEW, Stand};
use crate::harness::states::number;
use crate::histories::history::{DENIED, NEVER_APPLIED};
use fencepost_test::Touched;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

pub const NOT_HELD: &str = "written though the lease was not held under its token";
pub const TWO_BELIEVED: &str = "two held the lease at one moment though their clocks agree";

/// A row after a write. `None` if there is no row.
struct After<S> {
    time: Instant,
    op: u64,
    write: usize,
    state: Option<S>,
}

/// A row in all its states.
struct Line<S>(Vec<After<S>>);

impl<S> Line<S> {
    fn of(ended: &Ended, table: &str, read: impl Fn(&Value) -> S) -> Self {
        let states = ended.applied.iter().enumerate().filter_map(|(write, applied)| {
            let row = applied.left_in(table, &ended.scene)?;
            let state = row.is_object().then(|| read(row));
            Some(After { time: applied.time, op: applied.op, write, state })
        });
        Line(states.collect())
    }

    /// Whether the row was in such a state at some moment of this time.
    fn was(&self, (from, until): (Instant, Instant), such: impl Fn(Option<&S>) -> bool) -> bool {
        let ends = self.0.iter().map(|after| Some(after.time)).chain([None]);
        let states = self.0.iter().map(|after| (Some(after.time), after.state.as_ref()));
        [(None, None)].into_iter().chain(states).zip(ends).any(|((begins, state), end)| {
            begins.is_none_or(|begins| begins <= until) && end.is_none_or(|end| end >= from) && such(state)
        })
    }

    fn made_by(&self, op: u64) -> impl Iterator<Item = (Instant, &S)> {
        let made = self.0.iter().filter(move |after| after.op == op);
        made.filter_map(|after| Some((after.time, after.state.as_ref()?)))
    }
}

impl Hold {
    fn of_row(row: &Value) -> Self {
        let holder = row.get("holder").and_then(|holder| holder["S"].as_str());
        let [token, renewals, expires_at] =
            ["token", "renewals", "expiresAt"].map(|name| number(row, name).unwrap_or_default());
        Hold { holder: holder.map(str::to_owned), token, renewals, expires_at }
    }

    fn is_under(&self, token: Option<u64>) -> bool {
        self.holder.is_some() && Some(self.token) == token
    }
}

impl Stand {
    fn of_row(row: &Value) -> Self {
        let term = number(row, "term").unwrap_or_else(|| panic!("a whole number: {row}"));
        Stand { live: row.get("_purgeAt").is_none(), ..Stand::of(term, row["node"]["S"].as_str()) }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.who() == other.who()
    }
}

impl Ended {
    /// The broken promises about the lease.
    pub fn breaks_a_lease(&self) -> Vec<String> {
        let line = Line::of(self, LEASES, Hold::of_row);
        let mut found = Vec::new();
        for note in &self.notes {
            found.extend(is_untrue_of_a_lease(note, &line).map(|why| format!("{why}: {note:?}")));
        }
        found.extend(self.written_without_its_lease(&line));
        found.extend(self.two_believed(&line));
        found
    }

    /// Whether an item has seen a higher token than that of its client's lease, or the lease is lost.
    pub fn is_fenced(&self, note: &Note, rows: &Rows) -> bool {
        let states = note.op.rows().into_iter().flat_map(|row| rows.0[&row].iter().map(move |state| (row, state)));
        let mut seen = states
            .filter(|(_, state)| state.time <= note.ended)
            .filter_map(|(row, state)| number(&state.raw, &Facts::of(row.kind).names[5]));
        // Work under a lease has a token of its own.
        matches!(note.op, Op::Lease(LeaseOp::UnderLease(_)))
            || seen.any(|fence| Some(fence) > note.under)
            || is_lost(note, &Line::of(self, LEASES, Hold::of_row))
    }

    /// A transaction that required the lease was applied while that was not held under its token.
    fn written_without_its_lease(&self, line: &Line<Hold>) -> Option<String> {
        let is_check = |one: &Touched| one.step.table == LEASES && one.step.action == "ConditionCheckItem";
        self.applied.iter().enumerate().filter(|(_, applied)| applied.rows.iter().any(is_check)).find_map(
            |(write, applied)| {
                let note = self.notes.iter().find(|note| note.number == applied.op)?;
                let lease = line.0.iter().take_while(|after| after.write < write).last()?.state.as_ref();
                let is_held = lease.is_some_and(|lease| lease.is_under(note.under));
                (!is_held).then(|| format!("{NOT_HELD}: {lease:?}, {note:?}"))
            },
        )
    }

    /// Two clients believed in their leases at one moment. The one that took the lease must be further ahead than is
    /// assumed.
    fn two_believed(&self, line: &Line<Hold>) -> Option<String> {
        let older = self.beliefs.iter().flat_map(|one| self.beliefs.iter().map(move |other| (one, other)));
        older.filter(|(one, other)| one.token < other.token).find_map(|(older, newer)| {
            if older.from.max(newer.from) >= older.until.min(newer.until) {
                return None;
            }
            let is_next = |after: &&After<Hold>| after.state.as_ref().is_some_and(|state| state.token > older.token);
            let taken = line.0.iter().find(is_next)?;
            let taker = self.notes.iter().find(|note| note.number == taken.op)?;
            let is_assumed = Duration::from_millis((taker.ahead - older.ahead).max(0).unsigned_abs()) <= SKEW;
            is_assumed.then(|| format!("{TWO_BELIEVED}: {older:?} and {newer:?}, taken by {taker:?}"))
        })
    }

    /// The broken promises about the newest instance.
    pub fn breaks_the_newest(&self) -> Vec<String> {
        let line = Line::of(self, LEADERS, Stand::of_row);
        let mut found = Vec::new();
        for note in &self.notes {
            found.extend(is_untrue_of_the_newest(note, &line).map(|why| format!("{why}: {note:?}")));
        }
        found
    }
}

/// Whether its client's lease was lost at the end of the call. A lost lease stays lost.
fn is_lost(note: &Note, line: &Line<Hold>) -> bool {
    !line.was((note.ended, note.ended), |state| state.is_some_and(|state| state.is_under(note.under)))
}

/// The mistake in what a client was told of the lease, if any.
fn is_untrue_of_a_lease(note: &Note, line: &Line<Hold>) -> Option<&'static str> {
    let Op::Lease(op) = note.op else { return None };
    let during = (note.began, note.ended);
    let applied = || line.made_by(note.number).next().is_some();
    let releases = matches!(op, LeaseOp::Release | LeaseOp::ReleaseAt);
    match &note.told.about {
        About::Lease(told) => {
            (!line.was(during, |state| state == Some(told))).then_some("told of a lease that never was")
        }
        About::Held(holder, until) => {
            let is_that = |state: &Hold| state.holder.as_ref() == Some(holder) && state.expires_at == *until;
            (!line.was(during, |state| state.is_some_and(is_that))).then_some("told of a holder that never was")
        }
        About::LeaseLost if !is_lost(note, line) => Some("told that the lease is lost, but it was held"),
        About::LeaseReleased if !is_lost(note, line) => Some("told that it was released, but it was held"),
        About::LeaseConflict => applied().then_some(DENIED),
        About::LeaseLost => (releases && applied()).then_some(DENIED),
        // A request of an earlier look may take the lease later, for nobody.
        _ if matches!(op, LeaseOp::AcquireWithin | LeaseOp::UnderLease(_)) => None,
        _ => (matches!(note.told.outcome, Outcome::Failed(_)) && applied()).then_some(DENIED),
    }
}

/// The mistake in what a client was told of the newest instance, if any.
fn is_untrue_of_the_newest(note: &Note, line: &Line<Stand>) -> Option<&'static str> {
    let Op::Newest(op) = &note.op else { return None };
    let during = (note.began, note.ended);
    let mine = match op {
        NewestOp::Register(term, node) => Stand::of(*term, Some(node)),
        NewestOp::Delete(term, node) => Stand { live: false, ..Stand::of(*term, *node) },
        NewestOp::Get => Stand::of(0, None),
    };
    let made = |(time, state): (Instant, &Stand)| *state == mine && (note.began..=note.ended).contains(&time);
    let landed = || line.made_by(note.number).any(made);
    let (is_true, why) = match &note.told.about {
        About::Applied => (landed(), NEVER_APPLIED),
        About::Stands => (line.was(during, |state| state == Some(&mine)), "told of an instance that was not there"),
        About::SupersededBy(by) => {
            let supersedes = |state: &Stand| state.is_same(by) && (!state.live || mine.who() < state.who());
            let is_newer = by.who() >= mine.who();
            (is_newer && line.was(during, |state| state.is_some_and(supersedes)), "told of a newer one that never was")
        }
        About::Shows(shown) => {
            let shows = |state: Option<&Stand>| state.filter(|state| state.live) == shown.as_ref();
            (line.was(during, shows), "told an instance that never was during its call")
        }
        _ => (!matches!(note.told.outcome, Outcome::Failed(_)) || line.made_by(note.number).next().is_none(), DENIED),
    };
    (!is_true).then_some(why)
}
