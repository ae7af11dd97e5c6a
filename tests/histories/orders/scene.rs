//! What the clerks of one history share, and what they were answered.

use super::plan::{Plan, What};
use crate::harness::faults::Broken;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::Instant;

/// When histories begin, since 1970.
pub const EPOCH: Duration = Duration::from_hours(500_000);

/// Which rule is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// By what the wire does to requests and answers; `Broken::Nothing` for none.
    Wire(Broken),
    /// A restock is applied first, and the record of it written afterwards.
    RecordOutside,
    /// A placing whose order id is taken is tried again under another.
    GuardRetried,
}

/// What the clerks of one history share.
pub struct Scene {
    pub plan: Plan,
    pub rule: Rule,
    pub start: Instant,
    /// The number of the next request.
    pub numbers: AtomicU64,
    pub sent: Mutex<Vec<Sent>>,
}

/// One invocation of a function, and what it was answered.
#[derive(Clone, Debug)]
pub struct Sent {
    pub number: u64,
    pub what: What,
    pub began: Instant,
    pub status: u16,
    pub body: String,
    pub etag: Option<String>,
    pub replayed: bool,
    pub conflicts: u32,
}

impl Sent {
    pub fn is_unknown(&self) -> bool {
        self.status == 504
    }

    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }

    pub fn is_success(&self) -> bool {
        matches!(self.status, 200 | 201)
    }
}
