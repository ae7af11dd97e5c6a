//! [`Section`]: what a report tells about one part of a run.

use super::plot::Plot;
use super::table::Table;

/// The tables and plots of one part.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// What was measured, and how to read it.
    pub about: String,
    /// The seeds of the part. Empty if nothing in it is random.
    pub seeds: String,
    /// The tables that the terminal shows, too.
    pub tables: Vec<Table>,
    /// The tables of single times, which only the report has.
    pub samples: Vec<Table>,
    /// The plots.
    pub plots: Vec<Plot>,
    /// What another part would have added, and why it is missing.
    pub missing: Vec<String>,
}
