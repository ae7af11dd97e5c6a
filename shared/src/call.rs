//! One call: until when it may take, and what it has cost so far.

use crate::retry::Deadline;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// One invocation's allowance and tally, handed to every operation that it makes.
#[derive(Debug)]
pub struct Call {
    deadline: Deadline,
    attempts: AtomicU32,
    conflicts: AtomicU32,
    lost_answers: AtomicU32,
}

/// What the operations of one call have cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tally {
    /// Observe-decide-write rounds that came to a write; the first is 1.
    pub attempts: u32,
    /// Conditional writes that lost a race.
    pub conflicts: u32,
    /// Writes whose answer did not come, or said nothing.
    pub lost_answers: u32,
}

impl Call {
    /// A call that ends at this deadline.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        Call { deadline, attempts: AtomicU32::new(0), conflicts: AtomicU32::new(0), lost_answers: AtomicU32::new(0) }
    }

    /// When it ends.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// What it has cost so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            attempts: self.attempts.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            lost_answers: self.lost_answers.load(Relaxed),
        }
    }

    pub(crate) fn count_attempt(&self) {
        self.attempts.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_conflict(&self) {
        self.conflicts.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_lost_answer(&self) {
        self.lost_answers.fetch_add(1, Relaxed);
    }
}
