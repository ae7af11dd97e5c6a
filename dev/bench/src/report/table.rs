//! [`Table`]: one table of a report. The terminal, the page and the CSV file show the same cells.

use crate::figure::{Figure, Measured};

/// A table with a name, its columns, and its rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The name of its CSV file, without the ending.
    pub name: &'static str,
    /// What the table is about, if the first heading does not say it.
    pub about: Option<&'static str>,
    /// The headings.
    pub columns: Vec<String>,
    /// The rows. Each has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A name.
    Text(String),
    /// A measured number.
    Figure(Figure),
    /// What could not be measured, with the reason.
    Missing(String),
}

impl Table {
    /// Creates a table without rows.
    #[must_use]
    pub fn new(name: &'static str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table { name, about: None, columns, rows: Vec::new() }
    }

    /// Says what the table is about.
    #[must_use]
    pub fn about(self, about: &'static str) -> Self {
        Table { about: Some(about), ..self }
    }

    /// What the table is about.
    #[must_use]
    pub fn title(&self) -> &str {
        self.about.unwrap_or(&self.columns[0])
    }

    /// Adds a row. A row that is too short gets empty cells.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<_> = row.into_iter().collect();
        row.resize(self.columns.len(), Cell::from(""));
        self.rows.push(row);
    }

    /// Adds the row of what could not be measured.
    pub fn push_missing(&mut self, what: &str, reason: &str) {
        self.push([Cell::from(what), Cell::Missing(reason.to_owned())]);
    }

    /// Adds the row of what was measured, or that it is missing.
    pub fn push_measured<T>(&mut self, what: &str, measured: &Measured<T>, cells: impl FnOnce(&T) -> Vec<Cell>) {
        match measured {
            Ok(measured) => self.push([vec![Cell::from(what)], cells(measured)].concat()),
            Err(reason) => self.push_missing(what, reason),
        }
    }
}

impl Cell {
    /// The text of the cell, in all forms of the table.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Figure(figure) => figure.to_string(),
            Cell::Missing(reason) => format!("missing: {reason}"),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<&Figure> for Cell {
    fn from(figure: &Figure) -> Self {
        Cell::Figure(figure.clone())
    }
}
