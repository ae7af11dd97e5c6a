//! The base of all tests: an engine behind the real SDK, a network that fails on purpose, the functions and their
//! events, processes over sockets.

pub mod answers;
pub mod clients;
pub mod clock;
pub mod contract;
pub mod emf;
pub mod engine;
pub mod events;
pub mod faults;
pub mod functions;
pub mod maintenance;
pub mod off;
pub mod restore;
pub mod runtime_api;
pub mod server;
pub mod states;
pub mod total;
pub mod unruly;
pub mod world;

pub use fencepost_test::seeds;
