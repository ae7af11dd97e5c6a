//! Adds beside versioned changes.

use crate::figure::Figure;
use crate::measure::adds::{Adds, STEADY, WAYS, Way};
use crate::measure::crowds::{CROWD, Row};
use crate::report::colour::Colour;
use crate::report::lines::{Axis, Lines, Series};
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::Table;
use crowds::adds::Callers;

/// The tables and plots.
#[must_use]
pub fn section(adds: &Adds) -> Section {
    Section {
        about: "Callers begin at once and know nothing of the item: each reads it, and then adds to it. The window is 32 \
                versions, and the row remembers 64 writes. \"One client\" means callers of one service, who share what it \
                has seen. The steady load is adds by one client, which knows the item already. Times are those of the \
                engine, which has no capacity: DynamoDB takes a thousand callers on one item more slowly."
            .to_owned(),
        seeds: format!("0 to {}; 1 for the steady load", adds.seeds.saturating_sub(1)),
        tables: vec![table(adds)],
        plots: vec![plot(adds)],
        ..Section::default()
    }
}

fn name(way: Way) -> (&'static str, Colour) {
    match way {
        Way::Add(Callers::OneStore) => ("add, one client", Colour::Adds),
        Way::Add(Callers::OwnStores) => ("add, a client each", Colour::OwnAdds),
        Way::Versioned => ("versioned change, a client each", Colour::Ours),
    }
}

fn table(adds: &Adds) -> Table {
    let about = format!("callers at once on one item, 5 ms hops (virtual time, {} seeds)", adds.seeds);
    let mut table = Table::new(
        "adds",
        &[&about, "requests each", "mean time on the engine, ms", "slowest on the engine, ms", "gave up"],
    );
    let mut push = |what: String, row: &Row<Way>| {
        let gave_up = format!("{} of {}", row.gave_up, row.all);
        table.push([what.into(), (&row.requests).into(), (&row.mean).into(), (&row.slowest).into(), gave_up.into()]);
    };
    for row in &adds.rows {
        push(format!("{}, {}", row.callers, name(row.way).0), row);
    }
    push(format!("{STEADY} a second for a minute, add, one client"), &adds.steady);
    table
}

fn plot(adds: &Adds) -> Plot {
    let series = |way| {
        let (name, colour) = name(way);
        // A larger crowd is beyond the writes that DynamoDB takes on one item in a second.
        let rows = adds.rows.iter().filter(|row| row.way == way && row.callers <= CROWD);
        let points = rows.map(|row| (Figure::count(row.callers as u64), row.slowest.clone())).collect();
        Series { name: name.to_owned(), colour, points, marks_every: 1 }
    };
    Plot {
        name: "adds-slowest",
        title: "The slowest of all callers".to_owned(),
        about:
            "The longest time of an acknowledged change, over all seeds. Both axes are logarithmic. Requests and mean \
                times of adds are drawn beside the other ways, above."
                .to_owned(),
        drawing: Drawing::Lines(Lines {
            x: Axis { title: "callers at once on one item".to_owned(), is_logarithmic: true },
            y: Axis { title: "ms".to_owned(), is_logarithmic: true },
            series: WAYS.map(series).into(),
        }),
    }
}
