//! The states of the lease and of the protected items, in order.

use super::record::Scene;
use super::record::What;
use crate::harness::faults::{Applied, Touched, is_burn};
use crate::harness::functions::LEASES;
use crate::harness::states::number;
use crate::histories::scene::TTL;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// The row of the lease after one of its writes.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    pub time: Instant,
    /// The operation that wrote it.
    pub op: u64,
    pub change: Change,
    pub token: u64,
    pub holder: Option<String>,
    pub renewals: u64,
    pub expires_at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Acquired,
    Renewed,
    Released,
    Removed,
}

impl State {
    pub fn is_held_under(&self, token: u64) -> bool {
        self.token == token && self.holder.is_some()
    }
}

/// A write to a protected item, and the lease at that moment.
pub struct Protected<'a> {
    pub time: Instant,
    pub op: u64,
    pub token: u64,
    pub row: &'a Value,
    /// The row before.
    pub before: &'a Value,
    pub lease: Option<State>,
    pub is_burn: bool,
    pub is_copy_of_refused: bool,
}

/// All states and writes, in the order of their effects.
pub struct Timeline<'a> {
    pub lease: Vec<State>,
    /// By item id.
    pub items: BTreeMap<String, Vec<Protected<'a>>>,
}

impl<'a> Timeline<'a> {
    pub fn of(scene: &Scene, applied: &'a [Applied]) -> Self {
        let tokens = scene.tokens.lock().expect("no panic");
        let mut timeline = Timeline { lease: Vec::new(), items: BTreeMap::new() };
        for write in applied {
            let &Applied { op, time, ref rows, is_copy_of_refused } = write;
            let is_burn = is_burn(write);
            let written = rows.iter().filter(|touched| touched.step.action != "ConditionCheckItem");
            for Touched { step, row } in written {
                if step.table == LEASES {
                    let state = state_of(row, timeline.lease.last(), op, time);
                    timeline.lease.push(state);
                } else {
                    let lease = timeline.lease.last().cloned();
                    let writes = timeline.items.entry(step.id.clone()).or_default();
                    let before = writes.last().map_or(&Value::Null, |last| last.row);
                    let token = tokens.get(&op).copied().unwrap_or_default();
                    writes.push(Protected { time, op, token, row, before, lease, is_burn, is_copy_of_refused });
                }
            }
        }
        timeline
    }

    /// Every state of the lease between these moments.
    pub fn lease_within(&self, from: Instant, until: Instant) -> impl Iterator<Item = &State> {
        let ends = self.lease.iter().skip(1).map(|state| Some(state.time)).chain([None]);
        let states = self.lease.iter().zip(ends);
        states
            .filter(move |(state, ends)| state.time <= until && ends.is_none_or(|ends| ends >= from))
            .map(|(state, _)| state)
    }

    /// How often an operation was applied to its lease or its item.
    pub fn count(&self, op: u64, what: What) -> usize {
        if what.is_protected() {
            self.items.values().flatten().filter(|write| write.op == op && !write.is_burn).count()
        } else {
            self.lease.iter().filter(|state| state.op == op).count()
        }
    }

    /// Whether all writes of an operation to items are second copies of refused ones.
    pub fn is_copy_of_refused(&self, op: u64) -> bool {
        self.items.values().flatten().filter(|write| write.op == op).all(|write| write.is_copy_of_refused)
    }

    /// The writes to an item, without burns and removals by TTL.
    pub fn writes(&self, item: &str) -> impl Iterator<Item = &Protected<'a>> {
        self.items.get(item).into_iter().flatten().filter(|write| write.op != TTL && !write.is_burn)
    }
}

fn state_of(row: &Value, before: Option<&State>, op: u64, time: Instant) -> State {
    let token = number(row, "token").unwrap_or_default();
    let holder = row.get("holder").and_then(|holder| holder["S"].as_str()).map(ToOwned::to_owned);
    let change = match before {
        _ if op == TTL => Change::Removed,
        Some(before)
            if before.token == token && holder.is_none() && number(row, "renewals") == Some(before.renewals) =>
        {
            Change::Released
        }
        Some(before) if before.token == token && number(row, "renewals") != Some(0) => Change::Renewed,
        _ => Change::Acquired,
    };
    State {
        time,
        op,
        change,
        token,
        holder,
        renewals: number(row, "renewals").unwrap_or_default(),
        expires_at: number(row, "expiresAt").unwrap_or_default(),
    }
}
