//! The state that the clerks of one history share, and their answers.

use super::plan::{Plan, What};
use crate::harness::faults::Broken;
use crate::histories::scene;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The rule that is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// On the wire. `Broken::Nothing` breaks no rule.
    Wire(Broken),
    /// A restock is applied first, without its record, which follows in a write of its own.
    RecordOutside,
    /// An order whose id is taken is placed again under another id.
    GuardRetried,
}

/// The part of the scene for these histories alone.
pub struct Own {
    pub plan: Plan,
    pub rule: Rule,
    /// In some histories, the clerks are away for days and records of keys end.
    pub days: Option<Days>,
}

pub type Scene = scene::Scene<Own, Sent>;

/// The absences of the clerks and the times of TTL, from random numbers of their own.
pub struct Days(Mutex<fastrand::Rng>);

impl Days {
    /// One in four histories has them.
    pub fn of(seed: u64) -> Option<Self> {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0xDA75_DA75);
        (rng.u32(..4) == 0).then(|| Days(Mutex::new(rng)))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.0.lock().expect("no panic while drawing").u64(0..bound)
    }

    /// Some clerks rest for about as long as a record is kept, some for longer than a tombstone.
    pub async fn rest(&self) {
        let hours = [0, 0, 23, 24, 25, 26, 8 * 24][usize::try_from(self.below(7)).expect("few")];
        if hours > 0 {
            sleep(Duration::from_hours(hours) + Duration::from_millis(self.below(3_600_000))).await;
        }
    }
}

/// One invocation of a function, and its answer.
#[derive(Clone, Debug)]
pub struct Sent {
    pub number: u64,
    pub client: u64,
    pub what: What,
    pub began: Instant,
    pub ended: Instant,
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
