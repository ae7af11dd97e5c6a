//! Size, start, memory and an update.

use crate::figure::{Figure, Measured, length};
use crate::measure::function::{Function, INVOCATIONS, Pair, ROUNDS, STARTS, Starts};
use crate::report::bars::{Bars, Group};
use crate::report::colour::Colour;
use crate::report::lines::{Axis, Lines, Series};
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::{Cell, Table};

/// The limits that are promised: MB of a bootstrap, and MB of memory.
const LIMITS: (f64, f64) = (5.6, 10.0);

/// The tables and plots.
#[must_use]
pub fn section(function: &Function) -> Section {
    let Function { size, starts, memory, update } = function;
    let mut table = Table::new("function", &["what", "Fencepost", "against", "ratio", "target"])
        .about("size, start, memory and an update");
    let cells = |target: &'static str| {
        move |Pair { ours, against, ratio }: &Pair| vec![ours.into(), against.into(), ratio.into(), Cell::from(target)]
    };
    let medians = starts.as_ref().map(|starts| starts.medians.clone()).map_err(Clone::clone);
    table.push_measured("bootstrap, MB", size, cells("<= 5.6 MB"));
    table.push_measured("start, ms", &medians, cells("<= 3.3 x"));
    table.push_measured(&format!("peak memory over {INVOCATIONS} invocations, MB"), memory, cells("<= 10 MB"));
    table.push_measured("update against GetItem + UpdateItem, ms", update, cells("<= 1.1 x"));
    let mut section = Section {
        about: format!(
            "The function device-state against a function without the SDK, both as released, and an update against the \
             same two requests on the bare SDK. A start is the time from the creation of the process until it asks for \
             its first event: {STARTS} of each program, in turns. The update is the median of {ROUNDS}, over HTTP on \
             this machine. The times depend on the machine. The ratios depend on it less."
        ),
        tables: vec![table],
        ..Section::default()
    };
    if let Ok(starts) = starts {
        section.samples.push(starts_table(starts));
        section.plots.push(starts_plot(starts));
    }
    let least = "The function device-state against the least function, which has no SDK.";
    let without = "without the SDK";
    section.plots.extend([
        pair_plot(("function-size", "Size of the bootstrap", least), without, "MB", size, Some(LIMITS.0)),
        pair_plot(("function-memory", "Peak memory", least), without, "MB", memory, Some(LIMITS.1)),
        pair_plot(
            (
                "function-update",
                "One update over HTTP",
                "The median time of an update, against the same two requests without Fencepost.",
            ),
            "bare SDK",
            "ms",
            update,
            None,
        ),
    ]);
    section
}

/// The share of the starts that were at most so long, in percent.
fn share(starts: &[Figure], index: usize) -> Figure {
    Figure::new(100.0 * length(&starts[..=index]) / length(starts), 1)
}

fn starts_table(starts: &Starts) -> Table {
    let mut table =
        Table::new("function-starts", &["starts that were at most so long, %", "device-state, ms", "baseline, ms"]);
    for (index, (ours, against)) in starts.ours.iter().zip(&starts.against).enumerate() {
        table.push([Cell::from(&share(&starts.ours, index)), ours.into(), against.into()]);
    }
    table
}

fn starts_plot(starts: &Starts) -> Plot {
    let series = |name: &str, colour, times: &[Figure]| Series {
        name: name.to_owned(),
        colour,
        points: times.iter().enumerate().map(|(index, time)| (time.clone(), share(times, index))).collect(),
        marks_every: 10,
    };
    Plot {
        name: "function-starts",
        title: "Start of a process".to_owned(),
        about: "Each curve shows how many of the starts were at most so long.".to_owned(),
        drawing: Drawing::Lines(Lines {
            x: Axis { title: "start, ms".to_owned(), is_logarithmic: true },
            y: Axis { title: "% of the starts".to_owned(), is_logarithmic: false },
            series: vec![
                series("Fencepost: device-state", Colour::Ours, &starts.ours),
                series("without the SDK", Colour::Usual, &starts.against),
            ],
        }),
    }
}

fn pair_plot(
    (name, title, about): (&'static str, &str, &str),
    against: &str,
    unit: &str,
    pair: &Measured<Pair>,
    limit: Option<f64>,
) -> Plot {
    let bars = pair.as_ref().map(|pair| vec![pair.ours.clone(), pair.against.clone()]).map_err(Clone::clone);
    Plot {
        name,
        title: title.to_owned(),
        about: about.to_owned(),
        drawing: Drawing::Bars(Bars {
            unit: unit.to_owned(),
            ways: vec![("Fencepost".to_owned(), Colour::Ours), (against.to_owned(), Colour::Usual)],
            groups: vec![Group { name: String::new(), bars }],
            limit,
        }),
    }
}
