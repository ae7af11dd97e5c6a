//! TLS roots.

use crate::measure::function::STARTS;
use crate::measure::roots::{Roots, Row, Source};
use crate::report::bars::{Bars, Group};
use crate::report::colour::Colour;
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::Table;

/// The tables and plots.
#[must_use]
pub fn section(roots: &Roots) -> Section {
    let mut table = Table::new("roots", &["TLS roots", "start, ms", "client, ms"]);
    for Row { source, start, client } in &roots.rows {
        table.push([name(*source).into(), start.into(), client.into()]);
    }
    let group =
        |row: &Row| Group { name: name(row.source).to_owned(), bars: Ok(vec![row.start.clone(), row.client.clone()]) };
    Section {
        about: format!(
            "Most of a start is the reading of TLS roots, which makes the client. Medians of {STARTS} starts of device-state, \
             in turns."
        ),
        tables: vec![table],
        plots: vec![Plot {
            name: "roots",
            title: "Start by the source of TLS roots".to_owned(),
            about: "The whole start, and the part of it that makes the client.".to_owned(),
            drawing: Drawing::Bars(Bars {
                unit: "ms".to_owned(),
                ways: vec![("start".to_owned(), Colour::Ours), ("client alone".to_owned(), Colour::Adds)],
                groups: roots.rows.iter().map(group).collect(),
                limit: None,
            }),
        }],
        ..Section::default()
    }
}

fn name(source: Source) -> &'static str {
    match source {
        Source::Bundle => "the system's bundle",
        Source::Folder => "a folder that has each by itself, too",
        Source::One => "one",
    }
}
