//! Every invariant of a history, from what the engine applied, what the writers were told and what is stored.

use super::neighbour::Style;
use super::record::{FOREIGN, KEY, Stored, TABLE, version_of};
use super::writer::{Operation, Scene, Told};
use crate::harness::faults::Applied;
use crate::histories::total::Total;
use fencepost::Version;
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

pub const APPLIED_TWICE: &str = "a change was applied twice";
pub const DENIED: &str = "told not applied, but it was";
pub const NEVER_APPLIED: &str = "told applied, but it was not";
pub const TOLD_ANOTHER: &str = "told a value that was never stored at its version";
pub const LOST_UPDATE: &str = "a write undid what it had not read";
pub const UNDONE: &str = "an old row was put back over a change of Fencepost";

/// A history that is over: all copies have arrived.
pub struct Ended {
    style: Style,
    /// Whether the other program writes only to what it read.
    is_checked: bool,
    applied: Vec<Applied>,
    done: Vec<Operation>,
    key: String,
    row: Value,
}

/// A state that a commit left.
struct State<'a> {
    op: u64,
    time: Instant,
    before: Option<Stored>,
    after: Option<Stored>,
    row: &'a Value,
    is_copy_of_refused: bool,
}

impl State<'_> {
    fn is_effect(&self) -> bool {
        self.before != self.after
    }
}

impl Ended {
    pub fn of(scene: &Arc<Scene>, style: Style, is_checked: bool) -> Self {
        let applied = scene.network.applied().clone();
        let done = std::mem::take(&mut *scene.done.lock().expect("no panic"));
        let row = scene.network.engine.row(TABLE, KEY, &scene.key);
        Ended { style, is_checked, applied, done, key: scene.key.clone(), row }
    }

    fn states(&self) -> Vec<State<'_>> {
        let mut before = None;
        let left = |applied: &Applied| applied.left_in(TABLE, &self.key).is_some();
        let states = self.applied.iter().filter(|applied| left(applied)).map(|applied| {
            let row = applied.left_in(TABLE, &self.key).unwrap_or(&Value::Null);
            let after = Stored::of(row);
            let Applied { op, time, is_copy_of_refused, .. } = *applied;
            State { op, time, before: std::mem::replace(&mut before, after.clone()), after, row, is_copy_of_refused }
        });
        states.collect()
    }

    pub fn violations(&self) -> Vec<String> {
        let states = self.states();
        let mut found: Vec<_> = self.done.iter().filter_map(|operation| check(operation, &states)).collect();
        found.extend(states.iter().filter_map(|state| self.lost_update(state).or_else(|| self.undone(state))));
        if states.last().is_some_and(|last| *last.row != self.row) {
            found.push(format!("the row was not left by its last commit: {}", self.row));
        }
        found
    }

    pub fn judged(&self) -> Vec<String> {
        register::judge(None, self.seen(&self.states())).err().into_iter().collect()
    }

    /// What the clients saw of the item, the other program among them, for a judge that knows nothing else.
    fn seen(&self, states: &[State<'_>]) -> Vec<SeenOf<Stored>> {
        let mut seen: Vec<_> = self.done.iter().filter_map(Operation::seen).collect();
        // A refused write whose second copy the network delivered later: nobody knows what became of that copy.
        let copied = |state: &&State<'_>| state.is_copy_of_refused && state.op < FOREIGN;
        for copy in states.iter().filter(copied) {
            let operation = self.done.iter().find(|operation| operation.number == copy.op);
            seen.extend(operation.and_then(Operation::may_come_again));
        }
        for state in states.iter().filter(|state| state.op >= FOREIGN && state.is_effect()) {
            let (op, told) = (Op::Put(state.after.clone()), Some(register::Told::Done(None)));
            let time = state.time.into_std();
            seen.push(Seen { client: FOREIGN, began: time, ended: time, op, told });
        }
        seen
    }

    /// A write that makes something else of the value than it makes of what it read: it undid a write that came between.
    /// Where the other program demands nothing, only the writes of Fencepost are held to that.
    fn lost_update(&self, state: &State<'_>) -> Option<String> {
        let State { op, before, after, .. } = state;
        let expected = if *op >= FOREIGN {
            let wrote = after.as_ref().filter(|_| self.is_checked)?;
            let read = before.clone().unwrap_or(Stored { operations: Vec::new(), count: 0 });
            let is_first = wrote.operations.len() == 1 && wrote.count == 0;
            Some(if is_first { Stored::new(*op) } else { read.changed(*op) })
        } else {
            let operation = self.done.iter().find(|operation| operation.number == *op)?;
            match operation.what {
                "create" => Some(Stored::new(*op)),
                "delete" | "delete at version" => None,
                "add" | "add with a note" => before.as_ref().map(Stored::added),
                _ => before.as_ref().map(|before| before.changed(*op)),
            }
        };
        let is_right = !state.is_effect() || *after == expected;
        (!is_right).then(|| format!("{LOST_UPDATE}: operation {op} made {after:?} of {before:?}"))
    }

    /// A copy of an old row that lacks a change which was there.
    fn undone(&self, state: &State<'_>) -> Option<String> {
        let copies = self.style == Style::CopiesThrough && state.op >= FOREIGN;
        let (before, after) = (state.before.as_ref().filter(|_| copies)?, state.after.as_ref());
        let is_gone =
            |number: &&u64| **number < FOREIGN && after.is_none_or(|after| !after.operations.contains(number));
        before.operations.iter().find(is_gone).map(|number| format!("{UNDONE}: operation {number}"))
    }

    pub fn total(&self) -> Total {
        let states = self.states();
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|operation| such(operation)).count();
        let has_landed = |operation: &Operation| states.iter().any(|s| s.op == operation.number && s.is_effect());
        let is_applied = |operation: &Operation| matches!(operation.told, Told::Applied(..) | Told::Landed);
        let is_unknown = |operation: &Operation| operation.told == Told::Unknown;
        let is_adoption = |pair: &[State<'_>]| {
            let has_incarnation = |state: &State<'_>| state.row.get("_incarnation").is_some();
            pair[0].after.is_some() && !has_incarnation(&pair[0]) && has_incarnation(&pair[1])
        };
        let is_burn = |state: &&State<'_>| state.op < FOREIGN && !state.is_effect();
        Total::of(&[
            ("ours", states.iter().filter(|state| state.op < FOREIGN && state.is_effect()).count()),
            ("foreign", states.iter().filter(|state| state.op >= FOREIGN).count()),
            ("adoptions", states.windows(2).filter(|pair| is_adoption(pair)).count()),
            ("inTransactions", count(&|operation| operation.told == Told::Landed)),
            ("burns", states.iter().filter(is_burn).count()),
            ("toldApplied", count(&is_applied)),
            ("toldNotApplied", count(&|operation| !is_applied(operation) && !is_unknown(operation))),
            ("refusalsMadeUntrue", count(&|o| has_landed(o) && !is_unknown(o) && !is_applied(o))),
            ("unknown", count(&is_unknown)),
            ("unknownThatLanded", count(&|operation| is_unknown(operation) && has_landed(operation))),
        ])
    }
}

/// What an operation was told, against what was applied.
fn check(operation: &Operation, states: &[State<'_>]) -> Option<String> {
    let mine: Vec<_> = states.iter().filter(|state| state.op == operation.number && state.is_effect()).collect();
    let fail = |why: &str| Some(format!("{why}: {operation:?}, applied {} times", mine.len()));
    // A network that delivers a second copy of a refused write may apply it later, where the values have come back. What
    // was refused was not applied so far, and the change was decided again since.
    let certain: Vec<_> = mine.iter().filter(|state| !state.is_copy_of_refused).collect();
    if certain.len() > 1 {
        return fail(APPLIED_TWICE);
    }
    match (&operation.told, certain.first()) {
        (Told::Applied(..) | Told::Landed, None) if mine.is_empty() => fail(NEVER_APPLIED),
        (Told::Applied(version, _), Some(state)) if state.row.is_object() && version_of(state.row) != *version => {
            fail("told a version that it did not make")
        }
        (Told::Applied(_, Some((at, shown))), Some(_)) if !had(states, *at, shown) => fail(TOLD_ANOTHER),
        (Told::Applied(..) | Told::Landed, Some(state))
            if state.time < operation.began || state.time > operation.ended =>
        {
            fail("applied outside its call, and told so")
        }
        (Told::Applied(..) | Told::Landed | Told::Unknown, _) => None,
        (_, Some(_)) => fail(DENIED),
        (told, None) => {
            let is_true = match told {
                Told::Saw(at, stored) => {
                    was(operation, states, |row| Stored::of(row).as_ref() == Some(stored) && version_of(row) == *at)
                }
                Told::SawNothing => was(operation, states, |row| Stored::of(row).is_none()),
                _ => true,
            };
            if is_true { None } else { fail("told a state that never was during its call") }
        }
    }
}

/// Whether the row had this value at this version.
fn had(states: &[State<'_>], at: Version, value: &Stored) -> bool {
    states.iter().any(|state| version_of(state.row) == at && state.after.as_ref() == Some(value))
}

/// Whether the row was in such a state at some moment of the operation.
fn was(operation: &Operation, states: &[State<'_>], such: impl Fn(&Value) -> bool) -> bool {
    let from = [(None, &Value::Null)].into_iter().chain(states.iter().map(|state| (Some(state.time), state.row)));
    let until = states.iter().map(|state| Some(state.time)).chain([None]);
    from.zip(until).any(|((from, row), until)| {
        let overlaps =
            from.is_none_or(|from| from <= operation.ended) && until.is_none_or(|until| until >= operation.began);
        overlaps && such(row)
    })
}
