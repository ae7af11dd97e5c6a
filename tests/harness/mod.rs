//! What tests stand on: an engine behind the real SDK, a network that fails on purpose, a Lambda runtime API.

pub mod engine;
pub mod faults;
pub mod runtime_api;
pub mod seeds;
pub mod server;
