//! The state that the leaders of one history share: their operations, answers and beliefs.

use crate::harness::faults::Broken;
use crate::harness::functions::LEASES;
use crate::histories::history::says_not_applied;
use crate::histories::scene;
use fencepost::lease::{LeaseHeld, LeaseLost, NotHeldAt};
use fencepost::{Error, Failure, IdempotencyError};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Under one id: that of the claim, if the same acquire is sent again.
    Acquire {
        claim: u64,
    },
    /// Looks again and again, and acquires under one id.
    AcquireWithin,
    /// Acquire, renewals and release around some work.
    Work,
    /// With `at`: only after so many renewals.
    Renew {
        at: Option<u64>,
    },
    /// After any number of renewals: it reads the number first.
    Extend,
    /// As with a renewal.
    Release {
        at: Option<u64>,
    },
    /// On the fenced item.
    Append,
    Add,
    Delete,
    /// On the item that is only changed where the lease is required.
    Require,
    RequireDelete,
}

impl What {
    /// Whether it writes a protected item.
    pub fn is_protected(self) -> bool {
        matches!(self, What::Append | What::Add | What::Delete | What::Require | What::RequireDelete)
    }
}

/// The answer to an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    Done,
    /// The lease after an acquire or a renewal.
    Lease {
        token: u64,
        renewals: u64,
        expires_at: u64,
    },
    Held {
        holder: String,
        until: u64,
    },
    Fenced,
    /// The lease or the item is absent.
    NotFound,
    Conflict,
    NotApplied,
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Done {
    pub number: u64,
    pub leader: usize,
    pub what: What,
    pub token: Option<u64>,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
}

impl Done {
    /// The number of its acquire. All requests for one acquire have the same number.
    pub fn acquire(&self) -> u64 {
        if let What::Acquire { claim } = self.what { claim } else { self.number }
    }
}

/// A leader's belief in the lease, from its start until its end.
#[derive(Clone, Copy, Debug)]
pub struct Belief {
    pub leader: usize,
    pub token: u64,
    pub from: Instant,
    pub until: Instant,
}

impl Told {
    pub fn lease(lease: &fencepost::lease::Lease) -> Self {
        Told::Lease {
            token: lease.token().number(),
            renewals: lease.renewals(),
            expires_at: lease.expires_at().epoch_millis().expect("after 1970"),
        }
    }
}

impl From<Failure> for Told {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Fenced => Told::Fenced,
            failure if says_not_applied(&failure) => Told::NotApplied,
            _ => Told::Unknown,
        }
    }
}

impl From<Error<LeaseHeld>> for Told {
    fn from(error: Error<LeaseHeld>) -> Self {
        match error {
            Error::Refused(LeaseHeld { holder, until }) => {
                Told::Held { holder, until: until.epoch_millis().expect("after 1970") }
            }
            Error::Failed(failure) => failure.into(),
        }
    }
}

impl From<IdempotencyError<LeaseHeld>> for Told {
    fn from(error: IdempotencyError<LeaseHeld>) -> Self {
        match error {
            IdempotencyError::KeyReused => panic!("each claim is one acquire's: {error}"),
            IdempotencyError::Refused(held) => Error::Refused(held).into(),
            IdempotencyError::Failed(failure) => failure.into(),
        }
    }
}

impl From<Error<LeaseLost>> for Told {
    fn from(error: Error<LeaseLost>) -> Self {
        match error {
            Error::Refused(lost) => Error::Refused(NotHeldAt::Lost(lost)).into(),
            Error::Failed(failure) => failure.into(),
        }
    }
}

impl From<Error<NotHeldAt>> for Told {
    fn from(error: Error<NotHeldAt>) -> Self {
        match error {
            Error::Refused(NotHeldAt::Lost(LeaseLost::NotFound)) => Told::NotFound,
            Error::Refused(NotHeldAt::Lost(LeaseLost::Fenced)) => Told::Fenced,
            Error::Refused(NotHeldAt::Conflict(_)) => Told::Conflict,
            Error::Failed(failure) => failure.into(),
        }
    }
}

pub const REPORTS: &str = "Reports";
pub const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (REPORTS, "reportId")];

/// The name under which a leader holds leases.
pub fn name(index: usize) -> String {
    format!("leader-{index}")
}

/// The part of the scene for these histories alone.
pub struct Own {
    pub broken: Broken,
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
