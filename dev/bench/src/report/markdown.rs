//! A table for the terminal, as Markdown.

use super::table::Table;

/// The table, with a line break at its end.
#[must_use]
pub fn of(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head = line(table.columns.clone());
    let rule = format!("|{}\n", "---|".repeat(table.columns.len()));
    let rows = table.rows.iter().map(|row| line(row.iter().map(|cell| one_line(&cell.text())).collect()));
    [head, rule].into_iter().chain(rows).collect()
}

/// Reasons come from other programs, and may have line breaks and bars.
fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
