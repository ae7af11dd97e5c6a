//! The parts of `cargo dev bench`, in their order.

use crate::figure::Measured;
use crate::measure::function::Programs;
use crate::measure::steps::Steps;
use crate::measure::{adds, connections, crowds, function, leases, orders, roots, units};
use crate::report::found::Found;
use crate::run::Part;
use std::time::Duration;

/// The parts. Without programs, what measures them is missing with the reason.
#[must_use]
pub fn all(programs: Measured<Programs>) -> Vec<Part> {
    let of_roots = programs.clone();
    vec![
        part("function", "Size, start, memory and an update", 5, move |steps| {
            function::measure(&programs, steps).map(Box::new).map(Found::Function)
        }),
        part("crowds", "Many writers on one item", 3, |steps| Ok(Found::Crowds(crowds::measure(steps)))),
        part("adds", "Adds", 19, |steps| Ok(Found::Adds(adds::measure(steps)))),
        part("units", "Write units of adds", 3, |steps| Ok(Found::Units(units::measure(steps)))),
        part("orders", "Orders", 14, |steps| Ok(Found::Orders(orders::measure(steps)))),
        part("leases", "Leases", 4, |steps| Ok(Found::Leases(leases::measure(steps)))),
        part("connections", "Slow connections", 1, |steps| Ok(Found::Connections(connections::measure(steps)))),
        part("roots", "Start by the source of TLS roots", 2, move |steps| {
            roots::measure(&of_roots, steps).map(Found::Roots)
        }),
    ]
}

/// `seconds` is how long the part takes on a machine with two cores.
fn part(
    name: &'static str,
    title: &'static str,
    seconds: u64,
    measure: impl FnOnce(&Steps<'_>) -> Measured<Found> + 'static,
) -> Part {
    Part { name, title, expected: Duration::from_secs(seconds), measure: Box::new(measure) }
}
