//! Measures the cost of Fencepost as ratios of one run, and prints a Markdown table for each part. `cargo dev bench`
//! builds everything and runs this.
//!
//! Usage: `bench [PART] [DEVICE_STATE BASELINE]`, with the paths of the two bootstraps, without which `function` fails.
//! A PART is measured alone: `bench adds`. (This program starts `bench engine` as a process of its own.)
#![allow(clippy::print_stderr, reason = "this is a command-line tool: what it says goes to the terminal")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match bench::run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
