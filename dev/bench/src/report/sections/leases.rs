//! Leases.

use crate::figure::Figure;
use crate::measure::leases::{Leases, Row, What};
use crate::report::bars::{Bars, Group};
use crate::report::colour::Colour;
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::Table;
use crowds::leases::{WAITED_FOR, WAITERS, WORK};

/// The tables and plots.
#[must_use]
pub fn section(leases: &Leases) -> Section {
    let about = format!("leases, 5 ms hops (virtual time, {} seeds)", leases.seeds);
    let mut table = Table::new("leases", &[&about, "requests, mean", "worst", "ms, mean", "worst"]);
    for Row { what, requests, most_requests, mean, longest } in &leases.rows {
        let figures = [requests, most_requests, mean, longest].map(Into::into);
        table.push([name(*what).into()].into_iter().chain(figures));
    }
    Section {
        about: "Each caller has a client of its own, 5 ms from the table. The waiters begin at once on one key. A holder that \
                dies has a lease of 10 s with at least half of it left, and the next holder waits 1 s more, because clocks may \
                differ."
            .to_owned(),
        seeds: format!("0 to {}", leases.seeds.saturating_sub(1)),
        tables: vec![table],
        plots: vec![
            plot(leases, ("leases-time", "Leases: time", "From the first request to the last answer."), "ms", |row| {
                [&row.mean, &row.longest]
            }),
            plot(leases, ("leases-requests", "Leases: requests", "Of all callers together."), "", |row| {
                [&row.requests, &row.most_requests]
            }),
        ],
        ..Section::default()
    }
}

fn name(what: What) -> String {
    match what {
        What::Cycle => "acquire and release".to_owned(),
        What::Broken => "acquire, the connection breaks".to_owned(),
        What::Silent => "acquire, no answer comes".to_owned(),
        What::Waiters => {
            format!("{WAITERS} waiters, {} ms of work each, leases of {} ms", WORK.as_millis(), WAITED_FOR.as_millis())
        }
        What::AfterDeath => "a holder's death to the next holder, leases of 10 s".to_owned(),
        What::AfterFree => "the part after its end and 1 s for the clocks".to_owned(),
    }
}

fn plot(
    leases: &Leases,
    (name_of_file, title, about): (&'static str, &str, &str),
    unit: &str,
    of: fn(&Row) -> [&Figure; 2],
) -> Plot {
    let groups = leases.rows.iter().map(|row| (row.what, of(row).map(Clone::clone)));
    let groups = groups.filter(|(_, figures)| figures.iter().any(|figure| figure.value().is_some()));
    Plot {
        name: name_of_file,
        title: title.to_owned(),
        about: about.to_owned(),
        drawing: Drawing::Bars(Bars {
            unit: unit.to_owned(),
            ways: vec![("mean".to_owned(), Colour::Ours), ("worst".to_owned(), Colour::Second)],
            groups: groups.map(|(what, bars)| Group { name: name(what), bars: Ok(bars.into()) }).collect(),
            limit: None,
        }),
    }
}
