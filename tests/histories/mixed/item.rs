//! Histories of one item: the calls with their answers, the states of the row, and promises about both.

use super::writer::{Counts, FOREIGN};
use crate::harness::faults::Applied;
use crate::histories::history::says_not_applied;
use crate::histories::scene::ALL_HAS_ARRIVED;
use fencepost::{Failure, FailureKind, ItemVersion};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown, Value as _};
use serde_json::Value;
use tokio::time::Instant;

/// The answer to an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Applied. The change made this version. The answer may also show a value with its version: for an add, these may
    /// be later than its own.
    Applied(ItemVersion, Option<(ItemVersion, Counts)>),
    /// Applied. The answer shows no version.
    Landed,
    /// Not applied. The answer says nothing about the row.
    NotApplied,
    /// Not applied, or only read. This was the row's state at some moment of the call.
    Saw(ItemVersion, Counts),
    /// Not applied, or only read. There was no item at some moment of the call.
    SawNothing,
    Unknown,
}

pub type Decided = Vec<(Counts, Counts)>;

#[derive(Debug)]
pub struct Operation {
    pub number: u64,
    pub client: u64,
    pub what: &'static str,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
    /// The value before and after each of its decisions.
    pub decided: Decided,
}

pub fn by_failure(failure: &Failure) -> Told {
    // Some programs put an old row back.
    let went_down = matches!(failure, Failure { kind: FailureKind::CorruptItem { reason }, .. } if reason == "its version went down");
    if went_down || says_not_applied(failure) { Told::NotApplied } else { Told::Unknown }
}

/// The state of the row after a commit.
pub struct State<'a> {
    pub applied: &'a Applied,
    pub row: &'a Value,
    pub before: Option<Counts>,
    pub after: Option<Counts>,
}

impl State<'_> {
    /// Whether the value has changed.
    pub fn is_effect(&self) -> bool {
        self.before != self.after
    }

    /// A read of this state, if it is the last one.
    pub fn read_at_the_end(&self) -> SeenOf<Counts> {
        let shown = self.after.clone().map(|value| Shown { value, at: None });
        let ended = self.applied.time.into_std() + ALL_HAS_ARRIVED;
        let told = Some(register::Told::Saw(shown));
        Seen { client: FOREIGN + 1, began: ended, ended, op: Op::Read, told }
    }
}

/// The states of the row, in order.
pub struct Timeline<'a>(pub Vec<State<'a>>);

impl<'a> Timeline<'a> {
    pub fn of(applied: &'a [Applied], table: &str, key: &str) -> Self {
        let mut last = None;
        let states = applied.iter().filter_map(|applied| {
            let row = applied.left_in(table, key)?;
            let after = Counts::of(row);
            let before = std::mem::replace(&mut last, after.clone());
            Some(State { applied, row, before, after })
        });
        Timeline(states.collect())
    }

    /// The effects of an operation, without its burns.
    pub fn effects_of(&self, op: u64) -> impl Iterator<Item = &State<'a>> {
        self.0.iter().filter(move |state| state.applied.op == op && state.is_effect())
    }

    pub fn has_landed(&self, operation: &Operation) -> bool {
        self.effects_of(operation.number).next().is_some()
    }

    /// Whether the row had each value at the version with which the answer to an operation shows it, and whether the
    /// operation made the version that it was told. Times and effects are for the judge.
    pub fn tells_true_versions(&self, operation: &Operation) -> bool {
        let had = |at: ItemVersion, value: &Counts| {
            self.0.iter().any(|state| Counts::is_at(state.row, at) && state.after.as_ref() == Some(value))
        };
        match &operation.told {
            Told::Applied(at, shown) => {
                let makes = |state: &State<'_>| !state.row.is_object() || Counts::is_at(state.row, *at);
                let is_made = self.effects_of(operation.number).any(makes) || !self.has_landed(operation);
                is_made && shown.as_ref().is_none_or(|(at, value)| had(*at, value))
            }
            Told::Saw(at, value) => had(*at, value),
            _ => true,
        }
    }
}

impl Operation {
    pub fn adds(&self) -> bool {
        self.what.starts_with("add")
    }

    pub fn is_told_applied(&self) -> bool {
        matches!(self.told, Told::Applied(..) | Told::Landed)
    }

    /// The value that the operation makes of this one.
    pub fn makes(&self, before: Option<&Counts>) -> Option<Counts> {
        match self.what {
            "create" => Some(Counts::first(self.number)),
            "delete" | "delete at version" => None,
            _ if self.adds() => before.and_then(|before| before.plus(&1)),
            _ => before.map(|before| before.changed(self.number)),
        }
    }

    /// The operation as its client saw it. `None` if the answer says nothing about the item, except that nothing was
    /// done: no other answer can need it.
    pub fn seen(&self) -> Option<SeenOf<Counts>> {
        // Versions of the other program may fall.
        let shown = |value: &Counts| Shown { value: value.clone(), at: None };
        let (op, told) = match &self.told {
            Told::Applied(..) | Told::Landed => (self.op()?, Some(register::Told::Done(None))),
            Told::Saw(_, value) => (Op::Read, Some(register::Told::Saw(Some(shown(value))))),
            Told::SawNothing => (Op::Read, Some(register::Told::Saw(None))),
            Told::Unknown => (self.op()?, None),
            Told::NotApplied => return None,
        };
        let [began, ended] = [self.began, self.ended].map(Instant::into_std);
        Some(Seen { client: self.client, began, ended, op, told })
    }

    /// The attempt that took an item from one state to another, or an add, if it may happen at any time from now on, or
    /// never.
    pub fn may_come_again(&self, states: [Option<&Counts>; 2]) -> Option<SeenOf<Counts>> {
        let [began, ended] = [self.began, self.ended].map(Instant::into_std);
        let op = self.op_of(|from, to| [Some(from), Some(to)] == states)?;
        Some(Seen { client: self.client, began, ended, op, told: None })
    }

    /// The operation for the judge. The decision in the answer counts.
    fn op(&self) -> Option<Op<Counts>> {
        let told = if let Told::Applied(_, Some((_, to))) = &self.told { Some(to) } else { None };
        self.op_of(|_, to| Some(to) == told)
    }

    /// The operation with such a decision, otherwise with the last one. `None` without a decision: then it cannot have
    /// sent a write.
    fn op_of(&self, such: impl Fn(&Counts, &Counts) -> bool) -> Option<Op<Counts>> {
        Some(match self.what {
            "get" => Op::Read,
            "create" => Op::Create(Counts::first(self.number)),
            "delete" | "delete at version" => Op::Delete,
            _ if self.adds() => Op::Add(1),
            _ => {
                let mut decided = self.decided.iter().rev();
                let (from, to) = decided.clone().find(|(from, to)| such(from, to)).or(decided.next())?.clone();
                Op::CompareAndSet { from, to }
            }
        })
    }
}

/// A change without a call, for the judge. It happens at one moment, by a client of its own.
pub fn happened(applied: &Applied, client: u64, op: Op<Counts>) -> SeenOf<Counts> {
    let time = applied.time.into_std();
    Seen { client, began: time, ended: time, op, told: Some(register::Told::Done(None)) }
}
