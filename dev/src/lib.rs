//! `cargo dev`: runs every function of the workspace on this machine, on an embedded DynamoDB, with one command.
//!
//! In the order of a run: [`args`] reads the command line, [`template`] reads `template.yaml`, [`dynamodb`] starts the
//! embedded engine (or [`limited`]), [`tables`] creates the tables, [`functions`] starts the functions, [`gateway`] serves them as API Gateway
//! does. With `--watch`, [`watch`] compiles the functions and serves them as processes. Their contract is [`openapi`]. Every
//! other process belongs to a [`process::Group`], which ends with this one. Every error is a [`failure::Failure`].
//!
//! Runs on Linux and macOS, because it uses process groups and Unix signals.

#![allow(clippy::print_stderr, reason = "this is a command-line tool: what it says goes to the terminal")]

use std::path::{Path, PathBuf};

pub mod args;
pub mod bench;
pub mod dynamodb;
pub mod failure;
pub mod functions;
pub mod gateway;
pub mod limited;
pub mod openapi;
pub mod process;
pub mod tables;
pub mod template;
pub mod watch;
pub mod yaml;

/// The root of the workspace, with `template.yaml` and `Cargo.toml`.
///
/// # Panics
/// Never, because this crate is a folder of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the dev crate is a folder of the workspace")
}

/// The folder for files of this crate for other tools: `tools` in the target directory of the running program.
#[must_use]
pub fn tools() -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.join("tools")))
        .unwrap_or_else(|| workspace().join("target/tools"))
}
