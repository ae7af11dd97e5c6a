//! Every route and every answer of the contract, from API Gateway's event to the row and back.

mod changing;
mod conditions;
mod configuring;
mod creating;
mod exactness;
mod keys;
mod transport;
pub mod world;
