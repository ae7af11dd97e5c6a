//! [`Call`]: the deadline of one invocation, with a tally of the cost of its operations.

use crate::deadline::Deadline;
use crate::error::Source;
use crate::throttling::{Throttled, ThrottlingLimit};
use fencepost_core::Cost;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The deadline and the tally of one invocation. [`Store::in_call`](crate::Store::in_call) gives it to all operations of
/// that invocation. Copies share the tally.
#[derive(Clone, Debug)]
pub struct Call {
    deadline: Deadline,
    counts: Arc<Counts>,
}

#[derive(Default, Debug)]
struct Counts {
    changes: AtomicU32,
    attempts: AtomicU32,
    conflicts: AtomicU32,
    lost_answers: AtomicU32,
    throttled: AtomicU32,
    throttling_limit: Mutex<Option<ThrottlingLimit>>,
}

/// The cost of the operations of one [`Call`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tally {
    /// Operations with a write.
    pub changes: u32,
    /// Observe-decide-write rounds with a write. An operation without a conflict counts 1.
    pub attempts: u32,
    /// Conditional writes lost in a race.
    pub conflicts: u32,
    /// Lost answers to sends of a write. A lost answer never arrived or proved nothing. A send that is still in flight
    /// when the answer to another one decides is not counted.
    pub lost_answers: u32,
    /// Sends that `DynamoDB` throttled, those of reads included.
    pub throttled: u32,
    /// The limit for which it throttled the last of them.
    pub throttling_limit: Option<ThrottlingLimit>,
}

impl Call {
    /// Creates a call with this deadline.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        Call { deadline, counts: Arc::default() }
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
            changes: self.counts.changes.load(Relaxed),
            attempts: self.counts.attempts.load(Relaxed),
            conflicts: self.counts.conflicts.load(Relaxed),
            lost_answers: self.counts.lost_answers.load(Relaxed),
            throttled: self.counts.throttled.load(Relaxed),
            throttling_limit: *self.counts.throttling_limit.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Adds the cost of a part of a change.
    pub(crate) fn count(&self, cost: Cost) {
        self.counts.changes.fetch_add(cost.changes, Relaxed);
        self.counts.attempts.fetch_add(cost.attempts, Relaxed);
        self.counts.conflicts.fetch_add(cost.conflicts, Relaxed);
        self.counts.lost_answers.fetch_add(cost.lost_answers, Relaxed);
    }

    /// Counts a send that was refused for now, if it was throttled.
    pub(crate) fn count_not_now(&self, source: &Source) {
        if let Some(throttled) = Throttled::of(&**source) {
            self.counts.throttled.fetch_add(1, Relaxed);
            *self.counts.throttling_limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(throttled.limit);
        }
    }
}
