//! Measures the cost of Fencepost: the parts of `cargo dev bench`. [`run`] plays them.
//!
//! - `one_item` and `calls` play the games of the crate `crowds` on virtual time.
//! - `update` measures an update against a read and a write on the bare SDK, over HTTP.
//! - `function` measures the size, start and memory of a function, as a `process` on a Runtime API of its own.

mod calls;
mod chart;
mod function;
mod one_item;
mod process;
pub mod run;
mod table;
mod update;
