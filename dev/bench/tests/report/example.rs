//! A result of each part, without measuring. Every figure differs from every other one of its part.

use bench::figure::Figure;
use bench::measure::adds::{Adds, WAYS, Way};
use bench::measure::connections::{self, Connections, TROUBLES};
use bench::measure::crowds::{CROWD, Crowds, Row, Times};
use bench::measure::function::{Function, Pair, Starts};
use bench::measure::leases::{self, Leases, What};
use bench::measure::orders::{self, Orders, SCENES};
use bench::measure::roots::{Roots, Row as RootsRow, Source};
use bench::measure::steps::Steps;
use bench::measure::units::{Row as UnitsRow, Units};
use bench::report::found::Found;
use bench::run::Part;
use crowds::adds::Callers;
use crowds::connections::Cost as ConnectionCost;
use crowds::crowd::{Outcome, Strategy};
use crowds::leases::Cost;
use crowds::pool::Counts;
use std::time::Duration;

const STRATEGIES: [Strategy; 3] = [Strategy::Fencepost, Strategy::Naive, Strategy::FullJitter];

/// A game of a crowd in which some gave up.
fn game(callers: usize, pace: u64, gave_up: usize) -> Outcome {
    let times: Vec<_> = (1..=callers - gave_up).map(|place| Duration::from_millis(place as u64 * pace)).collect();
    let requests = u32::try_from(callers * 2).expect("few") + u32::try_from(pace).expect("few");
    Outcome { requests, times, gave_up, count: 0 }
}

pub fn crowds() -> Crowds {
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    for callers in [1, 2, 10, CROWD] {
        for (strategy, pace) in STRATEGIES.into_iter().zip([7, 13, 29]) {
            let gave_up = if strategy == Strategy::Naive { callers / 2 } else { 0 };
            let games = [game(callers, pace, gave_up)];
            rows.push(Row::of(callers, strategy, &games, Some(3.0)));
            if callers == CROWD {
                times.push(Times::of(strategy, &games));
            }
        }
    }
    Crowds { seeds: 10, rows, times }
}

pub fn adds() -> Adds {
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    for callers in [1, 10, CROWD, 1000] {
        for (way, pace) in WAYS.into_iter().zip([3, 5, 11]) {
            let games = [game(callers, pace, 0)];
            rows.push(Row::of(callers, way, &games, None));
            if callers == CROWD {
                times.push(Times::of(way, &games));
            }
        }
    }
    let steady = Row::of(1, Way::Add(Callers::OneStore), &[game(40, 2, 0)], None);
    Adds { seeds: 3, rows, steady, times }
}

pub fn function() -> Function {
    let pair = |ours: f64, against: f64| Pair {
        ours: Figure::new(ours, 2),
        against: Figure::new(against, 2),
        ratio: Figure::ratio(ours, against, 2),
    };
    let starts = |first: f64| (0..41).map(|index| Figure::new(first + f64::from(index) / 9.0, 2)).collect();
    Function {
        size: Ok(pair(5.19, 0.9)),
        starts: Ok(Starts { medians: pair(2.08, 1.06), ours: starts(2.08), against: starts(1.06) }),
        memory: Ok(pair(6.52, 2.81)),
        update: Ok(pair(0.71, 0.67)),
    }
}

pub fn units() -> Units {
    let row = |bytes, per_second, units: [f64; 3]| UnitsRow {
        bytes,
        per_second,
        units: units.map(|unit| Figure::new(unit, 2)),
    };
    Units { rows: vec![row(300, 200, [1.0, 1.5, 2.0]), row(900, 1, [2.5, 3.0, 4.0])] }
}

pub fn orders() -> Orders {
    let mut rows = Vec::new();
    for (index, scene) in SCENES.into_iter().enumerate() {
        for way in orders::WAYS {
            let index = rows.len() as u64 + index as u64;
            let held = 2000 + if scene.losses { 10 + index } else { 0 };
            let game = crowds::orders::Outcome {
                acknowledged: 2000,
                held,
                taken: 3000 + i64::try_from(index).expect("few"),
                requests: 5000 + u32::try_from(index * 100).expect("few"),
                time: Duration::from_secs(10 + index),
                ..crowds::orders::Outcome::default()
            };
            rows.push(orders::row(way, scene, &game, None));
        }
    }
    Orders { rows }
}

pub fn leases() -> Leases {
    let whats = [What::Cycle, What::Broken, What::Silent, What::Waiters, What::AfterDeath, What::AfterFree];
    let row = |(index, what): (usize, What)| {
        let has_requests = !matches!(what, What::AfterDeath | What::AfterFree);
        let cost = |more: u32| {
            let number = u32::try_from(index).expect("few") + 2 + more;
            Cost { requests: if has_requests { number } else { 0 }, time: Duration::from_millis(100) * number }
        };
        leases::row(what, &[cost(0), cost(3)])
    };
    Leases { seeds: 200, rows: whats.into_iter().enumerate().map(row).collect() }
}

pub fn connections() -> Connections {
    let mut rows = Vec::new();
    for trouble in TROUBLES {
        for way in connections::WAYS {
            let index = u32::try_from(rows.len()).expect("few");
            let counts = Counts { requests: 2 + index, opened: index, most_in_flight: 1 };
            let cost = |millis| ConnectionCost { time: Duration::from_millis(millis), lost: index, counts };
            let slower = u64::from(index) * 50;
            rows.push(connections::row(trouble, way, &[cost(20 + slower), cost(40 + slower)]));
        }
    }
    Connections { seeds: 10, rows }
}

pub fn roots() -> Roots {
    let row =
        |source, start: f64| RootsRow { source, start: Figure::new(start, 2), client: Figure::new(start / 3.0, 2) };
    Roots { rows: vec![row(Source::Bundle, 2.27), row(Source::Folder, 4.43), row(Source::One, 1.88)] }
}

/// A part that finds this at once.
pub fn part(name: &'static str, title: &'static str, found: Found) -> Part {
    playing(name, title, move |_| Ok(found))
}

/// A part that measures in this way.
pub fn playing(
    name: &'static str,
    title: &'static str,
    measure: impl FnOnce(&Steps<'_>) -> Result<Found, String> + 'static,
) -> Part {
    Part { name, title, expected: Duration::from_secs(1), measure: Box::new(measure) }
}

/// All parts of a run.
pub fn parts() -> Vec<Part> {
    vec![
        part("function", "Function", Found::Function(Box::new(function()))),
        part("crowds", "Crowds", Found::Crowds(crowds())),
        part("adds", "Adds", Found::Adds(adds())),
        part("units", "Units", Found::Units(units())),
        part("orders", "Orders", Found::Orders(orders())),
        part("leases", "Leases", Found::Leases(leases())),
        part("connections", "Connections", Found::Connections(connections())),
        part("roots", "Roots", Found::Roots(roots())),
    ]
}
