//! Leases with fencing tokens: one holder at a time, and protection from a replaced holder.
//!
//! A lease is a row with a holder, an end and a **token**. The token rises with every acquire, also across release,
//! expiry and removal by TTL. The holder renews the lease before it ends ([`Leases::renew`]) or gives it back
//! ([`Leases::release`]). After the end, another caller may acquire it.
//!
//! **A lease is a courtesy, the fence is the guarantee.** Safety never rests on time. A holder may be paused for longer
//! than its lease, and clocks may differ by more than assumed. Then two processes believe that they hold the lease.
//! Their writes are safe if they are made under the token. [`Attempt::require`](crate::Attempt::require) makes the
//! lease a condition of a transaction. [`Table::fenced_by`](crate::Table::fenced_by) makes an item refuse every token
//! lower than the highest one seen.
//!
//! Time keeps holders apart in normal operation. A holder counts the time of its lease from before the first send of
//! the acquire or renewal. It uses the monotonic clock or the wall clock, the one with less time left. Other callers
//! wait until the end of the lease is past on their clock by more than the clock skew ([`Leases::with_clock_skew`]).
//!
//! | operation | requests |
//! |---|---|
//! | [`Leases::acquire`], [`Leases::renew`], [`Leases::release`] | 1 write |
//! | [`Leases::renew_at`], for a holder in another process | 1 write; 1 read before it if the number of renewals is not given |
//! | [`Leases::acquire_within`] | 1 write, and at most 3 per lease length while it waits |
//! | [`Leases::hold`], [`Leases::while_held`], [`Leases::campaign`] | as above to acquire, 1 write per renewal, 1 to release |
//!
//! Only a lease that is [`Held`] has a task, which renews it and releases it in the end. On Lambda no task runs between
//! two invocations. So a function must not keep a [`Held`] lease beyond its answer.

mod held;
mod leases;
mod renew;
mod row;
mod terms;
mod wait;
mod work;

pub use fencepost_core::lease::{LeaseVersion, StoredLease};
pub use held::Held;
pub use leases::Leases;
pub use row::{Acquired, Lease, LeaseHeld, LeaseLost, NotHeldAt};
pub use terms::LeaseTerms;
pub use work::Unfinished;
