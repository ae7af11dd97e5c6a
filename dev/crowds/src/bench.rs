//! Prints what crowds cost, as Markdown tables: callers of one item, and orders. The figures are exact, because time is
//! virtual. `cargo dev bench` runs this; `bench pace` plays one part alone.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line tool: its tables go to the terminal"
)]

use crowds::adds::{self, Callers};
use crowds::crowd::{self, Outcome, Strategy};
use crowds::orders::{self, CLIENTS, Scene};
use crowds::pace::{self, Pace, Way};
use std::time::Duration;

/// The time of a request in each direction.
const HOP: Duration = Duration::from_millis(5);
/// The seeds of crowds: 0 up to this one, exclusively.
const SEEDS: u64 = 10;

const WAYS: [(&str, Strategy); 3] = [
    ("Fencepost", Strategy::Fencepost),
    ("full jitter: read again, 25 ms to 1 s", Strategy::FullJitter),
    ("loop: read again without a pause", Strategy::AtOnce),
];

/// The times of all acknowledged changes, in milliseconds.
fn times(games: &[Outcome]) -> Vec<f64> {
    games.iter().flat_map(|game| &game.times).copied().map(millis).collect()
}

/// What an acknowledged change took of this.
fn each(games: &[Outcome], of: fn(&Outcome) -> f64) -> String {
    let changes: usize = games.iter().map(|game| game.times.len()).sum();
    figure(games.iter().map(of).sum::<f64>() / number(changes), 2)
}

/// The row of all games of one crowd and way.
fn row(crowd: &str, way: &str, games: &[Outcome]) -> [String; 10] {
    let (times, each) = (times(games), |of| each(games, of));
    [
        format!("{crowd}, {way}"),
        each(|game| f64::from(game.requests)),
        each(|game| game.units.write),
        each(|game| game.units.read),
        figure(mean(&times), 0),
        figure(percentile(&times, 99), 0),
        figure(most(&times), 0),
        times.len().to_string(),
        games.iter().map(|game| game.gave_up).sum::<usize>().to_string(),
        games.iter().map(|game| game.count).sum::<u64>().to_string(),
    ]
}

fn of(about: &str, rows: Vec<[String; 10]>) -> String {
    let headings = [
        about,
        "requests per success",
        "write units",
        "read units",
        "mean time of a success, ms",
        "p99, ms",
        "slowest, ms",
        "acknowledged",
        "gave up",
        "held",
    ];
    table(headings, rows)
}

/// A part by its name, with its seconds on two cores.
type Part = (&'static str, u64, fn() -> String);
const PARTS: [Part; 5] = [
    ("crowds", 20, of_strategies),
    ("steady", 10, of_steady),
    ("adds", 19, of_adds),
    ("pace", 30, of_pace),
    ("orders", 30, of_orders),
];

fn main() {
    let only: Vec<_> = std::env::args().skip(1).collect();
    for (name, seconds, play) in
        PARTS.into_iter().filter(|(name, ..)| only.is_empty() || only.iter().any(|one| one == name))
    {
        eprintln!("{name}: about {seconds} s");
        println!("{}", play());
    }
}

/// The same crowds of writers with each strategy.
fn of_strategies() -> String {
    let mut rows = Vec::new();
    for writers in [2, 3, 5, 10, 20, 64, 100, 300] {
        for (way, strategy) in WAYS {
            let seeds = if writers > 100 { 3 } else { SEEDS };
            let games: Vec<_> = (0..seeds).map(|seed| crowd::play(strategy, writers, HOP, seed)).collect();
            rows.push(row(&writers.to_string(), way, &games));
        }
    }
    of(&format!("writers at once on one item, 5 ms hops (virtual time, {SEEDS} seeds)"), rows)
}

/// A few writers that change one item without a pause.
fn of_steady() -> String {
    const CHANGES: usize = 100;
    let mut rows = Vec::new();
    for writers in [2, 3, 5, 8, 10, 20] {
        for (way, strategy) in [WAYS[0], ("Fencepost, remembering items", Strategy::Remembering), WAYS[1]] {
            let games: Vec<_> =
                (0..3).map(|seed| crowd::play_steadily(strategy, writers, CHANGES, HOP, seed)).collect();
            let (times, each) = (times(&games), |of| each(&games, of));
            rows.push([
                format!("{writers}, {way}"),
                each(|game| game.units.write),
                each(|game| game.units.read),
                figure(mean(&times), 0),
                figure(percentile(&times, 50), 0),
                figure(percentile(&times, 99), 0),
                figure(most(&times), 0),
                games.iter().map(|game| game.gave_up).sum::<usize>().to_string(),
            ]);
        }
    }
    let about = format!("writers of {CHANGES} changes each on one item, 5 ms hops (virtual time, 3 seeds)");
    let headings =
        [&*about, "write units", "read units", "mean, ms", "median, ms", "p99, ms", "slowest, ms", "gave up"];
    table(headings, rows)
}

/// Crowds of callers with adds, and a steady load by one client that knows the item.
fn of_adds() -> String {
    type Play = fn(usize, u64) -> Outcome;
    let ways: [(_, Play); 2] = [
        ("adds, one client", |callers, seed| adds::at_once(Callers::OneStore, callers, HOP, seed)),
        ("adds, a client each", |callers, seed| adds::at_once(Callers::OwnStores, callers, HOP, seed)),
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

/// The changes of one item in a second, with the capacity that `DynamoDB` gives it.
fn of_pace() -> String {
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

/// The orders of one product in a second, with the capacity that `DynamoDB` gives an item.
fn of_orders() -> String {
    const WANTED: usize = 100;
    let mut rows = Vec::new();
    for (millis, losses) in [(5, false), (5, true), (20, false), (20, true)] {
        for (name, way) in [("usual way", orders::Way::Usual), ("Fencepost", orders::Way::Fencepost)] {
            let scene = Scene { products: 1, losses, occupied: Duration::from_millis(millis), throttles: true };
            let game = orders::play(way, scene, WANTED, HOP, 1);
            let (each, trouble) = (number(game.acknowledged), if losses { ", 2 % of answers lost" } else { "" });
            rows.push([
                format!("{name}, a transaction takes {millis} ms{trouble}"),
                figure(each / game.time.as_secs_f64(), 0),
                figure(game.units.write / each, 2),
                game.acknowledged.to_string(),
                game.held.to_string(),
                game.gave_up.to_string(),
            ]);
        }
    }
    let about = format!("1 product, {CLIENTS} clients, {WANTED} orders each, 1,000 write units a second, 5 ms hops");
    let headings = [&*about, "orders a second", "write units per order", "acknowledged", "held", "given up"];
    table(headings, rows)
}

/// A table with these headings and a line break at its end.
fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let head = line(headings.map(str::to_owned)) + "|" + &"---|".repeat(N) + "\n";
    rows.into_iter().map(line).fold(head, |table, row| table + &row)
}

/// A number with so many decimals. An undefined number, such as a mean of nothing, is `none`.
fn figure(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "none".to_owned() }
}

/// A time in milliseconds.
fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A count as a number to divide.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number(count: impl TryInto<u64>) -> f64 {
    count.try_into().map_or(f64::NAN, |count| count as f64)
}

/// The mean of these numbers.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / number(values.len())
}

/// The largest of these numbers. `NaN` if there is none.
fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// The number that so many of 100 of these do not exceed. `NaN` if there is none.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
