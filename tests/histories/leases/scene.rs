//! What the leaders of one history share.

use super::record::{Belief, Done};
use crate::harness::faults::Broken;
use crate::harness::functions::LEASES;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::Instant;

pub const REPORTS: &str = "Reports";
pub const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (REPORTS, "reportId")];
/// When histories begin, since 1970.
pub const EPOCH: Duration = Duration::from_hours(500_000);
/// The number that what TTL does is noted under.
pub const TTL: u64 = 0;

/// What a leader calls itself.
pub fn name(index: usize) -> String {
    format!("leader-{index}")
}

/// Which rule is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// By what the wire does to requests; `Broken::Nothing` for none.
    Wire(Broken),
    /// Leases are taken as soon as they have ended by the clock of whoever takes them.
    NoSkew,
}

/// What the leaders of one history share.
pub struct Scene {
    /// No other history has it.
    pub name: String,
    pub rule: Rule,
    pub start: Instant,
    /// How far the clock of each leader is ahead.
    pub offsets: Vec<Duration>,
    /// Some leaders are away for days.
    pub days: bool,
    /// The number of the next operation.
    pub numbers: AtomicU64,
    /// The token that each operation was under.
    pub tokens: Mutex<BTreeMap<u64, u64>>,
    pub done: Mutex<Vec<Done>>,
    pub beliefs: Mutex<Vec<Belief>>,
}

impl Scene {
    pub fn fenced(&self) -> String {
        format!("fenced-{}", self.name)
    }

    pub fn required(&self) -> String {
        format!("required-{}", self.name)
    }

    /// The leader that holds leases under this name.
    pub fn leader(&self, holder: &str) -> Option<usize> {
        (0..self.offsets.len()).find(|index| name(*index) == holder)
    }
}
