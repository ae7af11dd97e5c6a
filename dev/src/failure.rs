//! [`Failure`]: one sentence with the fault and the remedy.

use std::fmt;

/// A failure that ends the run. The sentence goes to the terminal. The exit code goes to the shell.
#[derive(Debug)]
pub struct Failure {
    sentence: String,
    exit_code: u8,
}

impl Failure {
    /// A failure of this machine or this repository. The exit code is 1.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), exit_code: 1 }
    }

    /// A failure of the command line. The exit code is 2, as in shells and other tools.
    #[must_use]
    pub fn usage(problem: impl fmt::Display) -> Self {
        Self { sentence: format!("{problem}; `cargo dev --help` lists the options."), exit_code: 2 }
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

impl std::error::Error for Failure {}
