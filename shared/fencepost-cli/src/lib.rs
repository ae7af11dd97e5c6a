//! `fencepost`: for the operators of a table. Explains rows, adopts them, sweeps tombstones, restamps a restored table,
//! checks a table, and prints templates for one.
//!
//! In the order of a run: [`args`] reads the command line, [`table`] finds the table and its key, [`run`] goes over its
//! rows, [`state`] keeps the place of the run in a file, and [`say`] writes the findings. [`table`] has the notation of
//! keys too. [`audit`] reads changes instead, and needs no table. Every error is a [`Failure`].
//!
//! It is a package of its own. So it can be installed alone (`cargo install --path shared/fencepost-cli`), and `cargo dev`
//! stays a tool for developers.

pub mod args;
pub mod audit;
pub mod run;
pub mod say;
pub mod state;
pub mod table;

use std::error::Error;
use std::{fmt, io};

/// A failure that ends the run. The sentence goes to the terminal. The exit code goes to the shell.
#[derive(Debug)]
pub struct Failure {
    sentence: String,
    exit_code: u8,
}

impl Failure {
    /// A failure of the table, the set-up or this machine. The exit code is 1.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Failure { sentence: sentence.into(), exit_code: 1 }
    }

    /// The command line does not fit the table. The exit code is 2, as in shells and other tools.
    #[must_use]
    pub fn usage(problem: impl fmt::Display) -> Self {
        Failure { sentence: format!("{problem}; `fencepost --help` lists the options."), exit_code: 2 }
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl Error for Failure {}

/// The output cannot be written.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::new(format!("The output cannot be written: {error}."))
    }
}

/// The innermost cause. The outer errors of the SDK only say which layer failed.
#[must_use]
pub fn reason(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
