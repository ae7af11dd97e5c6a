//! The crate alone: what an operation costs, when it ends, what it refuses.

mod add_within;
pub mod budgets;
mod crowds;
mod deadlines;
mod limits;
mod properties;
