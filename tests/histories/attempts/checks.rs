//! What each change was told, against what the engine applied for it.

use super::client::{Answer, COUNT, NOTES, Operation, SHELVES, Scene, Told};
use crate::harness::faults::Applied;
use crate::histories::total::Total;
use serde_json::Value;
use std::sync::Arc;

pub const APPLIED_TWICE: &str = "a change was applied twice";
pub const DENIED: &str = "told not applied, but it was";
pub const NEVER_APPLIED: &str = "told applied, but it was not";
pub const TOLD_ANOTHER: &str = "told another answer than that of the attempt that was committed";

/// A history that is over: all copies have arrived.
pub struct Ended {
    pub scene: Arc<Scene>,
    pub done: Vec<Operation>,
    /// The shelves at first, and all that was applied.
    pub first: Vec<Value>,
    pub applied: Vec<Applied>,
}

/// What an applied write did to the shelves.
struct Effect<'a> {
    applied: &'a Applied,
    /// By how much it changed each stock.
    changed: [i64; COUNT],
}

/// The parts of a stored shelf: version, stock, and the number of the last update.
type State = (u64, i64, Option<u64>);

fn shelf_of(row: &Value) -> State {
    let number = |name: &str| row[name]["N"].as_str().and_then(|number| number.parse::<i64>().ok());
    let (version, by) = (number("_version").expect("a version"), number("by"));
    (u64::try_from(version).expect("positive"), number("stock").expect("a stock"), by.and_then(|by| by.try_into().ok()))
}

impl Ended {
    /// Each applied write with an effect, and all states of the first shelf. A burn has none.
    fn played(&self) -> (Vec<Effect<'_>>, Vec<State>) {
        let mut now: Vec<_> = self.first.iter().map(shelf_of).collect();
        let (mut effects, mut states) = (Vec::new(), vec![now[0]]);
        for applied in &self.applied {
            let (mut changed, mut updated) = ([0; COUNT], false);
            for shelf in 0..COUNT {
                let Some(row) = applied.left_in(SHELVES, &self.scene.shelf(shelf)) else { continue };
                let after = shelf_of(row);
                changed[shelf] = after.1 - now[shelf].1;
                updated |= after.2 != now[shelf].2;
                now[shelf] = after;
                if shelf == 0 {
                    states.push(after);
                }
            }
            if updated || changed != [0; COUNT] {
                effects.push(Effect { applied, changed });
            }
        }
        (effects, states)
    }

    /// What does not hold; each in a sentence.
    pub fn violations(&self) -> Vec<String> {
        let (effects, states) = self.played();
        self.done.iter().filter_map(|operation| self.check(operation, &effects, &states)).collect()
    }

    fn check(&self, operation: &Operation, effects: &[Effect], states: &[State]) -> Option<String> {
        let mine: Vec<_> = effects.iter().filter(|effect| effect.applied.op == operation.number).collect();
        let why = match (&operation.told, &mine[..]) {
            (_, [_, _, ..]) => APPLIED_TWICE,
            (Told::Applied(_) | Told::Added, []) => NEVER_APPLIED,
            (Told::Applied(answer), [effect]) if !self.is_answer_of(operation, answer, effect, states) => TOLD_ANOTHER,
            // The one honest exception: an add was refused, nothing else was pending, and a second copy is applied later.
            (Told::NotApplied, [effect]) if !effect.applied.is_copy_of_refused => DENIED,
            _ => return None,
        };
        let did: Vec<_> = mine.iter().map(|effect| (effect.changed, &effect.applied.rows)).collect();
        Some(format!("{why}: {operation:?} did {did:?}"))
    }

    fn is_answer_of(&self, operation: &Operation, answer: &Answer, effect: &Effect, states: &[State]) -> bool {
        match *answer {
            Answer::Left(version, stock, by) => {
                let made = effect.applied.left_in(SHELVES, &self.scene.shelf(0)).map(|row| shelf_of(row).0);
                made.is_some_and(|made| made <= version) && states.contains(&(version, stock, by))
            }
            Answer::Took(shelf, amount, decision) => {
                let left = |table: &str, id: &str| effect.applied.left_in(table, id).cloned().unwrap_or_default();
                let shows = |value: &Value, number: String| value["N"] == number.as_str();
                let note = &left(NOTES, &self.scene.note(operation.number, shelf))["amount"];
                let (notes, moves) = (operation.what.contains("note"), operation.what == "move");
                shows(&left(SHELVES, &self.scene.shelf(shelf))["taken"], decision.to_string())
                    && (!notes || shows(note, amount.to_string()))
                    && effect.changed[shelf] == -amount
                    && effect.changed[1 - shelf] == if moves { amount } else { 0 }
            }
        }
    }

    pub fn total(&self) -> Total {
        let (effects, _) = self.played();
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|operation| such(operation)).count();
        let applied = |what: &str| count(&|o| o.what.starts_with(what) && matches!(o.told, Told::Applied(_)));
        let by_copy = |of: fn(&Told) -> bool| {
            count(&|o| of(&o.told) && effects.iter().any(|e| e.applied.op == o.number && e.applied.is_copy_of_refused))
        };
        Total::of(&[
            ("takes", applied("take")),
            ("moves", applied("move")),
            ("addsOrUpdates", applied("add or update")),
            ("adds", count(&|operation| operation.what == "add" && matches!(operation.told, Told::Added))),
            ("toldNotApplied", count(&|operation| operation.told == Told::NotApplied)),
            ("unknown", count(&|operation| operation.told == Told::Unknown)),
            ("copiesOfEarlierAttempts", by_copy(|told| *told != Told::NotApplied)),
            ("refusalsMadeUntrue", by_copy(|told| *told == Told::NotApplied)),
        ])
    }
}

pub fn assert_enough_happened(total: &Total) {
    let enough = total.least(&["takes", "moves", "addsOrUpdates", "adds", "toldNotApplied"]);
    assert!(enough * 2 > total["histories"], "little happened: {total}");
    assert!(total["copiesOfEarlierAttempts"] > 0, "no copy of an earlier attempt was ever applied: {total}");
}
