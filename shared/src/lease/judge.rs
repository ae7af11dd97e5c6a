//! The parts of a write of a lease, and the meaning of the refusal of an acquire, a renewal or a release (pure).

use super::row::StoredLease;
use crate::protocol::condition::LeaseTimes;
use crate::timestamp::{epoch_millis, millis};
use fencepost_core::Verdict;
use fencepost_core::Version;
use std::time::{Duration, SystemTime};

impl LeaseTimes {
    /// The times for a lease of this length.
    #[must_use]
    pub fn at(now: SystemTime, length: Duration, clock_skew: Duration) -> Self {
        LeaseTimes {
            expires_at: epoch_millis(now + length),
            cutoff: epoch_millis(now).saturating_sub(millis(clock_skew)),
            floor: epoch_millis(now),
        }
    }
}

/// The meaning of the refusal of an acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterAcquire {
    /// An earlier send of this call acquired the lease: the row has the same end.
    Mine,
    /// An earlier call with the same id acquired it.
    Replayed,
    /// Another holder has it.
    Held,
    /// The acquire was applied. A caller aware of it has released the lease since.
    Released,
}

/// Judges a refused acquire with this id and this end.
#[must_use]
pub fn judge_acquire(stored: &StoredLease, id: &[u8], expires_at: u64, is_pending: bool) -> AfterAcquire {
    match (&stored.holder, stored.acquire_id == id) {
        (Some(_), true) if is_pending && stored.expires_at == expires_at => AfterAcquire::Mine,
        (Some(_), true) => AfterAcquire::Replayed,
        (Some(_), false) => AfterAcquire::Held,
        (None, _) => AfterAcquire::Released,
    }
}

/// Judges the refusal of a renewal on `at` renewals with the new end `expires_at`, by the row of its token.
///
/// No other holder writes under the token. So one more renewal with the end of this one is this one. One more with
/// another end is from another caller. No copy of this one can be applied any more then. With several more, this one
/// may be among them. With fewer than were demanded, a copy of this one may still be applied.
#[must_use]
pub fn judge_renewal(stored: &StoredLease, at: u64, expires_at: u64) -> Verdict {
    let is_next = at.checked_add(1) == Some(stored.renewals);
    match Version::new(stored.renewals).filter(|_| is_next) {
        Some(made) if stored.expires_at == expires_at => Verdict::Landed(made),
        Some(_) => Verdict::NeverApplied,
        None => Verdict::Unproved,
    }
}
