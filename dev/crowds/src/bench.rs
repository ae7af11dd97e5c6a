//! Prints what crowds cost, as Markdown tables: callers of one item, and orders. The figures are exact, because time is
//! virtual. `cargo dev bench` runs this; `bench pace` plays one part alone.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line tool: its tables go to the terminal"
)]

use crowds::crowd::{Load, Outcome, Way, play};
use crowds::orders::{self, Scene, dollars};
use std::time::Duration;

/// A part by its name, with its seconds on two cores.
type Part = (&'static str, u64, fn() -> String);
const PARTS: [Part; 4] =
    [("crowds", 15, of_crowds), ("steady", 7, of_steady), ("pace", 12, of_pace), ("orders", 410, of_orders)];

fn main() {
    let only: Vec<_> = std::env::args().skip(1).collect();
    for (name, seconds, play) in
        PARTS.into_iter().filter(|(name, ..)| only.is_empty() || only.iter().any(|one| one == name))
    {
        eprintln!("{name}: about {seconds} s");
        println!("{}", play());
    }
}

/// What came of this load with so many seeds.
fn played(load: Load, seeds: u64) -> Outcome {
    (0..seeds).map(|seed| play::<16>(load, seed)).fold(Outcome::default(), Outcome::and)
}

/// The changes of callers of one item: a table with the rows of these.
fn of_changes(about: &str, rows: impl IntoIterator<Item = (String, Outcome)>) -> String {
    let row = |(what, of): (String, Outcome)| {
        let (write, read) = of.units_per_success();
        [
            what,
            figure(write, 2),
            figure(read, 2),
            figure(dollars(write, read), 2),
            millis(of.mean_time()),
            millis(of.percentile(50)),
            millis(of.percentile(99)),
            millis(of.longest()),
            of.gave_up.to_string(),
        ]
    };
    let [write, read, median, slowest] = ["write units", "read units", "median, ms", "slowest, ms"];
    let headings = [about, write, read, "$ per million", "mean, ms", median, "p99, ms", slowest, "gave up"];
    table(headings, rows.into_iter().map(row))
}

const WAYS: [(&str, Way); 2] = [("Fencepost", Way::Update), ("full jitter: read again, 25 ms to 1 s", Way::FullJitter)];

/// The same crowds of writers in each way.
fn of_crowds() -> String {
    let mut rows = Vec::new();
    for writers in [2, 3, 5, 10, 20, 64, 100, 300] {
        for (name, way) in WAYS {
            let seeds = if writers > 100 { 3 } else { 10 };
            rows.push((format!("{writers}, {name}"), played(Load::new(way, writers), seeds)));
        }
    }
    of_changes("writers at once on one item, 5 ms hops (virtual time, 10 seeds)", rows)
}

/// A few writers that change one item without a pause.
fn of_steady() -> String {
    let mut rows = Vec::new();
    for writers in [2, 3, 5, 8, 10, 20] {
        for (name, way) in WAYS {
            let load = Load { changes: 100, ..Load::new(way, writers) };
            rows.push((format!("{writers}, {name}"), played(load, 3)));
        }
    }
    of_changes("writers of 100 changes each on one item, 5 ms hops (virtual time, 3 seeds)", rows)
}

/// The changes of one item in a second, with the capacity that `DynamoDB` gives it.
fn of_pace() -> String {
    /// The unused capacity of the first second is used up by then.
    const WARM: Duration = Duration::from_secs(2);
    const TIME: Duration = Duration::from_secs(10);
    let end = WARM + TIME;
    let mut rows = Vec::new();
    for callers in [10, 64] {
        for (name, way) in [("add", Way::Add), ("update_with_retry", Way::Update), ("usual way", Way::FullJitter)] {
            let load = Load { changes: usize::MAX, time: end, bytes: 300, throttles: true, ..Load::new(way, callers) };
            let of = play::<32>(load, 1);
            let timely = of.ends.iter().filter(|at| (WARM..end).contains(*at)).count();
            rows.push([
                format!("{name}, {callers} callers"),
                figure(number(timely) / TIME.as_secs_f64(), 0),
                figure(of.units_per_success().0, 2),
                of.gave_up.to_string(),
            ]);
        }
    }
    let about = "one item of 300 B, R = 32, 1,000 write units a second, 5 ms hops, 10 s (virtual time)";
    table([about, "changes a second", "write units each", "gave up"], rows)
}

/// The orders of one product in a second, with the capacity that `DynamoDB` gives an item, in three ways.
fn of_orders() -> String {
    let ways =
        [("usual way", orders::Way::Usual), ("transactions", orders::Way::Transactions), ("holds", orders::Way::Holds)];
    let crowds = [20, 64, 200].into_iter().flat_map(|clients| [false, true].map(|losses| (clients, losses, false)));
    let mut rows = Vec::new();
    for (clients, losses, newcomers) in crowds.chain([(20, true, true), (200, true, true)]) {
        for (name, way) in ways {
            let orders = if way == orders::Way::Holds { 4000 } else { 1000 } / clients;
            let scene = Scene { clients, orders, newcomers, losses };
            rows.extend((1..=3).map(|seed| of_orders_in(way, name, scene, seed)));
        }
    }
    let about = "1 product, 1,000 write units a second, 5 ms hops, transactions of 20 ms and 0.34 ms for each action";
    let headings = [
        about,
        "orders a second",
        "write units of product, order, index",
        "read units",
        "p50, p99, slowest, ms",
        "acknowledged, held",
        "given up",
    ];
    table(headings, rows)
}

fn of_orders_in(way: orders::Way, name: &str, scene: Scene, seed: u64) -> [String; 7] {
    let mut game = orders::play(way, scene, seed);
    game.times.sort();
    let at =
        |part: usize| game.times.get(game.times.len().saturating_sub(1) * part / 100).map_or(0, Duration::as_millis);
    let (count, [product, order]) = (number(game.acknowledged), game.units);
    // An order is one small item of the index, which a cancellation alone would write again.
    let index = number(game.held) / count;
    let losses = if scene.losses { "2 %" } else { "0" };
    let newcomers = if scene.newcomers { ", none comes back" } else { "" };
    [
        format!("{} clients, {losses} lost{newcomers}; {name}; seed {seed}", scene.clients),
        figure(count / game.time.as_secs_f64(), 0),
        format!("{}, {}, {}", figure(product.write / count, 2), figure(order.write / count, 2), figure(index, 2)),
        figure((product.read + order.read) / count, 2),
        format!("{}, {}, {}", at(50), at(99), at(100)),
        format!("{}, {}", game.acknowledged, game.held),
        game.gave_up.to_string(),
    ]
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
fn millis(time: Duration) -> String {
    figure(time.as_secs_f64() * 1000.0, 0)
}

/// A count as a number to divide.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number(count: impl TryInto<u64>) -> f64 {
    count.try_into().map_or(f64::NAN, |count| count as f64)
}
