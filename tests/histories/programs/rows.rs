//! The rows of a program in all their states.

use super::catalog::{KINDS, Row, key_of};
use super::plan::Program;
use super::player::{LEADERS, LEASES};
use super::told::{Belief, Note, Shown};
use super::values::{Item, canonical};
use crate::harness::faults::Applied;
use crate::histories::audit::breaches;
use fencepost::maintenance::Audit;
use fencepost::{Incarnation, ItemVersion, Settings, Version};
use fencepost_test::{Log, Step};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// The facts about the rows of a kind, read from its settings in words.
pub struct Facts {
    pub names: Vec<String>,
    pub remembered: usize,
    pub deletes: String,
    pub hidden: Option<&'static str>,
}

impl Facts {
    pub fn of(kind: usize) -> Self {
        let settings = KINDS[kind].settings();
        let word = |name: &str| {
            let (_, rest) =
                settings.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("no {name}: {settings}"));
            rest.split([',', ' ', '}']).next().unwrap_or_default().trim_matches('"').to_owned()
        };
        let names = [
            "version",
            "incarnation",
            "writes",
            "purge_at",
            "buried",
            "fence",
            "given",
            "served",
            "holds",
            "placed_by",
        ]
        .map(word)
        .into();
        let (remembered, hidden) = (word("remembered").parse().expect("a number"), KINDS[kind].hidden());
        Facts { names, remembered, deletes: word("deletes"), hidden }
    }

    /// Whether rows go although nobody deletes them, or leave no tombstone.
    pub fn vanish(&self, kind: usize) -> bool {
        self.deletes == "Remove" || KINDS[kind].expires_at().is_some()
    }

    /// Whether a writer has to expect that rows go, be it by programs that do not write here.
    pub fn may_vanish(&self, kind: usize) -> bool {
        self.vanish(kind) || !KINDS[kind].settings().contains("other_writers: Nobody")
    }

    pub fn is_tombstone(&self, row: &Value) -> bool {
        match &*self.deletes {
            "Expire" => row.get(&self.names[3]).is_some(),
            _ => row.get(&self.names[4]).is_some_and(|buried| Some(buried) == row.get(&self.names[0])),
        }
    }
}

/// The time after which TTL may remove this row.
pub fn ends_at(kind: usize, row: &Value) -> Option<u64> {
    let facts = Facts::of(kind);
    if facts.deletes != "Expire" {
        return None;
    }
    let number = |name: &str| row[name]["N"].as_str()?.parse().ok();
    if facts.is_tombstone(row) { number(&facts.names[3]) } else { number(KINDS[kind].expires_at()?) }
}

/// A row after a write.
pub struct State {
    pub time: Instant,
    pub op: u64,
    /// The place of the write among all.
    pub write: usize,
    pub at: Option<ItemVersion>,
    pub item: Option<Item>,
    pub raw: Value,
}

/// A finished program.
pub struct Ended {
    pub program: Program,
    pub scene: String,
    pub start: Instant,
    pub rows: Vec<Row>,
    pub applied: Vec<Applied>,
    pub notes: Vec<Note>,
    pub beliefs: Vec<Belief>,
    pub log: Log,
    pub not_read_back: Vec<String>,
}

impl Ended {
    /// What the audit of the crate finds in the changes of all rows.
    pub fn breaches(&self) -> Vec<String> {
        let kinds: BTreeSet<_> = self.rows.iter().map(|row| row.kind).collect();
        let of_items = kinds.into_iter().map(|kind| (KINDS[kind].table(), KINDS[kind].audit()));
        let newest = Audit::of(Settings::own()).of_instances(["term", "node"]);
        let all = of_items.chain([(LEASES, Audit::of(Settings::own())), (LEADERS, newest)]);
        all.flat_map(|(table, audit)| breaches((table, false), &audit, self.start, &self.applied)).collect()
    }
}

/// The rows of a program in all their states.
pub struct Rows(pub BTreeMap<Row, Vec<State>>);

impl Rows {
    pub fn of(ended: &Ended) -> Self {
        let states = |row: &Row| {
            let (facts, key) = (Facts::of(row.kind), key_of(*row, &ended.scene).1);
            let writes = ended.applied.iter().enumerate().filter_map(|(write, applied)| {
                let is_of_row = |step: &Step| step.table == KINDS[row.kind].table() && step.key == key;
                let is_check = |step: &Step| step.action == "ConditionCheckItem";
                let touched = applied.rows.iter().find(|one| is_of_row(&one.step) && !is_check(&one.step))?;
                Some(State::of(write, applied, &touched.row, &facts, &key))
            });
            (*row, writes.collect())
        };
        Rows(ended.rows.iter().map(states).collect())
    }

    /// The state before the write with this place. `None` if there was none.
    pub fn before(&self, row: Row, write: usize) -> Option<&State> {
        self.0[&row].iter().take_while(|state| state.write < write).last()
    }

    /// Whether the row was in such a state at some moment of this time.
    pub fn was(&self, row: Row, (from, until): (Instant, Instant), such: impl Fn(Option<&State>) -> bool) -> bool {
        let states = &self.0[&row];
        let begins = [None].into_iter().chain(states.iter().map(Some));
        let ends = states.iter().map(|state| Some(state.time)).chain([None]);
        begins.zip(ends).any(|(state, end)| {
            state.is_none_or(|state| state.time <= until) && end.is_none_or(|end| end >= from) && such(state)
        })
    }

    /// Whether an answer shows what was there.
    pub fn shows(&self, shown: &Shown, during: (Instant, Instant)) -> bool {
        self.was(shown.row, during, |state| {
            let item = state.and_then(|state| state.item.as_ref());
            item == shown.item.as_ref() && shown.at.is_none_or(|at| state.is_some_and(|state| state.at == Some(at)))
        })
    }
}

impl State {
    fn of(write: usize, applied: &Applied, raw: &Value, facts: &Facts, key: &Value) -> Self {
        let is_ours = |name: &String| facts.names.contains(name) || key.get(name).is_some();
        let attributes = raw.as_object().filter(|_| !facts.is_tombstone(raw));
        let item = attributes.map(|attributes| {
            let own = attributes.iter().filter(|(name, _)| !is_ours(name) && facts.hidden != Some(name));
            own.map(|(name, value)| (name.clone(), canonical(value))).collect()
        });
        let at = || {
            let version = raw[&facts.names[0]]["N"].as_str()?.parse().ok().and_then(Version::new)?;
            let bytes = aws_smithy_types::base64::decode(raw[&facts.names[1]]["B"].as_str()?).ok()?;
            Some(ItemVersion { version, incarnation: Incarnation::from_bytes(bytes.try_into().ok()?) })
        };
        State { time: applied.time, op: applied.op, write, at: at(), item, raw: raw.clone() }
    }
}

/// The most ids of writes in a row beyond those that it has to remember.
const MOST_MORE: usize = 40;

/// The promises about a row itself that the audit does not know, or not of a table that other programs may write.
pub fn breaks_the_row(row: Row, states: &[State]) -> Option<String> {
    let facts = Facts::of(row.kind);
    let mut before: Option<&State> = None;
    for state in states {
        let is_next = match (before.and_then(|before| before.at), state.at) {
            (None, _) => true,
            (Some(then), Some(now)) => {
                let raised = now.version.get() - then.version.get().min(now.version.get());
                let is_ticket = raised == 0 && before.is_some_and(|before| before.item == state.item);
                now.incarnation == then.incarnation && now.version >= then.version && (raised == 1 || is_ticket)
            }
            (Some(_), None) => state.raw.is_null(),
        };
        if !is_next {
            return Some(format!(
                "{row:?} went from {:?} to {:?} by operation {}",
                before.and_then(|one| one.at),
                state.at,
                state.op
            ));
        }
        let ids = state.raw[&facts.names[2]]["M"].as_object().map_or(0, serde_json::Map::len);
        if ids > facts.remembered + MOST_MORE {
            return Some(format!("{row:?} remembers {ids} writes"));
        }
        if state.raw.to_string().contains("\"$serde_json::private::Number\":{") {
            return Some(format!("{row:?} is stored in a form that depends on features of the build: {}", state.raw));
        }
        before = Some(state);
    }
    None
}
