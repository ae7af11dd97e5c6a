//! Measures the cost of Fencepost: the parts of `cargo dev bench`. Tests may call each of them too.
//!
//! Some modules play one game:
//!
//! - [`adds`]: adds to one item, at once and steadily, on virtual time.
//! - [`connections`]: slow handshakes, late answers and dead connections, on virtual time. [`pool`] simulates them.
//! - [`crowd`]: writers that all begin at once on one item, on virtual time.
//! - [`latency`]: an update against a read and a write on the bare SDK, over HTTP.
//! - [`leases`]: leases that are acquired, waited for, lost and left behind, on virtual time.
//! - [`orders`]: orders that many clients place at once, with and without lost answers.
//! - [`process`]: the size, start and memory of a function, on a Runtime API of its own.
//! - [`startup`]: the step that takes most of the start.
//!
//! The others make a run of many games. [`args`] reads the command line, and [`parts`] lists the parts. Each part in
//! [`measure`] returns a typed result with rounded [figures](figure::Figure). [`report`] makes tables and plots of them,
//! and [`run`] plays the parts and keeps the report up to date, with [`progress`].

pub mod adds;
pub mod args;
pub mod connections;
pub mod crowd;
pub mod figure;
pub mod latency;
pub mod leases;
pub mod measure;
pub mod orders;
pub mod parts;
pub mod pool;
pub mod process;
pub mod progress;
pub mod report;
pub mod run;
pub mod startup;
pub mod table;
pub mod wire;
