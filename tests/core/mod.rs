//! The crate alone: what an operation costs, when it ends, what it refuses.

mod accounts;
mod add;
mod batches;
mod budgets;
mod connected;
mod credentials;
mod crowds;
mod crowds_of_adds;
mod deadlines;
mod futures;
mod hedging;
mod idempotency;
mod limits;
mod properties;
mod sort_keys;
mod tombstones;
