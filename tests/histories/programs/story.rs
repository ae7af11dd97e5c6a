//! The story of a program, and smaller programs than it.

use super::plan::{self, Program, Task};
use fencepost_test::Rates;
use std::fmt;

impl Program {
    /// This program without one of its tasks or its faults, for each of them.
    pub fn smaller(&self) -> Vec<Self> {
        let mut smaller = Vec::new();
        for (client, of) in self.clients.iter().enumerate() {
            for task in 0..of.tasks.len() {
                let mut less = self.clone();
                less.clients[client].tasks.remove(task);
                less.clients.retain(|client| !client.tasks.is_empty());
                smaller.push(less);
            }
        }
        if self.rates != Rates::default() {
            smaller.push(Program { rates: Rates::default(), ..self.clone() });
        }
        smaller
    }
}

/// The story of a program.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {}, TTL every {} ms", self.seed, self.ttl)?;
        if self.rates != Rates::default() {
            writeln!(f, "  {:?}", self.rates)?;
        }
        for (number, client) in self.clients.iter().enumerate() {
            let plan::Client { remembers, is_older, .. } = client;
            writeln!(f, "  client {number}, remembers: {remembers}, of an older build: {is_older}")?;
            for Task { op, after, within, dropped_after, is_fenced } in &client.tasks {
                write!(f, "    after {after} ms, within {within} ms: {op:?}")?;
                let dropped = dropped_after.map_or_else(String::new, |polls| format!(", dropped at await {polls}"));
                writeln!(f, "{dropped}{}", if *is_fenced { ", fenced" } else { "" })?;
            }
        }
        Ok(())
    }
}
