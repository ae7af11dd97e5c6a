//! The states that the row went through, and what may never be seen in them.

use super::record::{Ended, Ledger, NOTED, Operation, TABLE, TTL, effect, state_of};
use crate::harness::faults::is_burn;
use fencepost::ItemVersion;
use serde_json::Value;
use tokio::time::Instant;

/// The states that the row went through, in order.
pub struct Timeline<'a>(Vec<State<'a>>);

/// A state that a commit left.
pub struct State<'a> {
    pub op: u64,
    pub time: Instant,
    pub row: &'a Value,
    /// Whether the value is another than before.
    pub is_effect: bool,
    pub is_copy_of_refused: bool,
    is_burn: bool,
}

impl<'a> Timeline<'a> {
    pub fn of(ended: &'a Ended) -> Self {
        let mut before = &Value::Null;
        let mut states = Vec::new();
        for applied in &ended.applied {
            let Some(row) = applied.left_in(TABLE, &ended.key) else { continue };
            let is_effect = Ledger::stored(before) != Ledger::stored(row);
            let (is_burn, is_copy_of_refused) = (is_burn(applied), applied.is_copy_of_refused);
            states.push(State { op: applied.op, time: applied.time, row, is_effect, is_copy_of_refused, is_burn });
            before = row;
        }
        Timeline(states)
    }

    /// The row as the last commit left it.
    pub fn last(&self) -> &Value {
        self.0.last().map_or(&Value::Null, |state| state.row)
    }

    /// What an operation applied, without its burns.
    pub fn effects_of(&self, op: u64) -> impl Iterator<Item = &State<'a>> {
        self.0.iter().filter(move |state| state.op == op && state.is_effect)
    }

    pub fn burns(&self) -> usize {
        self.0.iter().filter(|state| !state.is_effect && state.op != TTL).count()
    }

    pub fn purges(&self) -> usize {
        self.0.iter().filter(|state| state.op == TTL).count()
    }

    pub fn most_remembered(&self) -> u64 {
        let remembered = |state: &State| state.row["_writes"]["M"].as_object().map_or(0, serde_json::Map::len);
        let most = self.0.iter().map(remembered).max().unwrap_or_default();
        u64::try_from(most).expect("few")
    }

    /// Every commit and every burn raises the version by one. A row keeps its incarnation until TTL removes it.
    pub fn breaks_a_count(&self) -> Option<String> {
        let mut before: Option<ItemVersion> = None;
        for state in &self.0 {
            let now = state_of(state.row);
            let is_next = match (before, now) {
                (None, Some(now)) => now.version.get() == 1,
                (Some(before), Some(now)) => {
                    now.version.get() == before.version.get() + 1 && now.incarnation == before.incarnation
                }
                (_, None) => state.op == TTL,
            };
            if !is_next {
                return Some(format!("operation {} left {now:?} after {before:?}", state.op));
            }
            before = now;
        }
        None
    }

    /// Every commit makes of the value what its operation makes of it. Only a burn makes nothing of it.
    pub fn breaks_the_value(&self, done: &[Operation]) -> Option<String> {
        let mut before = None;
        for state in &self.0 {
            let now = Ledger::stored(state.row);
            let operation = done.iter().find(|operation| operation.number == state.op);
            let expected = operation.and_then(|operation| effect(operation, before.as_ref()));
            let is_right = if state.is_effect { now == expected } else { state.is_burn || state.op == TTL };
            if !is_right || now.as_ref().is_some_and(|ledger| !ledger.is_right()) {
                return Some(format!("the value is wrong: {operation:?} made {now:?} of {before:?}"));
            }
            before = now;
        }
        None
    }

    /// The build before leaves alone what it does not know. Today's build notes its changes; adds are no such changes.
    pub fn breaks_what_a_build_does_not_know(&self, done: &[Operation]) -> Option<String> {
        let mut before = &Value::Null;
        for state in &self.0 {
            let operation = done.iter().find(|operation| operation.number == state.op);
            let noted = &state.row[NOTED]["N"];
            let is_right = match operation {
                Some(operation) if state.is_effect && !operation.what.starts_with("delete") => {
                    let is_own = !operation.by_before && !operation.adds();
                    let revives = operation.what == "create";
                    if is_own {
                        noted.as_str() == Some(operation.number.to_string().as_str())
                    } else {
                        noted == if revives { &Value::Null } else { before }
                    }
                }
                _ => true,
            };
            if !is_right {
                return Some(format!("{operation:?} left {noted} noted after {before}"));
            }
            before = noted;
        }
        None
    }

    /// Whether the row had this value at this version.
    pub fn had(&self, at: ItemVersion, ledger: &Ledger) -> bool {
        self.0.iter().any(|state| state_of(state.row) == Some(at) && Ledger::stored(state.row).as_ref() == Some(ledger))
    }

    /// Whether the row was in such a state at some moment of the operation.
    pub fn was(&self, operation: &Operation, such: impl Fn(&Value) -> bool) -> bool {
        let states = std::iter::once((None, &Value::Null)).chain(self.0.iter().map(|one| (Some(one.time), one.row)));
        let ends = self.0.iter().map(|one| Some(one.time)).chain([None]);
        states.zip(ends).any(|((from, row), until)| {
            from.is_none_or(|from| from <= operation.ended)
                && until.is_none_or(|until| until >= operation.began)
                && such(row)
        })
    }
}
