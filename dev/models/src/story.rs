//! [`Story`]: a counterexample as numbered lines.

use std::fmt;

/// What happened, one sentence for each step.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Story {
    lines: Vec<String>,
}

impl Story {
    /// Adds a line.
    pub fn add(&mut self, line: String) {
        self.lines.push(line);
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.lines.iter().enumerate() {
            writeln!(f, "{}. {line}", number + 1)?;
        }
        Ok(())
    }
}
