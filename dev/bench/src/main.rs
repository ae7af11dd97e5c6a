//! Measures the cost of Fencepost as ratios of one run. `cargo dev bench` builds everything and runs this.
//!
//! Usage: `bench [--report DIR] [PART] [DEVICE_STATE BASELINE]`, with the paths of the two bootstraps. Without them,
//! what measures them is missing. A PART is measured alone: `bench adds`, for example. (This program starts
//! `bench engine` and `bench client` as processes of its own.)
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line tool: its tables go to the terminal"
)]

use bench::args::{self, Args, Command};
use bench::figure::Measured;
use bench::measure::engine;
use bench::measure::function::Programs;
use bench::parts;
use bench::report::{facts, folder::Folder};
use bench::run::Run;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let outcome = args::parse(std::env::args_os().skip(1)).and_then(|command| match command {
        Command::Engine => Ok(Builder::new_current_thread().enable_all().build()?.block_on(engine::serve())?),
        Command::Client => {
            println!("{}", bench::startup::client().as_nanos());
            Ok(())
        }
        Command::Measure(args) => measure(args),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(Args { report, part, programs }: Args) -> Outcome<()> {
    let folder = match report {
        Some(path) => Some(Folder::create(&path).map_err(|error| format!("{}: {error}", path.display()))?),
        None => None,
    };
    let facts = if folder.is_some() { facts::gathered(device_state(&programs)) } else { Vec::new() };
    let parts = parts::all(programs);
    let run = Arc::new(Run::new(&parts, part.as_deref(), facts, folder)?);
    stop_when_asked(&run)?;
    let failed = run.play(parts, |table| print!("{table}"))?;
    if failed.is_empty() { Ok(()) } else { Err(format!("these parts have failed: {}", failed.join(", ")).into()) }
}

fn device_state(programs: &Measured<Programs>) -> Option<&std::path::Path> {
    programs.as_ref().ok().map(|programs| programs.device_state.as_path())
}

/// Ctrl-C, `kill` and the end of the terminal stop the run. A part takes seconds and cannot be interrupted, so a thread
/// of its own finishes the report and ends the process.
fn stop_when_asked(run: &Arc<Run>) -> Outcome<()> {
    let run = Arc::clone(run);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listening = runtime.enter();
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    drop(listening);
    std::thread::spawn(move || {
        let [Ok(interrupt), Ok(terminate), Ok(hangup)] = &mut signals else { return };
        let number = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                _ = hangup.recv() => 1,
            }
        });
        eprintln!("\n{}", run.stop());
        std::process::exit(128 + number);
    });
    Ok(())
}
