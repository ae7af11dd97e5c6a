//! What Fencepost costs, measured: the parts of `cargo dev bench`, each of which a test may call as well.
//!
//! - [`crowd`]: writers that all begin at once on one item, on virtual time.
//! - [`latency`]: an update against the same two requests on the bare SDK, over HTTP.
//! - [`leases`]: leases acquired, waited for, lost and left behind, on virtual time.
//! - [`orders`]: orders placed by many clients at once, their answers lost or not.
//! - [`process`]: a function's size, start and memory, on a Runtime API of its own.
//! - [`startup`]: what the start is mostly made of.

pub mod crowd;
pub mod latency;
pub mod leases;
pub mod orders;
pub mod process;
pub mod startup;
pub mod table;
pub mod wire;
