//! Crowds of writers on one item, with each strategy. The figures are exact, because time is virtual.

use super::scene::{HOP, SEEDS};
use super::steps::Steps;
use crate::figure::{Figure, millis, number, percentile};
use crowds::crowd::{self, Outcome, Strategy};
use std::time::Duration;

/// The sizes of the crowds.
pub const WRITERS: [usize; 4] = [1, 2, 10, 100];
/// The size of the crowd whose single times are kept.
pub const CROWD: usize = 100;
const STRATEGIES: [Strategy; 3] = [Strategy::Fencepost, Strategy::Naive, Strategy::FullJitter];

/// The result of one strategy for one size, or of one kind of add.
#[derive(Clone, Debug)]
pub struct Row<W> {
    /// The number of callers that began at once.
    pub callers: usize,
    /// The way in which they wrote.
    pub way: W,
    /// The requests for each acknowledged change.
    pub requests: Figure,
    /// The requests, as a multiple of Fencepost's.
    pub times_ours: Figure,
    /// The mean time of an acknowledged change, in milliseconds.
    pub mean: Figure,
    /// The time of the slowest one, in milliseconds.
    pub slowest: Figure,
    /// How many gave up.
    pub gave_up: usize,
    /// How many there were, over all seeds.
    pub all: usize,
}

impl<W> Row<W> {
    /// Sums up the games of all seeds. `ours` is the number of requests that Fencepost needs for one change.
    #[must_use]
    pub fn of(callers: usize, way: W, games: &[Outcome], ours: Option<f64>) -> Self {
        let successes = games.iter().map(|game| game.times.len()).sum::<usize>();
        let time: Duration = games.iter().flat_map(|game| &game.times).sum();
        let slowest = games.iter().map(Outcome::longest).max().unwrap_or_default();
        let gave_up = games.iter().map(|game| game.gave_up).sum();
        let requests = requests_each(games);
        Row {
            callers,
            way,
            requests: Figure::new(requests, 2),
            times_ours: Figure::ratio(requests, ours.unwrap_or(requests), 2),
            mean: Figure::ratio(millis(time), number(successes as u64), 0),
            slowest: if successes == 0 { Figure::new(f64::NAN, 0) } else { Figure::millis(slowest, 0) },
            gave_up,
            all: successes + gave_up,
        }
    }
}

/// The requests of all games, divided by their acknowledged changes.
fn requests_each(games: &[Outcome]) -> f64 {
    let successes = games.iter().map(|game| game.times.len() as u64).sum();
    let requests = games.iter().map(|game| u64::from(game.requests)).sum();
    number(requests) / number(successes)
}

/// The time by which each whole percent of the callers had its acknowledgement.
#[derive(Clone, Debug)]
pub struct Times<W> {
    /// The way in which they wrote.
    pub way: W,
    /// How many callers there were, over all seeds.
    pub all: usize,
    /// The milliseconds of 1 % to 100 %. A percent that gave up has none.
    pub percents: Vec<Figure>,
}

impl<W> Times<W> {
    /// Sorts the times of all seeds.
    #[must_use]
    pub fn of(way: W, games: &[Outcome]) -> Self {
        let mut times: Vec<_> = games.iter().flat_map(|game| game.times.iter().copied()).collect();
        times.sort();
        let all = times.len() + games.iter().map(|game| game.gave_up).sum::<usize>();
        let at = |percent| percentile(&times, all, percent).map_or_else(Figure::empty, |time| Figure::millis(time, 0));
        Times { way, all, percents: (1..=100).map(at).collect() }
    }
}

/// The result of all crowds.
#[derive(Clone, Debug)]
pub struct Crowds {
    /// The seeds that each figure is the mean of.
    pub seeds: u64,
    /// One for each size and strategy.
    pub rows: Vec<Row<Strategy>>,
    /// The single times in the crowd of [`CROWD`].
    pub times: Vec<Times<Strategy>>,
}

/// Measures the same crowds with each strategy.
#[must_use]
pub fn measure(steps: &Steps<'_>) -> Crowds {
    measure_these(&WRITERS, SEEDS, steps)
}

/// Measures crowds of these sizes, with so many seeds.
#[must_use]
pub fn measure_these(sizes: &[usize], seeds: u64, steps: &Steps<'_>) -> Crowds {
    let games: usize = (0..seeds).map(|_| sizes.iter().sum::<usize>() * STRATEGIES.len()).sum();
    steps.expect(games);
    let mut crowds = Crowds { seeds, rows: Vec::new(), times: Vec::new() };
    for &writers in sizes {
        let mut ours = None;
        for strategy in STRATEGIES {
            let play = |seed| {
                let game = crowd::play(strategy, writers, HOP, seed);
                steps.done(writers);
                game
            };
            let games: Vec<_> = (0..seeds).map(play).collect();
            if strategy == Strategy::Fencepost {
                ours = Some(requests_each(&games));
            }
            crowds.rows.push(Row::of(writers, strategy, &games, ours));
            if writers == CROWD {
                crowds.times.push(Times::of(strategy, &games));
            }
        }
    }
    crowds
}
