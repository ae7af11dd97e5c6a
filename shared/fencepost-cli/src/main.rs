//! The program `fencepost`.

#![allow(clippy::print_stderr, reason = "this is a command-line tool: what it says goes to the terminal")]

use fencepost_cli::args::{self, Command};
use fencepost_cli::run;
use fencepost_cli::table::client;
use std::io::{self, Write};
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let outcome = match args::parse(std::env::args_os()).unwrap_or_else(|shown| shown.exit()) {
        Command::Row(options) => run::explain_row(&options, &mut out).await,
        Command::Table(options) => run::whole_table(&options, &mut out, |progress| eprintln!("  {progress}")).await,
        Command::Check(options) => run::check(&options, Box::pin(client(options.endpoint.as_deref())), &mut out).await,
    };
    let outcome = outcome.and_then(|()| Ok(out.flush()?));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
