//! Crowds of callers on virtual time. Tests check the counts; `cargo dev bench` prints them.
//!
//! - [`crowd`]: changes of one item by many callers, in each way.
//! - [`orders`]: orders of many clients at once, with and without lost answers.

pub mod crowd;
pub mod orders;
mod world;

pub use world::HOP;
