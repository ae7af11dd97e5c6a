//! `fencepost`: for the operators of a table. Explains rows, adopts them, sweeps tombstones, restamps a restored table.
//!
//! In the order of a run: [`args`] reads the command line, [`table`] finds the table and its key, [`run`] goes over its
//! rows, [`state`] keeps the place of the run in a file, and [`say`] writes the findings. [`json`] has the notation of
//! keys. Every error is a [`failure::Failure`].
//!
//! It is a package of its own. So it can be installed alone (`cargo install --path dev/fencepost-cli`), and `cargo dev`
//! stays a tool for developers.

pub mod args;
pub mod failure;
pub mod json;
pub mod run;
pub mod say;
pub mod state;
pub mod table;
