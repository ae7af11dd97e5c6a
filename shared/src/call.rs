//! [`Call`]: the deadline of one invocation, and a tally of the cost of its operations.

use crate::retry::Deadline;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The deadline and the tally of one invocation. Pass the same `Call` to every operation of that invocation.
#[derive(Debug)]
pub struct Call {
    deadline: Deadline,
    changes: AtomicU32,
    attempts: AtomicU32,
    conflicts: AtomicU32,
    lost_answers: AtomicU32,
}

/// The cost of the operations of one [`Call`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tally {
    /// Operations that sent a write.
    pub changes: u32,
    /// Observe-decide-write rounds that sent a write. An operation without a conflict counts 1.
    pub attempts: u32,
    /// Conditional writes that lost a race.
    pub conflicts: u32,
    /// Sends of a write whose answer was lost: no answer arrived, or the answer proved nothing. A send that is still in
    /// flight when the answer to another one decides is not counted.
    pub lost_answers: u32,
}

impl Call {
    /// Creates a call that ends at this deadline.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        let none = || AtomicU32::new(0);
        Call { deadline, changes: none(), attempts: none(), conflicts: none(), lost_answers: none() }
    }

    /// The deadline.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The cost so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            changes: self.changes.load(Relaxed),
            attempts: self.attempts.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            lost_answers: self.lost_answers.load(Relaxed),
        }
    }

    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Relaxed);
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
