//! The crate alone: what an operation costs, when it ends, what it refuses.

mod accounts;
mod add;
mod add_rules;
mod anchors;
mod batches;
mod budgets;
mod connected;
mod credentials;
mod crowds;
mod crowds_of_adds;
mod deadlines;
mod futures;
mod hedging;
mod https;
mod idempotency;
mod limits;
mod pooled;
mod properties;
mod remembered;
mod sort_keys;
mod spans;
mod tombstones;
