//! [`Call`]: the deadline of one invocation, with a tally of the cost of its operations.

use crate::deadline::Deadline;
use crate::error::Source;
use crate::throttling::{Throttled, ThrottlingLimit};
use fencepost_core::Cost;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The deadline and the tally of one invocation. [`Store::in_call`](crate::Store::in_call) gives it to all operations of
/// that invocation. Copies share the tally.
#[derive(Clone, Debug)]
pub struct Call {
    deadline: Deadline,
    tally: Arc<Mutex<Tally>>,
}

/// The cost of one operation, or of those of a [`Call`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
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
    /// [Holds](crate::Holds) that were removed because their orders are placed.
    pub holds_removed: u32,
    /// Holds that were given back because their orders never will be placed.
    pub holds_given_back: u32,
    /// Attempts that were kept from placing their orders, so that what they hold comes back.
    pub holds_burned: u32,
}

impl Tally {
    pub(crate) fn count(&mut self, Cost { changes, attempts, conflicts, lost_answers, .. }: Cost) {
        self.add(Tally { changes, attempts, conflicts, lost_answers, ..Tally::default() });
    }

    /// Adds the cost of an operation that has ended.
    pub(crate) fn add(&mut self, other: Tally) {
        self.changes += other.changes;
        self.attempts += other.attempts;
        self.conflicts += other.conflicts;
        self.lost_answers += other.lost_answers;
        self.throttled += other.throttled;
        self.throttling_limit = other.throttling_limit.or(self.throttling_limit);
        self.holds_removed += other.holds_removed;
        self.holds_given_back += other.holds_given_back;
        self.holds_burned += other.holds_burned;
    }

    pub(crate) fn count_not_now(&mut self, source: &Source) {
        if let Some(throttled) = Throttled::of(&**source) {
            self.throttled += 1;
            self.throttling_limit = Some(throttled.limit);
        }
    }
}

impl Call {
    /// Creates a call with this deadline.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        Call { deadline, tally: Arc::default() }
    }

    /// The deadline.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The cost of the operations that have ended.
    #[must_use]
    pub fn tally(&self) -> Tally {
        *self.counts()
    }

    /// The same call with at most so much time.
    pub(crate) fn at_most(&self, time: Duration) -> Self {
        let deadline = if self.deadline.remaining() > time { Deadline::within(time) } else { self.deadline };
        Call { deadline, ..self.clone() }
    }

    /// The tally, to which the cost of each operation is added when it ends.
    pub(crate) fn counts(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
