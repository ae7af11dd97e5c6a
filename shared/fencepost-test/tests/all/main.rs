//! The effect of each fault on a client of the real SDK, with its own retries on and off.
#![allow(missing_docs, reason = "what a test is called says what it shows")]
#![allow(clippy::disallowed_methods, reason = "these are programs on the bare SDK")]

mod capacity;
mod clocks;
mod counter;
mod engine;
mod faults;
mod replay;
mod seams;
mod transactions;
