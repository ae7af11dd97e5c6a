//! Many writers on one item: each strategy, beside adds.

use crate::figure::{Figure, Measured};
use crate::measure::adds::{Adds, Way};
use crate::measure::crowds::{CROWD, Crowds, Row, Times};
use crate::report::colour::Colour;
use crate::report::lines::{Axis, Lines, Series};
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::{Cell, Table};
use crowds::adds::Callers;
use crowds::crowd::Strategy;

/// The tables and plots. Adds are drawn beside the strategies, unless they are missing.
#[must_use]
pub fn section(crowds: &Crowds, adds: &Measured<&Adds>) -> Section {
    let lines = lines(crowds, adds);
    Section {
        about: format!(
            "Writers begin at once on one item, 5 ms to the table and 5 ms back. Requests include the reads. Times are \
             those of acknowledged changes only, so a way that gives up looks faster than it is: the last picture counts \
             everyone. Figures of more than {} writers are those of the part \"Adds\". The engine has no capacity, so it \
             answers crowds faster than DynamoDB may.",
            crowds.rows.iter().map(|row| row.callers).max().unwrap_or_default()
        ),
        seeds: format!("0 to {}", crowds.seeds.saturating_sub(1)),
        tables: vec![table(crowds)],
        samples: times_table(crowds, adds).into_iter().collect(),
        plots: [
            Some(over_writers(
                "crowd-requests",
                "Requests for one change",
                "requests per success",
                "Every request is paid for, refused ones too. Both axes are logarithmic.",
                (&lines, usize::MAX),
                |figures| figures.requests.clone(),
            )),
            Some(over_writers(
                "crowd-time",
                "Mean time of one change",
                "ms",
                "Acknowledged changes only. Both axes are logarithmic. A larger crowd is beyond the writes that DynamoDB takes \
                 on one item in a second.",
                (&lines, CROWD),
                |figures| figures.mean.clone(),
            )),
            times_plot(crowds, adds),
        ]
        .into_iter()
        .flatten()
        .collect(),
        missing: adds
            .as_ref()
            .err()
            .map(|reason| format!("adds beside the strategies: {reason}"))
            .into_iter()
            .collect(),
    }
}

/// The name of a strategy in the table.
fn name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Fencepost => "Fencepost",
        Strategy::Naive => "naive: read again, 2^n x 100 ms, 5 retries",
        Strategy::FullJitter => "full jitter: read again, 25 ms to 1 s",
    }
}

fn legend(strategy: Strategy) -> (&'static str, Colour) {
    match strategy {
        Strategy::Fencepost => ("Fencepost, versioned", Colour::Ours),
        Strategy::Naive => ("naive", Colour::Usual),
        Strategy::FullJitter => ("full jitter", Colour::Second),
    }
}

/// The name of a way to add in the pictures. Versioned changes are Fencepost's strategy already.
fn legend_of_add(way: Way) -> Option<(&'static str, Colour)> {
    match way {
        Way::Add(Callers::OneStore) => Some(("adds, one client", Colour::Adds)),
        Way::Add(Callers::OwnStores) => Some(("adds, a client each", Colour::OwnAdds)),
        Way::Versioned => None,
    }
}

fn table(crowds: &Crowds) -> Table {
    let about = format!("writers at once on one item, 5 ms hops (virtual time, {} seeds)", crowds.seeds);
    let mut table = Table::new(
        "crowds",
        &[&about, "requests per success", "x Fencepost", "mean time of a success, ms", "slowest, ms", "gave up"],
    );
    for row in &crowds.rows {
        table.push([
            format!("{}, {}", row.callers, name(row.way)).into(),
            (&row.requests).into(),
            (&row.times_ours).into(),
            (&row.mean).into(),
            (&row.slowest).into(),
            format!("{} of {}", row.gave_up, row.all).into(),
        ]);
    }
    table
}

/// The figures of one crowd that are drawn.
struct Figures {
    callers: usize,
    requests: Figure,
    mean: Figure,
}

impl Figures {
    fn of<W>(row: &Row<W>) -> Self {
        Figures { callers: row.callers, requests: row.requests.clone(), mean: row.mean.clone() }
    }
}

type Line = (&'static str, Colour, Vec<Figures>);

fn lines(crowds: &Crowds, adds: &Measured<&Adds>) -> Vec<Line> {
    let of_adds = |way: Way| {
        let rows = adds.iter().flat_map(|adds| &adds.rows);
        rows.filter(move |row| row.way == way).map(Figures::of).collect::<Vec<_>>()
    };
    let most = crowds.rows.iter().map(|row| row.callers).max().unwrap_or_default();
    let of_crowds = |strategy| {
        let (name, colour) = legend(strategy);
        let mut figures: Vec<_> = crowds.rows.iter().filter(|row| row.way == strategy).map(Figures::of).collect();
        if strategy == Strategy::Fencepost {
            figures.extend(of_adds(Way::Versioned).into_iter().filter(|figures| figures.callers > most));
        }
        (name, colour, figures)
    };
    let mut lines: Vec<Line> = [Strategy::Fencepost, Strategy::FullJitter, Strategy::Naive].map(of_crowds).into();
    for way in [Way::Add(Callers::OneStore), Way::Add(Callers::OwnStores)] {
        if let (Some((name, colour)), Ok(_)) = (legend_of_add(way), adds) {
            lines.push((name, colour, of_adds(way)));
        }
    }
    lines
}

/// A plot over the number of writers, up to `most` of them.
fn over_writers(
    name: &'static str,
    title: &str,
    unit: &str,
    about: &str,
    (lines, most): (&[Line], usize),
    of: fn(&Figures) -> Figure,
) -> Plot {
    let series = |(name, colour, figures): &Line| {
        let shown = figures.iter().filter(|figures| figures.callers <= most);
        let points = shown.map(|figures| (Figure::count(figures.callers as u64), of(figures))).collect();
        Series { name: (*name).to_owned(), colour: *colour, points, marks_every: 1 }
    };
    Plot {
        name,
        title: title.to_owned(),
        about: about.to_owned(),
        drawing: Drawing::Lines(Lines {
            x: Axis { title: "writers at once on one item".to_owned(), is_logarithmic: true },
            y: Axis { title: unit.to_owned(), is_logarithmic: true },
            series: lines.iter().map(series).collect(),
        }),
    }
}

type Curve<'a> = (&'static str, Colour, &'a [Figure]);

fn curves<'a>(crowds: &'a Crowds, adds: &'a Measured<&Adds>) -> Vec<Curve<'a>> {
    let of = |strategy| {
        let times = crowds.times.iter().find(|times| times.way == strategy)?;
        let (name, colour) = legend(strategy);
        Some((name, colour, times.percents.as_slice()))
    };
    let of_adds = |times: &'a Times<Way>| {
        let (name, colour) = legend_of_add(times.way)?;
        Some((name, colour, times.percents.as_slice()))
    };
    let strategies = [Strategy::Fencepost, Strategy::FullJitter, Strategy::Naive].into_iter().filter_map(of);
    strategies.chain(adds.iter().flat_map(|adds| &adds.times).filter_map(of_adds)).collect()
}

fn times_table(crowds: &Crowds, adds: &Measured<&Adds>) -> Option<Table> {
    let curves = curves(crowds, adds);
    let about = format!("share of {CROWD} writers at once that were acknowledged, %");
    let headings = curves.iter().map(|(name, _, _)| format!("{name}, ms")).collect::<Vec<_>>();
    let columns: Vec<_> = [about.as_str()].into_iter().chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new("crowd-times", &columns);
    for percent in 1..=100 {
        let times = curves.iter().map(|(_, _, times)| Cell::from(&times[percent - 1]));
        table.push([Cell::from(&Figure::count(percent as u64))].into_iter().chain(times));
    }
    (!curves.is_empty()).then_some(table)
}

fn times_plot(crowds: &Crowds, adds: &Measured<&Adds>) -> Option<Plot> {
    let series: Vec<_> = curves(crowds, adds)
        .into_iter()
        .map(|(name, colour, times)| Series {
            name: name.to_owned(),
            colour,
            points: (1..=100).zip(times).map(|(percent, time)| (time.clone(), Figure::count(percent))).collect(),
            marks_every: 25,
        })
        .collect();
    (!series.is_empty()).then(|| Plot {
        name: "crowd-times",
        title: format!("{CROWD} writers at once: who is done by when"),
        about: "Each curve shows how many of all writers had their acknowledgement by then. It ends below 100 % if \
                writers gave up."
            .to_owned(),
        drawing: Drawing::Lines(Lines {
            x: Axis { title: "time since all began, ms".to_owned(), is_logarithmic: true },
            y: Axis { title: "% of all writers".to_owned(), is_logarithmic: false },
            series,
        }),
    })
}
