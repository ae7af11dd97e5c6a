//! The same orders both ways: without trouble, with `TransactionConflict` as on AWS, and with losses too. The figures
//! are exact, because time is virtual.

use super::scene::HOP;
use super::steps::Steps;
use crate::figure::{Figure, number};
use crowds::orders::{self, Outcome, Scene, Way};

/// The scenes, in the order of the table.
pub const SCENES: [Scene; 6] = [
    Scene { products: 1, conflicts: false, losses: false },
    Scene { products: 1000, conflicts: false, losses: false },
    Scene { products: 1, conflicts: true, losses: false },
    Scene { products: 1000, conflicts: true, losses: false },
    Scene { products: 1, conflicts: true, losses: true },
    Scene { products: 1000, conflicts: true, losses: true },
];
/// Both ways, in the order of the table.
pub const WAYS: [Way; 2] = [Way::Usual, Way::Fencepost];
/// The number of orders that each client wants.
pub const WANTED: usize = 100;
/// The seed.
pub const SEED: u64 = 1;

/// The result of one way in one scene.
#[derive(Clone, Debug)]
pub struct Row {
    /// The way in which the orders were placed.
    pub way: Way,
    /// What was ordered, and what disturbed it.
    pub scene: Scene,
    /// Orders whose success a client has heard.
    pub acknowledged: Figure,
    /// Orders in the table.
    pub held: Figure,
    /// The stock that was taken.
    pub taken: Figure,
    /// Answers with an unknown outcome.
    pub unknown: Figure,
    /// Orders that a client gave up.
    pub gave_up: Figure,
    /// Requests for each acknowledged order.
    pub requests: Figure,
    /// Acknowledged orders in each second.
    pub per_second: Figure,
    /// The speed as a multiple of the usual way's.
    pub times_usual: Figure,
    /// Orders in the table that no client has heard of: held without acknowledged.
    pub doubled: Figure,
}

/// The result of both ways in all scenes.
#[derive(Clone, Debug)]
pub struct Orders {
    /// One for each scene and way.
    pub rows: Vec<Row>,
}

/// Measures both ways in all scenes.
#[must_use]
pub fn measure(steps: &Steps<'_>) -> Orders {
    steps.expect(SCENES.len() * WAYS.len());
    let mut rows = Vec::new();
    for scene in SCENES {
        let mut usual = None;
        for way in WAYS {
            let game = orders::play(way, scene, WANTED, HOP, SEED);
            let row = row(way, scene, &game, usual);
            usual = usual.or(Some(per_second(&game)));
            rows.push(row);
            steps.done(1);
        }
    }
    Orders { rows }
}

fn per_second(game: &Outcome) -> f64 {
    number(game.acknowledged) / game.time.as_secs_f64()
}

/// The figures of one game. `usual` is the speed of the usual way, unless this is the usual way.
#[must_use]
pub fn row(way: Way, scene: Scene, game: &Outcome, usual: Option<f64>) -> Row {
    let per_second = per_second(game);
    Row {
        way,
        scene,
        acknowledged: Figure::count(game.acknowledged),
        held: Figure::count(game.held),
        taken: Figure::new(game.taken.to_string().parse().unwrap_or(f64::NAN), 0),
        unknown: Figure::count(game.unknown),
        gave_up: Figure::count(game.gave_up),
        requests: Figure::ratio(number(u64::from(game.requests)), number(game.acknowledged), 2),
        per_second: Figure::new(per_second, 1),
        times_usual: Figure::ratio(per_second, usual.unwrap_or(per_second), 2),
        doubled: Figure::new(number(game.held) - number(game.acknowledged), 0),
    }
}
