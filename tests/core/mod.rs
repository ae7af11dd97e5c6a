//! The crate alone: costs, deadlines and refusals of its operations.

mod accounts;
mod add;
mod checks;
mod crowds;
mod deadlines;
mod edits;
mod holds;
mod https;
mod leases;
mod limits;
mod misuse;
mod refusals;
mod spans;
mod throttling;
mod tombstones;
mod unruly;
mod values;
