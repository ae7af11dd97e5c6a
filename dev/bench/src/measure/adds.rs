//! Adds to one item, beside versioned changes. The figures are exact, because time is virtual.

use super::crowds::{CROWD, Row, Times};
use super::scene::HOP;
use super::steps::Steps;
use crowds::adds::{self, Callers};
use crowds::crowd::{self, Outcome, Strategy};
use std::time::Duration;

/// The seeds: 0 up to this one, exclusively.
pub const SEEDS: u64 = 3;
/// How many callers begin at once.
pub const CALLERS: [usize; 4] = [1, 10, 100, 1000];
/// The adds a second of the steady load.
pub const STEADY: u32 = 200;

/// A way to change one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Adds, by callers who share a client or have one each.
    Add(Callers),
    /// Versioned changes, by callers who have a client each.
    Versioned,
}

/// All ways, in the order of the table.
pub const WAYS: [Way; 3] = [Way::Add(Callers::OneStore), Way::Add(Callers::OwnStores), Way::Versioned];

/// The result for all ways.
#[derive(Clone, Debug)]
pub struct Adds {
    /// The seeds that each figure is the mean of.
    pub seeds: u64,
    /// One for each number of callers and way.
    pub rows: Vec<Row<Way>>,
    /// Adds at a steady rate for a minute.
    pub steady: Row<Way>,
    /// The single times in the crowd of [`CROWD`].
    pub times: Vec<Times<Way>>,
}

/// Measures the same callers in each way, and the steady load.
#[must_use]
pub fn measure(steps: &Steps<'_>) -> Adds {
    measure_these(&CALLERS, SEEDS, Duration::from_mins(1), steps)
}

/// Measures so many callers with so many seeds, and the steady load for this time.
#[must_use]
pub fn measure_these(sizes: &[usize], seeds: u64, steady: Duration, steps: &Steps<'_>) -> Adds {
    let steady_adds = usize::try_from(u64::from(STEADY) * steady.as_secs()).unwrap_or_default();
    steps.expect((0..seeds).map(|_| sizes.iter().sum::<usize>() * WAYS.len()).sum::<usize>() + steady_adds);
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    for &callers in sizes {
        for way in WAYS {
            let play = |seed| {
                let game = play(way, callers, seed);
                steps.done(callers);
                game
            };
            let games: Vec<_> = (0..seeds).map(play).collect();
            rows.push(Row::of(callers, way, &games, None));
            if callers == CROWD {
                times.push(Times::of(way, &games));
            }
        }
    }
    let game = adds::steady(STEADY, steady, HOP, 1);
    steps.done(steady_adds);
    Adds { seeds, rows, steady: Row::of(1, Way::Add(Callers::OneStore), &[game], None), times }
}

fn play(way: Way, callers: usize, seed: u64) -> Outcome {
    match way {
        Way::Add(stores) => adds::at_once(stores, callers, HOP, seed),
        Way::Versioned => crowd::play(Strategy::Fencepost, callers, HOP, seed),
    }
}
