//! The pieces of the page: texts, tables, plots.

use super::csv;
use super::escape::escaped;
use super::plot::Plot;
use super::table::{Cell, Table};
use std::fmt::Write as _;

/// A table that is folded away, with a link to its CSV file.
#[must_use]
pub fn folded(table: &Table) -> String {
    let about = escaped(table.title());
    format!(
        "<details>\n<summary>Table: {about}</summary>\n{}<p><a href=\"{name}.csv\" download>{name}.csv</a>, {} \
         bytes</p>\n</details>\n",
        rows(table),
        csv::of(table).len(),
        name = table.name
    )
}

/// A table in a frame that scrolls on a narrow screen, also with the keyboard.
#[must_use]
pub fn rows(table: &Table) -> String {
    let about = escaped(table.title());
    let mut html =
        format!("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{about}\">\n<table>\n<thead><tr>");
    for column in &table.columns {
        let _cannot_fail = write!(html, "<th scope=\"col\">{}</th>", escaped(column));
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        html += "<tr>";
        for (index, cell) in row.iter().enumerate() {
            html += &cell_of(index, cell);
            if matches!(cell, Cell::Missing(_)) {
                break;
            }
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>\n</div>\n"
}

/// The first cell is the heading of its row. The reason of a missing row takes the rest of it.
fn cell_of(index: usize, cell: &Cell) -> String {
    let text = escaped(&cell.text());
    match cell {
        _ if index == 0 => format!("<th scope=\"row\">{text}</th>"),
        Cell::Text(_) => format!("<td>{text}</td>"),
        Cell::Figure(_) => format!("<td class=\"figure\">{text}</td>"),
        Cell::Missing(_) => format!("<td class=\"missing\" colspan=\"99\">{text}</td>"),
    }
}

/// A plot with a link to its own file.
#[must_use]
pub fn figure(plot: &Plot) -> String {
    match plot.inline() {
        Ok(svg) => format!(
            "<figure>\n{svg}<figcaption>{} <a href=\"{name}.svg\">{name}.svg</a></figcaption>\n</figure>\n",
            escaped(&plot.about),
            name = plot.name
        ),
        Err(reason) => missing(&format!("{} could not be drawn: {reason}", plot.title)),
    }
}

/// What is missing, with the reason.
#[must_use]
pub fn missing(reason: &str) -> String {
    format!("<p class=\"missing\">missing: {}</p>\n", escaped(reason))
}
