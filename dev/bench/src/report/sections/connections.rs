//! Slow connections.

use crate::measure::connections::{Connections, Row, WAYS};
use crate::report::bars::{Bars, Group};
use crate::report::colour::Colour;
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::Table;
use crowds::connections::{HANDSHAKE, Trouble, Way};

/// The tables and plots.
#[must_use]
pub fn section(connections: &Connections) -> Section {
    let about = format!(
        "update, 5 ms hops, handshake {} ms (virtual time, {} seeds)",
        HANDSHAKE.as_millis(),
        connections.seeds
    );
    let mut table = Table::new(
        "connections",
        &[&about, "way", "ms, mean", "worst", "requests, mean", "connections opened", "lost answers"],
    );
    for Row { trouble, way, mean, longest, requests, opened, lost } in &connections.rows {
        let figures = [mean, longest, requests, opened, lost].map(Into::into);
        table.push([name_of(*trouble).into(), name(*way).into()].into_iter().chain(figures));
    }
    let colour = |way| if way == Way::Fencepost { Colour::Ours } else { Colour::Usual };
    let group = |rows: &[Row]| {
        let first = rows.first()?;
        Some(Group { name: name_of(first.trouble), bars: Ok(rows.iter().map(|row| row.mean.clone()).collect()) })
    };
    Section {
        about: "One update, which is a read and a write, over simulated connections. A connection carries one request at a \
                time, and is closed when its request is dropped. \"Hang up\" is the usual way with timeouts: 150 ms if the \
                client was answered within the last minute, else 2 s, and twice as long after each lost answer."
            .to_owned(),
        seeds: format!("0 to {}", connections.seeds.saturating_sub(1)),
        tables: vec![table],
        plots: vec![Plot {
            name: "connections-time",
            title: "One update over slow connections".to_owned(),
            about: "The mean time until the caller has its acknowledgement.".to_owned(),
            drawing: Drawing::Bars(Bars {
                unit: "ms".to_owned(),
                ways: WAYS.map(|way| (name(way).to_owned(), colour(way))).into(),
                groups: connections.rows.chunks(WAYS.len()).filter_map(group).collect(),
                limit: None,
            }),
        }],
        ..Section::default()
    }
}

fn name(way: Way) -> &'static str {
    if way == Way::Fencepost { "Fencepost" } else { "hang up" }
}

fn name_of(trouble: Trouble) -> String {
    match trouble {
        Trouble::None => "no trouble".to_owned(),
        Trouble::ColdAndLateRead => "new client, the answer to the read 200 ms late".to_owned(),
        Trouble::LateWrite => "connected, the answer to the write 200 ms late".to_owned(),
        Trouble::LostWrite => "connected, the answer to the write lost".to_owned(),
        Trouble::Freeze(time) if time.as_secs() < 60 => {
            format!("four dead connections after a freeze of {} s", time.as_secs())
        }
        Trouble::Freeze(time) => format!("four dead connections after a freeze of {} min", time.as_secs() / 60),
    }
}
