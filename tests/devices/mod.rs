//! Every route and every answer of the contract, from API Gateway's event to the row and back.

mod as_a_router;
mod exactness;
mod faults;
mod keys;
mod lost_answers;
mod metrics;
mod over_http;
pub mod process;
mod routes;
mod sizes;
mod traces;
pub mod world;
