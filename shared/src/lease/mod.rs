//! Leases: who may do something, until when, and a token that keeps whoever was replaced from doing harm.
//!
//! A lease is a row: its holder, when it ends, and a **token** that rises with every acquire, also across release, expiry
//! and removal by TTL. Whoever holds it renews it before it ends ([`Leases::renew`]) or gives it back
//! ([`Leases::release`]); when it has ended, somebody else may acquire it.
//!
//! **Safety never rests on time.** A holder may be paused for longer than its lease, and clocks may be further apart than
//! assumed: then two processes believe that they hold it. What they write is safe all the same if it is written under the
//! token: [`Attempt::require`](crate::Attempt::require) makes the lease a condition of a transaction,
//! [`Table::fenced_by`](crate::Table::fenced_by) makes an item refuse all but the newest holder.
//!
//! Time is for courtesy. A holder counts its lease from before the first send of the acquire or renewal, by the monotonic
//! and the wall clock, whichever has less left. Others take it when its end, by their clock, is further behind than the
//! clocks may be apart ([`Leases::with_clock_skew`]).
//!
//! | operation | requests |
//! |---|---|
//! | [`Leases::acquire`], [`Leases::renew`], [`Leases::release`] | 1 write |
//! | [`Leases::renew_at`], for a holder elsewhere | 1 write; 1 read before it where the number of renewals is not given |
//! | [`Leases::acquire_within`] | 1 write, and at most 3 in each length of the lease while it waits |
//! | [`Leases::while_held`] | 1 to acquire, 1 a renewal, 1 to release |
//!
//! Nothing here runs on its own: no task is spawned and nothing is sent on drop, since on Lambda neither runs between two
//! invocations.

mod held;
mod leases;
mod outcome;
mod renew;
mod row;
mod terms;
mod wait;

pub use held::WorkError;
pub use leases::Leases;
pub use outcome::{AcquireError, Acquired, LeaseError};
pub use row::{Lease, LeaseVersion, StoredLease};
pub use terms::{InvalidTerms, LeaseTerms};
