//! Leases of the crate: their tokens and their end, lost answers and late copies, waiting for a lease and working under one.

mod late_copies;
mod lost_answers;
mod tokens;
mod waiting;
mod work;
