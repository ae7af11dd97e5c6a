//! What the leaders of one history share.

use super::record::{Belief, Done};
use crate::harness::faults::Broken;
use crate::harness::functions::LEASES;
use crate::histories::scene;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

pub const REPORTS: &str = "Reports";
pub const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (REPORTS, "reportId")];

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

/// The part of the scene that only these histories have.
pub struct Own {
    pub rule: Rule,
    /// How far the clock of each leader is ahead.
    pub offsets: Vec<Duration>,
    /// Some leaders are away for days.
    pub days: bool,
    /// The token that each operation was under.
    pub tokens: Mutex<BTreeMap<u64, u64>>,
    pub beliefs: Mutex<Vec<Belief>>,
}

pub type Scene = scene::Scene<Own, Done>;

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
