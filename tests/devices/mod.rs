//! Every route and every answer of the contract, from API Gateway's event to the row and back.

mod edits;
mod exactness;
mod faults;
mod keys;
mod metrics;
mod routes;
mod sizes;
pub mod world;
