//! Crowds of callers on one item: versioned changes, the usual loops, adds and the write units of adds. The figures are
//! exact, because time is virtual.

use crate::table::{figure, mean, millis, most, number, p99, table};
use crowds::adds::{self, Callers};
use crowds::crowd::{self, Outcome, Scene, Strategy};
use crowds::pace::{self, Pace, Way};
use std::time::Duration;

/// The time of a request in each direction.
pub const HOP: Duration = Duration::from_millis(5);
/// The seeds of crowds: 0 up to this one, exclusively.
const SEEDS: u64 = 10;

const WAYS: [(&str, Strategy); 3] = [
    ("Fencepost", Strategy::Fencepost),
    ("full jitter: read again, 25 ms to 1 s", Strategy::FullJitter),
    ("loop: read again without a pause", Strategy::AtOnce),
];

/// The row of all games of one crowd and way.
fn row(crowd: &str, way: &str, games: &[Outcome]) -> [String; 8] {
    let times: Vec<_> = games.iter().flat_map(|game| &game.times).copied().map(millis).collect();
    let requests = games.iter().map(|game| f64::from(game.requests)).sum::<f64>() / number(times.len());
    [
        format!("{crowd}, {way}"),
        figure(requests, 2),
        figure(mean(&times), 0),
        figure(p99(&times), 0),
        figure(most(&times), 0),
        times.len().to_string(),
        games.iter().map(|game| game.gave_up).sum::<usize>().to_string(),
        games.iter().map(|game| game.count).sum::<u64>().to_string(),
    ]
}

fn of(about: &str, rows: Vec<[String; 8]>) -> String {
    let headings = [
        about,
        "requests per success",
        "mean time of a success, ms",
        "p99, ms",
        "slowest, ms",
        "acknowledged",
        "gave up",
        "held",
    ];
    table(headings, rows)
}

/// The same crowds of writers with each strategy.
pub fn of_strategies() -> String {
    let mut rows = Vec::new();
    for writers in [2, 3, 10, 100, 300] {
        for (way, strategy) in WAYS {
            let seeds = if writers > 100 { 3 } else { SEEDS };
            let games: Vec<_> = (0..seeds).map(|seed| crowd::play(strategy, writers, HOP, seed)).collect();
            rows.push(row(&writers.to_string(), way, &games));
        }
    }
    of(&format!("writers at once on one item, 5 ms hops (virtual time, {SEEDS} seeds)"), rows)
}

/// Crowds that do not come in step, or not over a good network.
pub fn of_scenes() -> String {
    let scenes = [
        ("a stream of 50 a second", Scene::Stream(50), 500),
        ("a stream of 100 a second", Scene::Stream(100), 500),
        ("one of ten with hops of 50 ms", Scene::OneSlow, 10),
        ("3, 5 % of answers lost", Scene::Losses, 3),
        ("100, 5 % of answers lost", Scene::Losses, 100),
    ];
    let mut rows = Vec::new();
    for (name, scene, writers) in scenes {
        let seeds = if writers < 100 { 100 } else { SEEDS };
        for (way, strategy) in WAYS.into_iter().take(2) {
            let games: Vec<_> = (0..seeds).map(|seed| crowd::play_scene(scene, strategy, writers, HOP, seed)).collect();
            rows.push(row(name, way, &games));
        }
    }
    of("writers of one item, 5 ms hops (virtual time)", rows)
}

/// The same crowds of callers with adds, beside versioned changes, and a steady load by one client that knows the item.
pub fn of_adds() -> String {
    type Play = fn(usize, u64) -> Outcome;
    let ways: [(_, Play); 3] = [
        ("adds, one client", |callers, seed| adds::at_once(Callers::OneStore, callers, HOP, seed)),
        ("adds, a client each", |callers, seed| adds::at_once(Callers::OwnStores, callers, HOP, seed)),
        ("versioned changes", |callers, seed| crowd::play(Strategy::Fencepost, callers, HOP, seed)),
    ];
    let mut rows = Vec::new();
    for callers in [1, 10, 100, 1000] {
        for (way, play) in ways {
            let games: Vec<_> = (0..3).map(|seed| play(callers, seed)).collect();
            rows.push(row(&callers.to_string(), way, &games));
        }
    }
    let steady = adds::steady(200, Duration::from_mins(1), HOP, 1);
    rows.push(row("200 a second for a minute", "adds, one client", &[steady]));
    of("callers at once on one item, 5 ms hops (virtual time, 3 seeds)", rows)
}

/// The write units of one add. `DynamoDB` charges one for each started KB of the item after the write.
pub fn of_units() -> String {
    let mut rows = Vec::new();
    for bytes in [300, 900] {
        for (per_second, time) in [(200, Duration::from_secs(5)), (1, Duration::from_mins(2))] {
            rows.push([
                format!("item of {bytes} B, {per_second} a second"),
                figure(pace::units::<16>(bytes, f64::from(per_second), time, HOP), 2),
                figure(pace::units::<32>(bytes, f64::from(per_second), time, HOP), 2),
                figure(pace::units::<64>(bytes, f64::from(per_second), time, HOP), 2),
            ]);
        }
    }
    table(["write units per add (virtual time)", "R = 16", "R = 32", "R = 64"], rows)
}

/// The changes of one item in a second, with the capacity that `DynamoDB` gives it.
pub fn of_pace() -> String {
    const TIME: Duration = Duration::from_secs(10);
    type Play = fn(Way, u64, usize) -> Pace;
    let plays: [(_, Play); 2] = [
        ("R = 32", |way, callers, bytes| pace::of_one_item::<32>(way, callers, bytes, TIME, HOP, 1)),
        ("R = 64", |way, callers, bytes| pace::of_one_item::<64>(way, callers, bytes, TIME, HOP, 1)),
    ];
    let mut rows = Vec::new();
    for bytes in [300, 900] {
        for callers in [10, 64] {
            for (name, way) in [("add", Way::Adds), ("update_with_retry", Way::Updates), ("usual way", Way::Usual)] {
                for (memory, play) in plays.into_iter().skip(usize::from(way != Way::Adds)) {
                    let pace = play(way, callers, bytes);
                    rows.push([
                        format!("{name}, {callers} callers, item of {bytes} B, {memory}"),
                        figure(pace.a_second, 0),
                        figure(pace.units, 2),
                        pace.gave_up.to_string(),
                    ]);
                }
            }
        }
    }
    let about = "one item, 1,000 write units a second, 5 ms hops, 10 s (virtual time)";
    table([about, "changes a second", "write units each", "gave up"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_the_sum_of_its_games() {
        let game = |requests, times: &[u64], gave_up, count| Outcome {
            requests,
            times: times.iter().copied().map(Duration::from_millis).collect(),
            gave_up,
            count,
        };
        let games = [game(7, &[20, 40], 0, 2), game(5, &[60], 1, 2)];
        assert_eq!(row("2", "loop", &games), ["2, loop", "4.00", "40", "60", "60", "3", "1", "4"]);
        let nothing = row("2", "loop", &[game(5, &[], 2, 0)]);
        assert_eq!(nothing, ["2, loop", "none", "none", "none", "none", "0", "2", "0"]);
    }
}
