//! Write units of adds.

use crate::measure::units::{REMEMBERED, Row, Units};
use crate::report::bars::{Bars, Group};
use crate::report::colour::Colour;
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::{Cell, Table};

/// The tables and plots.
#[must_use]
pub fn section(units: &Units) -> Section {
    let headings = REMEMBERED.map(|writes| format!("R = {writes}"));
    let mut table =
        Table::new("units", &["write units per add (virtual time)", &headings[0], &headings[1], &headings[2]]);
    for row in &units.rows {
        table.push([name(row).into()].into_iter().chain(row.units.iter().map(Cell::from)));
    }
    let colours = [Colour::Adds, Colour::Ours, Colour::Second];
    let ways = REMEMBERED.into_iter().zip(colours).map(|(writes, colour)| (format!("{writes} writes"), colour));
    let group = |row: &Row| Group { name: name(row), bars: Ok(row.units.to_vec()) };
    Section {
        about:
            "DynamoDB charges a write for each started KB of the item. The row has its full memory of R writes, one of \
                which takes about 16 bytes."
                .to_owned(),
        seeds: "1".to_owned(),
        tables: vec![table],
        plots: vec![Plot {
            name: "units",
            title: "Write units of one add".to_owned(),
            about: "Each row remembers 16, 32 or 64 writes.".to_owned(),
            drawing: Drawing::Bars(Bars {
                unit: String::new(),
                ways: ways.collect(),
                groups: units.rows.iter().map(group).collect(),
                limit: None,
            }),
        }],
        ..Section::default()
    }
}

fn name(row: &Row) -> String {
    let plural = if row.per_second == 1 { "" } else { "s" };
    format!("item of {} B, {} add{plural} a second", row.bytes, row.per_second)
}
