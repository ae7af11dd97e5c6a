//! [`StoredLease`]: a lease in its table. [`Lease`]: a lease in the hands of its holder. The reasons of refusals.

use crate::clock::Clock;
use crate::deadline::DualClockDeadline;
use crate::fencing_token::FencingToken;
use crate::timestamp::{Timestamp, moment};
use fencepost_core::lease::{LeaseVersion, StoredLease};
use std::fmt;
use std::time::Duration;

/// A lease acquired by this process. It is held as long as time [remains](Lease::remaining). Until then no other caller
/// can acquire it, if clocks differ by no more than the clock skew.
#[derive(Clone, Debug)]
pub struct Lease {
    pub(super) token: FencingToken,
    pub(super) holder: String,
    pub(super) renewals: u64,
    pub(super) expires_at: u64,
    pub(super) until: DualClockDeadline,
    pub(super) clock: Clock,
}

impl Lease {
    /// The key of the lease.
    #[must_use]
    pub fn key(&self) -> &str {
        self.token.lease_key()
    }

    /// The holder.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The token to write under.
    #[must_use]
    pub fn token(&self) -> &FencingToken {
        &self.token
    }

    /// The number of renewals since the acquire.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// The state of the lease.
    #[must_use]
    pub fn at(&self) -> LeaseVersion {
        LeaseVersion { token: self.token.number(), renewals: self.renewals }
    }

    /// The end of the lease by the clock that acquired or renewed it.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        moment(self.expires_at)
    }

    /// The time left. Zero after the end. It counts from before the first send of the acquire or renewal. It is the
    /// lesser time of the monotonic clock and the wall clock, because a paused machine may stop one of them.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.remaining(self.clock.now())
    }
}

/// Why an acquire was refused: another holder has the lease. It may have the same name, because a lease is not
/// re-entrant. If an answer was lost, a copy of this acquire may still find the lease free. Then the lease is
/// taken, without a holder, until the requested time is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseHeld {
    /// The other holder.
    pub holder: String,
    /// The end of the lease by the clock of its holder. The lease may be renewed or released before.
    pub until: Timestamp,
}

impl LeaseHeld {
    pub(super) fn by(stored: StoredLease) -> Self {
        LeaseHeld { until: moment(stored.expires_at), holder: stored.holder.unwrap_or_default() }
    }
}

impl fmt::Display for LeaseHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was acquired: {} holds the lease until {}; wait, or try again then", self.holder, self.until)
    }
}

/// Why a renewal or a release was refused: the lease is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseLost {
    /// The key has no row: the lease was never acquired, or TTL removed it long ago. Acquire it.
    NotFound,
    /// The lease is not held under this token, and never will be again. Acquire it again before anything else.
    Fenced,
}

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeaseLost::NotFound => "the lease has no row: it was never acquired, or it ended long ago; acquire it",
            LeaseLost::Fenced => {
                "the lease is lost: it is not held under this token; acquire it again before anything else"
            }
        })
    }
}

/// Why a renewal or a release at a number of renewals was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotHeldAt {
    /// The lease is lost.
    Lost(LeaseLost),
    /// The lease is held under this token, but does not have the demanded number of renewals.
    Conflict(StoredLease),
}

impl From<LeaseLost> for NotHeldAt {
    fn from(lost: LeaseLost) -> Self {
        NotHeldAt::Lost(lost)
    }
}

impl fmt::Display for NotHeldAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotHeldAt::Lost(lost) => lost.fmt(f),
            NotHeldAt::Conflict(stored) => {
                write!(f, "nothing was changed: the lease was renewed {} times by now", stored.renewals)
            }
        }
    }
}

/// The result of an acquire with an idempotency key.
#[derive(Clone, Debug)]
pub enum Acquired {
    /// This call acquired the lease.
    New(Lease),
    /// The same request acquired the lease before; no other request can have acquired it since. Look at the
    /// [remaining](Lease::remaining) time, which may be zero.
    Replayed(Lease),
}

#[cfg(test)]
mod tests {
    use super::super::work::Unfinished;
    use super::*;

    #[test]
    fn every_reason_says_what_happened_and_what_to_do() {
        let stored = StoredLease {
            holder: Some("other".to_owned()),
            token: 7,
            renewals: 3,
            expires_at: 1_800_000_000_000,
            acquire_id: Vec::new(),
        };
        let held = LeaseHeld::by(stored.clone());
        assert!(held.to_string().contains("other holds the lease until 2027-01-15T08:00:00.000Z; wait"), "{held}");
        let lost = [LeaseLost::NotFound, LeaseLost::Fenced].map(|lost| lost.to_string());
        assert!(lost.iter().all(|lost| lost.contains("acquire it")) && lost[0] != lost[1], "{lost:?}");
        assert_eq!(NotHeldAt::Lost(LeaseLost::Fenced).to_string(), lost[1]);
        assert!(NotHeldAt::Conflict(stored).to_string().contains("renewed 3 times"));
        let unknown = Unfinished::Unknown { source: "no answer".into() };
        let ended = [Unfinished::Held(held), Unfinished::Lost, unknown].map(|ended| ended.to_string());
        assert!(ended[0].starts_with("the work did not begin: other holds"), "{ended:?}");
        assert!(ended[1..].iter().all(|ended| ended.ends_with("a write in flight may have been applied")), "{ended:?}");
    }
}
