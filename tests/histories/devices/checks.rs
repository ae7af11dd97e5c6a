//! Every invariant of a history, from what the engine applied, what the writers were told and what is stored.

use super::record::{Ended, Ledger, Operation, REMEMBERED, Told, is_live, state_of};
use super::timeline::Timeline;
use fencepost::ItemVersion;

pub const APPLIED_TWICE: &str = "a change was applied twice";
pub const DENIED: &str = "told not applied, but it was";
pub const NEVER_APPLIED: &str = "told applied, but it was not";
pub const TOLD_ANOTHER: &str = "told a value that was never stored at its version";
pub const MADE_UP: &str = "told a state that it did not make";

/// The most ids that the row remembers in these histories. A row forgets an id some commits after the R-th, because one
/// write forgets four at most, and bare adds and burns none.
const MOST_REMEMBERED: u64 = 3 * REMEMBERED;

/// Every invariant of a history, from what the engine applied, what the writers were told and what is stored.
pub fn violations(ended: &Ended) -> Vec<String> {
    let timeline = Timeline::of(ended);
    let mut found: Vec<_> = ended.done.iter().filter_map(|operation| check(operation, &timeline)).collect();
    found.extend(timeline.breaks_a_count());
    found.extend(timeline.breaks_the_value(&ended.done));
    found.extend(timeline.breaks_what_a_build_does_not_know(&ended.done));
    let remembered = timeline.most_remembered();
    if remembered > MOST_REMEMBERED {
        found.push(format!("the row remembers {remembered} writes"));
    }
    if timeline.last() != &ended.row {
        found.push(format!("the row was not left by its last commit: {}", ended.row));
    }
    found
}

/// What an operation was told, against the state that it demanded.
fn contradicts_its_demand(operation: &Operation) -> Option<&'static str> {
    let at = operation.asked.at?;
    let is_next = |next: &ItemVersion| (next.incarnation, next.version.get()) == (at.incarnation, at.version.get() + 1);
    match &operation.told {
        Told::Applied(next, _) => (!is_next(next)).then_some("applied to another state than it demanded"),
        Told::Saw(there, _) => (*there == at).then_some("refused, though the state was what it demanded"),
        _ => None,
    }
}

/// What an operation was told, against what was applied.
fn check(operation: &Operation, timeline: &Timeline) -> Option<String> {
    let mine: Vec<_> = timeline.effects_of(operation.number).collect();
    let fail = |why: &str| Some(format!("{why}: {operation:?}, applied {} times", mine.len()));
    if mine.len() > 1 {
        return fail(APPLIED_TWICE);
    }
    if let Some(why) = contradicts_its_demand(operation) {
        return fail(why);
    }
    match (&operation.told, mine.first()) {
        (Told::Unknown, _) => None,
        (Told::Applied(..) | Told::Landed, None) => fail(NEVER_APPLIED),
        (Told::Applied(at, _), Some(applied)) if state_of(applied.row) != Some(*at) => {
            fail(&format!("{MADE_UP}: {}", applied.row))
        }
        (Told::Applied(_, Some((at, ledger))), Some(_)) if !timeline.had(*at, ledger) => fail(TOLD_ANOTHER),
        (Told::Applied(..) | Told::Landed, Some(applied)) => {
            let is_outside = applied.time < operation.began || applied.time > operation.ended;
            if is_outside { fail("applied outside its call, and told so") } else { None }
        }
        // The one honest exception: an add was refused, nothing else was pending, and a network that delivers a second
        // copy after the answer applies it when there is room again.
        (_, Some(applied)) if applied.is_copy_of_refused && operation.adds() => None,
        (_, Some(_)) => fail(DENIED),
        (told, None) => {
            let is_true = match told {
                Told::Saw(at, ledger) => timeline
                    .was(operation, |row| state_of(row) == Some(*at) && Ledger::stored(row).as_ref() == Some(ledger)),
                Told::OutOfRange(at, ledger) => timeline.was(operation, |row| {
                    let has_room = ledger.added(operation.number).is_right();
                    state_of(row) == Some(*at) && Ledger::stored(row).as_ref() == Some(ledger) && !has_room
                }),
                Told::SawNothing => timeline.was(operation, |row| !is_live(row)),
                _ => true,
            };
            if is_true { None } else { fail("told a state that never was during its call") }
        }
    }
}
