//! Crowds of callers on virtual time. Tests check the counts; `cargo dev bench` prints them.
//!
//! - [`adds`]: adds to one item, at once and steadily.
//! - [`crowd`]: writers that start at once on one item.
//! - [`orders`]: orders of many clients at once, with and without lost answers.
//! - [`pace`]: the units of a change, and the changes of one item in a second.
//! - [`pool`]: connections with slow handshakes, late answers, or none.
//!
//! [`orders`] and [`pace`] send over the network of `fencepost-test`, the others over [`wire`] to the [`table`]s of an engine.

pub mod adds;
pub mod crowd;
pub mod orders;
pub mod pace;
pub mod pool;
pub mod table;
pub mod wire;
