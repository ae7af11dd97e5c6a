//! Leases and children: `lease` and `ensure-child` on one engine, from API Gateway's event to the row, and the crate's own
//! operations beside them.

mod bad_input;
mod budgets;
mod callers;
mod children;
mod keys;
mod late_copies;
mod lost_answers;
mod processes;
mod routes;
mod tokens;
mod waiters;
mod waiting;
mod work;
pub mod world;
