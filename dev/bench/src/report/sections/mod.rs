//! What a report tells about each part: its typed result as tables and plots.

use super::found::Found;
use super::section::Section;
use crate::figure::Measured;
use crate::measure::adds::Adds;

pub mod adds;
pub mod connections;
pub mod crowds;
pub mod function;
pub mod leases;
pub mod orders;
pub mod roots;
pub mod units;

/// The files that a report can have beside its page. Those of an earlier report in the same folder would contradict it.
pub const FILES: &[&str] = &[
    "run.csv",
    "parts.csv",
    "function.csv",
    "function-starts.csv",
    "function-starts.svg",
    "function-size.svg",
    "function-memory.svg",
    "function-update.svg",
    "crowds.csv",
    "crowd-times.csv",
    "crowd-requests.svg",
    "crowd-time.svg",
    "crowd-times.svg",
    "adds.csv",
    "adds-slowest.svg",
    "units.csv",
    "units.svg",
    "orders.csv",
    "orders-doubled.svg",
    "orders-requests.svg",
    "leases.csv",
    "leases-time.svg",
    "leases-requests.svg",
    "connections.csv",
    "connections-time.svg",
    "roots.csv",
    "roots.svg",
];

/// The tables and plots of a result. Adds are drawn beside the crowds, if they are there.
#[must_use]
pub fn section(found: &Found, adds: &Measured<&Adds>) -> Section {
    match found {
        Found::Function(function) => function::section(function),
        Found::Crowds(crowds) => crowds::section(crowds, adds),
        Found::Adds(adds) => adds::section(adds),
        Found::Units(units) => units::section(units),
        Found::Orders(orders) => orders::section(orders),
        Found::Leases(leases) => leases::section(leases),
        Found::Connections(connections) => connections::section(connections),
        Found::Roots(roots) => roots::section(roots),
    }
}
