//! The cost of leases, and how long they take to change hands. The figures are exact, because time is virtual.

use super::scene::HOP;
use super::steps::Steps;
use crate::figure::{Figure, length, millis, number};
use crowds::leases::{self, Cost, Succession};
use crowds::wire::Loss;
use std::time::Duration;

/// The seeds. Leases need more of them than other parts, because most of their time is random.
pub const SEEDS: u64 = 200;
/// How often a lease is acquired and released.
const CYCLES: u32 = 100;

/// What is done with a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It is acquired and released.
    Cycle,
    /// It is acquired, and the connection breaks.
    Broken,
    /// It is acquired, and no answer comes.
    Silent,
    /// Many callers wait for it.
    Waiters,
    /// The time from the death of a holder to the next one.
    AfterDeath,
    /// The part of that after the lease had ended, and the second for the clocks.
    AfterFree,
}

/// The cost of one of these.
#[derive(Clone, Debug)]
pub struct Row {
    /// What is done.
    pub what: What,
    /// The mean number of requests. Empty where only the time matters.
    pub requests: Figure,
    /// The highest number of requests. Empty where only the time matters.
    pub most_requests: Figure,
    /// The mean time, in milliseconds.
    pub mean: Figure,
    /// The longest time, in milliseconds.
    pub longest: Figure,
}

/// The cost of all of them.
#[derive(Clone, Debug)]
pub struct Leases {
    /// The seeds that each figure is the mean of.
    pub seeds: u64,
    /// One for each.
    pub rows: Vec<Row>,
}

/// Measures leases.
#[must_use]
pub fn measure(steps: &Steps<'_>) -> Leases {
    measure_these(SEEDS, steps)
}

/// Measures leases with so many seeds.
#[must_use]
pub fn measure_these(seeds: u64, steps: &Steps<'_>) -> Leases {
    // Waiters take nearly all of the time, and a succession half of the rest.
    steps.expect((0..seeds).map(|_| 20 + 2).sum());
    let Cost { requests, time } = leases::cycles(CYCLES, HOP);
    let cycle = Cost { requests: requests / CYCLES, time: time / CYCLES };
    let costs = |weight: usize, play: &dyn Fn(u64) -> Cost| {
        let play = |seed| {
            let cost = play(seed);
            steps.done(weight);
            cost
        };
        (0..seeds).map(play).collect::<Vec<_>>()
    };
    let mut rows = vec![
        row(What::Cycle, &[cycle]),
        row(What::Broken, &costs(0, &|seed| leases::lost_acquire(Loss::Broken, HOP, seed))),
        row(What::Silent, &costs(0, &|seed| leases::lost_acquire(Loss::Silent, HOP, seed))),
        row(What::Waiters, &costs(20, &|seed| leases::waiters(HOP, seed).cost)),
    ];
    let play = |seed| {
        let succession = leases::succession(HOP, seed);
        steps.done(2);
        succession
    };
    let successions: Vec<_> = (0..seeds).map(play).collect();
    let times = |of: fn(&Succession) -> Duration| {
        successions.iter().map(|next| Cost { requests: 0, time: of(next) }).collect::<Vec<_>>()
    };
    rows.push(row(What::AfterDeath, &times(|next| next.after_death)));
    rows.push(row(What::AfterFree, &times(|next| next.after_free)));
    Leases { seeds, rows }
}

/// Sums up the costs of all seeds.
#[must_use]
pub fn row(what: What, costs: &[Cost]) -> Row {
    let requests = costs.iter().map(|cost| u64::from(cost.requests)).sum();
    let most = costs.iter().map(|cost| cost.requests).max().unwrap_or_default();
    let time: Duration = costs.iter().map(|cost| cost.time).sum();
    let longest = costs.iter().map(|cost| cost.time).max().unwrap_or_default();
    let (requests, most_requests) = match most {
        0 => (Figure::empty(), Figure::empty()),
        _ => (Figure::ratio(number(requests), length(costs), 1), Figure::count(u64::from(most))),
    };
    let mean = Figure::ratio(millis(time), length(costs), 0);
    Row { what, requests, most_requests, mean, longest: Figure::millis(longest, 0) }
}
