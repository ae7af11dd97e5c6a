//! The parts of histories, added up: a run in which something never happened shows little.

use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{AddAssign, Index};

/// How often each thing happened.
#[derive(Clone, Default, Debug)]
pub struct Total(BTreeMap<&'static str, usize>);

impl Total {
    pub fn of(counts: &[(&'static str, usize)]) -> Self {
        Total(counts.iter().copied().collect())
    }

    /// Counts so many more of this.
    pub fn count(&mut self, name: &'static str, more: usize) {
        *self.0.entry(name).or_default() += more;
    }

    /// Whether this happened.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|count| *count > 0)
    }

    /// Asserts that unknown is true to its name: some of these changes have landed, others have not.
    pub fn assert_unknown_is_worth_its_name(&self) {
        let landed = self["unknownThatLanded"];
        assert!(0 < landed && landed < self["unknown"], "unknown was never worth its name: {self}");
    }

    /// The least of these.
    pub fn least(&self, names: &[&str]) -> usize {
        names.iter().map(|name| self[name]).min().expect("a name")
    }
}

impl Index<&str> for Total {
    type Output = usize;

    fn index(&self, name: &str) -> &usize {
        self.0.get(name).unwrap_or_else(|| panic!("nothing called {name} is counted: {self}"))
    }
}

impl AddAssign for Total {
    fn add_assign(&mut self, more: Total) {
        for (name, count) in more.0 {
            self.count(name, count);
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        json!(self.0).fmt(f)
    }
}
