//! The crate alone: costs, deadlines and refusals of its operations.

mod accounts;
mod add;
mod add_rules;
mod anchors;
mod budgets;
mod connected;
mod crowds;
mod deadlines;
mod edits;
mod handles;
mod hedging;
mod https;
mod idempotency;
mod leases;
mod limits;
mod out_of_order;
mod pooled;
mod properties;
mod records;
mod refusals;
mod remembered;
mod spans;
mod storms;
mod succession;
mod tombstones;
mod unruly;
