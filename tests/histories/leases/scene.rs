//! The state that the leaders of one history share.

use super::record::{Belief, Done};
use crate::harness::faults::Broken;
use crate::harness::functions::LEASES;
use crate::histories::scene;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

pub const REPORTS: &str = "Reports";
pub const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (REPORTS, "reportId")];

/// The name under which a leader holds leases.
pub fn name(index: usize) -> String {
    format!("leader-{index}")
}

/// The rule that is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// On the wire. `Broken::Nothing` breaks no rule.
    Wire(Broken),
    /// Leaders take a lease as soon as it has ended by their own clocks.
    NoSkew,
}

/// The part of the scene for these histories alone.
pub struct Own {
    pub rule: Rule,
    /// The lead of each leader's clock.
    pub offsets: Vec<Duration>,
    /// Whether some leaders are away for days.
    pub days: bool,
    /// The token of each operation.
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
