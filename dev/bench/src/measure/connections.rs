//! An update over slow connections both ways. The figures are exact, because time is virtual.

use super::scene::{HOP, SEEDS};
use super::steps::Steps;
use crate::figure::{Figure, length, millis, number};
use crowds::connections::{self, Cost, Trouble, Way};
use std::time::Duration;

/// The troubles, in the order of the table.
pub const TROUBLES: [Trouble; 6] = [
    Trouble::None,
    Trouble::ColdAndLateRead,
    Trouble::LateWrite,
    Trouble::LostWrite,
    Trouble::Freeze(Duration::from_secs(30)),
    Trouble::Freeze(Duration::from_mins(5)),
];
/// Both ways, in the order of the table.
pub const WAYS: [Way; 2] = [Way::Fencepost, Way::HangUp];

/// The cost of an update in one trouble and way.
#[derive(Clone, Debug)]
pub struct Row {
    /// The trouble.
    pub trouble: Trouble,
    /// The way to wait for answers.
    pub way: Way,
    /// The mean time, in milliseconds.
    pub mean: Figure,
    /// The longest time, in milliseconds.
    pub longest: Figure,
    /// The mean number of requests.
    pub requests: Figure,
    /// The mean number of connections that were opened.
    pub opened: Figure,
    /// The mean number of lost answers.
    pub lost: Figure,
}

/// The cost in all troubles.
#[derive(Clone, Debug)]
pub struct Connections {
    /// The seeds that each figure is the mean of.
    pub seeds: u64,
    /// One for each trouble and way.
    pub rows: Vec<Row>,
}

/// Measures both ways in all troubles.
#[must_use]
pub fn measure(steps: &Steps<'_>) -> Connections {
    steps.expect(TROUBLES.len() * WAYS.len());
    let mut rows = Vec::new();
    for trouble in TROUBLES {
        for way in WAYS {
            let costs: Vec<_> = (0..SEEDS).map(|seed| connections::update(way, trouble, HOP, seed)).collect();
            rows.push(row(trouble, way, &costs));
            steps.done(1);
        }
    }
    Connections { seeds: SEEDS, rows }
}

/// Sums up the costs of all seeds.
#[must_use]
pub fn row(trouble: Trouble, way: Way, costs: &[Cost]) -> Row {
    let mean = |of: fn(&Cost) -> u32| {
        Figure::ratio(number(costs.iter().map(|cost| u64::from(of(cost))).sum()), length(costs), 1)
    };
    let time: Duration = costs.iter().map(|cost| cost.time).sum();
    let longest = costs.iter().map(|cost| cost.time).max().unwrap_or_default();
    Row {
        trouble,
        way,
        mean: Figure::ratio(millis(time), length(costs), 0),
        longest: Figure::millis(longest, 0),
        requests: mean(|cost| cost.counts.requests),
        opened: mean(|cost| cost.counts.opened),
        lost: mean(|cost| cost.lost),
    }
}
