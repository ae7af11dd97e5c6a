//! How operations on leases end.

use super::row::{Lease, StoredLease};
use crate::error::Failure;
use crate::timestamp::Timestamp;
use thiserror::Error;

/// Why an acquire did not acquire.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Another holder has the lease, perhaps under the same name: a lease is not re-entrant. If an answer was lost, a copy
    /// of this acquire may still find the lease free. Nobody holds it then until the time that was asked for is over.
    #[error("nothing was acquired: {holder} holds the lease until {until}; wait, or try again then")]
    Held {
        /// The other holder.
        holder: String,
        /// When the lease ends, by its holder's clock. It may be renewed or released before.
        until: Timestamp,
    },
    /// The idempotency key was used for another acquire, whose lease is held. Use a new key.
    #[error("nothing was acquired: the idempotency key belongs to another acquire; use a new key")]
    KeyReused,
    /// See [`Failure`]. After [`Failure::OutcomeUnknown`] it may be that nobody holds the lease until the time that was
    /// asked for is over.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why a renewal or a release did nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The key has no row: the lease was never acquired, or its row was removed long after it was last held.
    #[error("the lease has no row: it was never acquired, or it ended long ago; acquire it")]
    NotFound,
    /// The lease is lost: it is not held under this token, and never will be again. Acquire it anew.
    #[error("the lease is lost: it is not held under this token; acquire it again before anything else")]
    Fenced,
    /// The lease is held under this token, but was not renewed as often as was demanded.
    #[error("nothing was changed: the lease was renewed {} times by now", .0.renewals)]
    Conflict(StoredLease),
    /// See [`Failure`]. Nothing is proved about the lease: it is held as long as time remains.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A lease as one with an idempotency key comes by it.
#[derive(Clone, Debug)]
pub enum Acquired {
    /// It was acquired now.
    New(Lease),
    /// It was acquired before, by the same request, and nobody else can have acquired it since. Look at how much of it
    /// [remains](Lease::remaining): that may be nothing.
    Replayed(Lease),
}
