//! The outcomes of operations on leases.

use super::row::{Lease, StoredLease};
use crate::error::Failure;
use crate::timestamp::Timestamp;
use thiserror::Error;

/// Why an acquire did not acquire.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Another holder has the lease. It may have the same name, because a lease is not re-entrant. If an answer was
    /// lost, a copy of this acquire may still find the lease free. Then nobody holds the lease until the requested time
    /// is over.
    #[error("{holder} holds the lease until {until}; wait, or try again then")]
    Held {
        /// The other holder.
        holder: String,
        /// The end of the lease by the clock of its holder. The lease may be renewed or released before.
        until: Timestamp,
    },
    /// The idempotency key was used for another acquire, whose lease is held. Use a new key.
    #[error("nothing was acquired: the idempotency key belongs to another acquire; use a new key")]
    KeyReused,
    /// See [`Failure`]. After [`Failure::OutcomeUnknown`], it is possible that nobody holds the lease until the
    /// requested time is over.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why a renewal or a release did nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The key has no row: the lease was never acquired, or TTL removed its row long after it was last held. Acquire
    /// it.
    #[error("the lease has no row: it was never acquired, or it ended long ago; acquire it")]
    NotFound,
    /// The lease is lost: it is not held under this token, and never will be again. Acquire it again before anything
    /// else.
    #[error("the lease is lost: it is not held under this token; acquire it again before anything else")]
    Fenced,
    /// The lease is held under this token, but does not have the demanded number of renewals.
    #[error("nothing was changed: the lease was renewed {} times by now", .0.renewals)]
    Conflict(StoredLease),
    /// See [`Failure`]. Nothing is proved about the lease. It is held as long as time remains.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The result of an acquire with an idempotency key.
#[derive(Clone, Debug)]
pub enum Acquired {
    /// This call acquired the lease.
    New(Lease),
    /// The same request acquired the lease before, and nobody else can have acquired it since. Look at the time that
    /// [remains](Lease::remaining), which may be zero.
    Replayed(Lease),
}
