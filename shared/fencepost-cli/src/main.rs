//! The program `fencepost`.

#![allow(clippy::print_stderr, reason = "this is a command-line tool: what it says goes to the terminal")]

use fencepost_cli::Failure;
use fencepost_cli::args::{self, Audited, Command};
use fencepost_cli::run;
use fencepost_cli::table::client;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

/// Checks the changes in all files, or in the standard input, as one input.
fn audit(options: &Audited, out: &mut impl Write) -> Result<(), Failure> {
    let mut input: Box<dyn Read> = Box::new(io::empty());
    for path in &options.files {
        let file =
            File::open(path).map_err(|error| Failure::new(format!("{} cannot be read: {error}.", path.display())))?;
        input = Box::new(input.chain(file));
    }
    if options.files.is_empty() {
        input = Box::new(io::stdin().lock());
    }
    fencepost_cli::audit::run(options, input, out)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let outcome = match args::parse(std::env::args_os()).unwrap_or_else(|shown| shown.exit()) {
        Command::Row(options) => run::explain_row(&options, &mut out).await,
        Command::Table(options) => run::whole_table(&options, &mut out, |progress| eprintln!("  {progress}")).await,
        Command::Audit(options) => audit(&options, &mut out),
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
