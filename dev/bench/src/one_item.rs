//! Crowds of callers on one item: versioned changes, the usual loops, adds and the write units of adds. The figures are
//! exact, because time is virtual.

use crate::table::{figure, mean, millis, most, number, p99, table};
use crowds::adds::{self, Callers};
use crowds::crowd::{self, Outcome, Scene, Strategy};
use crowds::pace::{self, Pace, Way};
use std::time::Duration;

/// The time of a request in each direction.
pub const HOP: Duration = Duration::from_millis(5);
/// The seeds of crowds and connections: 0 up to this one, exclusively.
pub const SEEDS: u64 = 10;

/// The sum of the games of one crowd and way, over all seeds.
pub struct Crowd {
    pub callers: usize,
    pub way: &'static str,
    /// The requests for each acknowledged change.
    pub requests: f64,
    /// The times of acknowledged changes, in milliseconds.
    pub times: Vec<f64>,
    pub gave_up: usize,
    /// The changes that the items hold beyond the acknowledged ones: unknown to their writers, or applied twice.
    beyond: u64,
}

impl Crowd {
    fn of(callers: usize, way: &'static str, games: &[Outcome]) -> Self {
        let times: Vec<_> = games.iter().flat_map(|game| &game.times).copied().map(millis).collect();
        let requests = games.iter().map(|game| f64::from(game.requests)).sum::<f64>() / number(times.len());
        let gave_up = games.iter().map(|game| game.gave_up).sum();
        let held: u64 = games.iter().map(|game| game.count).sum();
        let beyond = held.saturating_sub(times.len() as u64);
        Crowd { callers, way, requests, times, gave_up, beyond }
    }

    /// The row of this crowd, with its requests compared to those of versioned changes.
    fn cells(&self, versioned: f64) -> [String; 7] {
        [
            format!("{}, {}", self.callers, self.way),
            figure(self.requests, 2),
            figure(self.requests / versioned, 2),
            figure(mean(&self.times), 0),
            figure(p99(&self.times), 0),
            figure(most(&self.times), 0),
            format!("{} of {}", self.gave_up, self.gave_up + self.times.len()),
        ]
    }
}

const VERSIONED: &str = "Fencepost, versioned";

const WAYS: [(&str, Strategy); 4] = [
    (VERSIONED, Strategy::Fencepost),
    ("full jitter: read again, 25 ms to 1 s", Strategy::FullJitter),
    ("at once: read again without a pause", Strategy::AtOnce),
    ("naive: read again, 2^n x 100 ms, 5 retries", Strategy::Naive),
];

/// The same crowds of writers with each strategy.
pub fn strategies() -> Vec<Crowd> {
    let mut crowds = Vec::new();
    for writers in [1, 2, 3, 5, 10, 30, 100, 300] {
        for (way, strategy) in WAYS {
            let seeds = if writers > 100 { 3 } else { SEEDS };
            let games: Vec<_> = (0..seeds).map(|seed| crowd::play(strategy, writers, HOP, seed)).collect();
            crowds.push(Crowd::of(writers, way, &games));
        }
    }
    crowds
}

/// Crowds that do not come in step, or not over a good network.
pub fn of_scenes() -> String {
    let scenes = [
        ("a stream of 50 a second", Scene::Stream(50), 500),
        ("a stream of 100 a second", Scene::Stream(100), 500),
        ("one of ten with hops of 50 ms", Scene::OneSlow, 10),
        ("3, 5 % of answers lost", Scene::Losses, 3),
        ("10, 5 % of answers lost", Scene::Losses, 10),
        ("100, 5 % of answers lost", Scene::Losses, 100),
    ];
    let mut rows = Vec::new();
    for (name, scene, writers) in scenes {
        let seeds = if writers < 100 { 100 } else { SEEDS };
        for (way, strategy) in WAYS.into_iter().take(2) {
            let games: Vec<_> = (0..seeds).map(|seed| crowd::play_scene(scene, strategy, writers, HOP, seed)).collect();
            let crowd = Crowd::of(writers, way, &games);
            let [_, requests, _, mean, p99, slowest, gave_up] = crowd.cells(f64::NAN);
            rows.push([format!("{name}, {way}"), requests, mean, p99, slowest, gave_up, crowd.beyond.to_string()]);
        }
    }
    let about = "writers of one item, 5 ms hops (virtual time)";
    let beyond = "applied and not acknowledged";
    table([about, "requests per success", "mean time, ms", "p99, ms", "slowest, ms", "gave up", beyond], rows)
}

/// The same crowds of callers with adds, beside versioned changes.
pub fn adds() -> Vec<Crowd> {
    type Play = fn(usize, u64) -> Outcome;
    let ways: [(_, Play); 3] = [
        ("adds, one client", |callers, seed| adds::at_once(Callers::OneStore, callers, HOP, seed)),
        ("adds, a client each", |callers, seed| adds::at_once(Callers::OwnStores, callers, HOP, seed)),
        (VERSIONED, |callers, seed| crowd::play(Strategy::Fencepost, callers, HOP, seed)),
    ];
    let mut crowds = Vec::new();
    for callers in [1, 10, 100, 1000] {
        for (way, play) in ways {
            let games: Vec<_> = (0..3).map(|seed| play(callers, seed)).collect();
            crowds.push(Crowd::of(callers, way, &games));
        }
    }
    crowds
}

/// The table of the strategies.
pub fn of_strategies() -> String {
    let about = format!("writers at once on one item, 5 ms hops (virtual time, {SEEDS} seeds)");
    of(&about, &strategies())
}

/// The table of the adds, and of a steady load by one client that knows the item.
pub fn of_adds() -> String {
    let mut crowds = adds();
    let steady = adds::steady(200, Duration::from_mins(1), HOP, 1);
    crowds.push(Crowd::of(1, "200 adds a second for a minute, one client", &[steady]));
    of("callers at once on one item, 5 ms hops (virtual time, 3 seeds)", &crowds)
}

fn of(about: &str, crowds: &[Crowd]) -> String {
    let headings = [
        about,
        "requests per success",
        "x versioned",
        "mean time of a success, ms",
        "p99, ms",
        "slowest, ms",
        "gave up",
    ];
    let versioned = |callers| {
        let found = crowds.iter().find(|crowd| crowd.callers == callers && crowd.way == VERSIONED);
        found.map_or(f64::NAN, |crowd| crowd.requests)
    };
    table(headings, crowds.iter().map(|crowd| crowd.cells(versioned(crowd.callers))))
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
                        figure(pace.requests, 2),
                        figure(pace.units, 2),
                        figure(pace.throttled, 2),
                        pace.gave_up.to_string(),
                    ]);
                }
            }
        }
    }
    let about = "one item, 1,000 write units a second, 5 ms hops, 10 s (virtual time)";
    table([about, "changes a second", "requests each", "write units each", "throttled each", "gave up"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_the_sum_of_its_games() {
        let game = |requests, times: &[u64], gave_up| Outcome {
            requests,
            times: times.iter().copied().map(Duration::from_millis).collect(),
            gave_up,
            count: 0,
        };
        let crowd = Crowd::of(2, "naive", &[game(7, &[20, 40], 0), game(5, &[60], 1)]);
        assert_eq!(crowd.cells(2.5), ["2, naive", "4.00", "1.60", "40", "60", "60", "1 of 4"]);
        let nothing = Crowd::of(2, "naive", &[game(5, &[], 2)]);
        assert_eq!(nothing.cells(2.5), ["2, naive", "none", "none", "none", "none", "none", "2 of 2"]);
    }
}
