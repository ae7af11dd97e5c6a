//! Measures the cost of Fencepost: the parts of `cargo dev bench`. Each part plays games of the crate `crowds`, or one of
//! these:
//!
//! - [`latency`]: an update against a read and a write on the bare SDK, over HTTP.
//! - [`process`]: the size, start and memory of a function, on a Runtime API of its own.
//! - [`startup`]: the step that takes most of the start.
//!
//! The others make a run of many games. [`args`] reads the command line, and [`parts`] lists the parts. Each part in
//! [`measure`] returns a typed result with rounded [figures](figure::Figure). [`report`] makes tables and plots of them,
//! and [`run`] plays the parts and keeps the report up to date, with [`progress`].

pub mod args;
pub mod figure;
pub mod latency;
pub mod measure;
pub mod parts;
pub mod process;
pub mod progress;
pub mod report;
pub mod run;
pub mod startup;
