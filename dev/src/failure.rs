//! What went wrong, as one sentence that says what to do about it.

use std::fmt;

/// Ends the run: the sentence goes to the terminal, the code to the shell.
#[derive(Debug)]
pub struct Failure {
    sentence: String,
    exit_code: u8,
}

impl Failure {
    /// Something about this machine or this repository stands in the way; exit code 1.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), exit_code: 1 }
    }

    /// The command line cannot be understood; exit code 2, as shells and other tools have it.
    #[must_use]
    pub fn usage(problem: impl fmt::Display) -> Self {
        Self { sentence: format!("{problem}; `cargo dev --help` lists the options."), exit_code: 2 }
    }

    /// What the process exits with.
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
