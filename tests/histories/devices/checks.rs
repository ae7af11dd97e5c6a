//! Every invariant of a history, from what the engine applied, what the writers were told and what is stored.

use super::record::{Operation, Told, is_live, state_of};
use crate::harness::faults::Applied;
use crate::histories::total::Total;
use serde_json::Value;

pub const APPLIED_TWICE: &str = "a change was applied twice";
pub const DENIED: &str = "told not applied, but it was";

/// A history that is over: all copies have arrived.
pub struct Ended {
    pub applied: Vec<Applied>,
    pub done: Vec<Operation>,
    /// The row as it is stored.
    pub row: Value,
}

/// What a history that holds was made of.
pub fn total(ended: &Ended) -> Total {
    let told = |such: fn(&Told) -> bool| ended.done.iter().filter(|operation| such(&operation.told)).count();
    let landed = |operation: &&Operation| ended.applied.iter().any(|applied| applied.op == operation.number);
    let unknown = ended.done.iter().filter(|operation| operation.told == Told::Unknown);
    Total::of(&[
        ("commits", ended.applied.len()),
        ("toldApplied", told(|told| matches!(told, Told::Applied(_)))),
        ("toldNotApplied", told(|told| !matches!(told, Told::Applied(_) | Told::Unknown))),
        ("unknown", told(|told| *told == Told::Unknown)),
        ("unknownThatLanded", unknown.filter(landed).count()),
    ])
}

pub fn assert_enough_happened(total: &Total) {
    assert!(total.least(&["toldApplied", "toldNotApplied"]) > total["histories"], "little happened: {total}");
    let told = total["toldApplied"] + total["toldNotApplied"] + total["unknown"];
    assert!(total["unknown"] * 50 < told, "unknown is for the rare case: {total}");
    total.assert_unknown_is_worth_its_name();
}

/// Every invariant of a history, from what the engine applied, what the writers were told and what is stored.
pub fn check(applied: &[Applied], done: &[Operation], row: &Value) -> Result<(), String> {
    let timeline = Timeline(applied);
    for operation in done {
        let mine: Vec<_> = applied.iter().filter(|applied| applied.op == operation.number).collect();
        let fail = |why: String| Err(format!("{why}: {} {operation:?}, applied {} times", operation.what, mine.len()));
        if mine.len() > 1 {
            return fail(APPLIED_TWICE.to_owned());
        }
        match &operation.told {
            Told::Unknown => {}
            Told::Applied(at) => {
                let Some(applied) = mine.first() else { return fail("told applied, but it was not".to_owned()) };
                if state_of(applied.row()) != Some(*at) {
                    return fail(format!("told a state that it did not make: {}", applied.row()));
                }
                if applied.time < operation.began || applied.time > operation.ended {
                    return fail("applied outside its call, and told so".to_owned());
                }
            }
            _ if !mine.is_empty() => return fail(DENIED.to_owned()),
            Told::NotApplied => {}
            Told::Saw(at) if timeline.was(operation, |row| is_live(row) && state_of(row) == Some(*at)) => {}
            Told::SawNothing if timeline.was(operation, |row| !is_live(row)) => {}
            Told::Saw(_) | Told::SawNothing => return fail("told a state that never was during its call".to_owned()),
        }
    }
    let stored = if is_live(row) { row["operations"]["L"].as_array().cloned().unwrap_or_default() } else { Vec::new() };
    for (index, number) in stored.iter().enumerate() {
        if stored[..index].contains(number) {
            return Err(format!("the stored value holds an operation twice: {stored:?}"));
        }
    }
    timeline.rises_by_one()?;
    let commits = u64::try_from(applied.len()).expect("small");
    match state_of(row) {
        Some(at) if at.version.get() == commits => Ok(()),
        None if commits == 0 => Ok(()),
        other => Err(format!("{commits} commits, but the row is at {other:?}")),
    }
}

/// The states that the row went through, in order.
struct Timeline<'a>(&'a [Applied]);

impl Timeline<'_> {
    /// Checks that every commit raised the version by one.
    fn rises_by_one(&self) -> Result<(), String> {
        for (index, one) in self.0.iter().enumerate() {
            let version = state_of(one.row()).map(|at| at.version.get());
            if version != u64::try_from(index + 1).ok() {
                return Err(format!("commit {} left version {version:?}", index + 1));
            }
        }
        Ok(())
    }

    /// Whether the row was in such a state at some moment of the operation.
    fn was(&self, operation: &Operation, such: impl Fn(&Value) -> bool) -> bool {
        let states = std::iter::once((None, &Value::Null)).chain(self.0.iter().map(|one| (Some(one.time), one.row())));
        let ends = self.0.iter().map(|one| Some(one.time)).chain([None]);
        states.zip(ends).any(|((from, row), until)| {
            from.is_none_or(|from| from <= operation.ended)
                && until.is_none_or(|until| until >= operation.began)
                && such(row)
        })
    }
}
