//! [`Failure`]: one sentence with the fault and the remedy.

use std::fmt;

/// A failure of this machine or this repository, which ends the run. The sentence goes to the terminal.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure with this sentence.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Failure(sentence.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
