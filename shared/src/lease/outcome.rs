//! How operations on leases end.

use super::{Lease, StoredLease};
use crate::error::Failure;
use crate::timestamp::Timestamp;

/// How an acquire did not acquire.
#[derive(Debug)]
pub enum AcquireError {
    /// Somebody holds it, perhaps under the same name: a lease is not re-entrant. Where an answer was lost, a copy of this
    /// acquire may still find it free: nobody holds it then until the time that was asked for is over.
    Held {
        /// Who.
        holder: String,
        /// When it ends, by its holder's clock. It may be renewed or released before.
        until: Timestamp,
    },
    /// The idempotency key was used for another acquire, whose lease is held.
    KeyReused,
    /// See [`Failure`]. With [`Failure::OutcomeUnknown`] nobody may hold the lease until the time that was asked for is
    /// over.
    Failed(Failure),
}

/// How a renewal or a release did nothing.
#[derive(Debug)]
pub enum LeaseError {
    /// No row of this key: it was never acquired, or its row was removed long after it was held last.
    NotFound,
    /// The lease is lost: it is not held under this token. Under one that was ever given it never will be again.
    Fenced,
    /// It is held under this token, but at another number of renewals than was demanded.
    Conflict(StoredLease),
    /// See [`Failure`]. Nothing is proved about the lease: it is held for as long as time remains.
    Failed(Failure),
}

impl From<Failure> for AcquireError {
    fn from(failure: Failure) -> Self {
        AcquireError::Failed(failure)
    }
}

impl From<Failure> for LeaseError {
    fn from(failure: Failure) -> Self {
        LeaseError::Failed(failure)
    }
}

/// A lease as one with an idempotency key comes by it.
#[derive(Clone, Debug)]
pub enum Acquired {
    /// It was acquired now.
    Now(Lease),
    /// It was acquired before, by the same request, and nobody else can have acquired it since. Look at how much of it
    /// [remains](Lease::remaining): that may be nothing.
    Before(Lease),
}
