//! Crowds of callers on virtual time. Tests assert what they count, and `cargo dev bench` measures it.
//!
//! - [`adds`]: adds to one item, at once and steadily.
//! - [`connections`]: slow handshakes, late answers and dead connections. [`pool`] simulates them.
//! - [`crowd`]: writers that all begin at once on one item.
//! - [`leases`]: leases that are acquired, waited for, lost and left behind.
//! - [`orders`]: orders that many clients place at once, with and without lost answers.
//!
//! All of them send over [`wire`] to the [`table`]s of an engine.

pub mod adds;
pub mod connections;
pub mod crowd;
pub mod leases;
pub mod orders;
pub mod pool;
pub mod table;
pub mod wire;
