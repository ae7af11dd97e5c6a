//! Every route and every answer of the contract, from API Gateway's event to the row and back.

mod as_a_router;
mod changing;
mod conditions;
mod configuring;
mod creating;
mod deadlines;
mod exactness;
mod keyed_changes;
mod keys;
mod lost_answers;
mod metrics;
mod over_http;
pub mod process;
mod sizes;
mod traces;
mod transport;
pub mod world;
