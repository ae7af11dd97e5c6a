//! Orders both ways, and leases. The figures are exact, because time is virtual.

use crate::one_item::HOP;
use crate::table::{figure, mean, millis, most, number, table};
use crowds::leases::{self, Cost, WAITED_FOR, WAITERS, WORK};
use crowds::orders::{self, CLIENTS, Scene};
use crowds::wire::Loss;
use std::time::Duration;

/// The same orders both ways: without trouble, with `TransactionConflict` as on AWS, and with losses too.
pub fn orders() -> String {
    const WANTED: usize = 100;
    let mut rows = Vec::new();
    let (free, occupied) = (Duration::ZERO, Duration::from_millis(5));
    for (occupied, losses, trouble) in [
        (free, false, ""),
        (occupied, false, ", transaction conflicts"),
        (occupied, true, ", transaction conflicts, 2 % of answers lost"),
    ] {
        for products in [1, 1000] {
            for (name, way) in WAYS {
                let scene = Scene { products, losses, occupied, throttles: false };
                let game = orders::play(way, scene, WANTED, HOP, 1);
                rows.push([
                    format!("{name}, products: {products}{trouble}"),
                    game.acknowledged.to_string(),
                    game.held.to_string(),
                    game.gave_up.to_string(),
                    figure(f64::from(game.requests) / number(game.acknowledged), 2),
                ]);
            }
        }
    }
    let about = format!("{CLIENTS} clients, {WANTED} orders each, 5 ms hops (virtual time)");
    let headings = [&about, "acknowledged", "held", "given up", "requests per order"];
    table(headings, rows)
}

const WAYS: [(&str, orders::Way); 2] = [("usual way", orders::Way::Usual), ("Fencepost", orders::Way::Fencepost)];

/// The orders of one product in a second, with the capacity that `DynamoDB` gives an item.
pub fn pace_of_orders() -> String {
    const WANTED: usize = 100;
    let mut rows = Vec::new();
    for (millis, losses) in [(5, false), (5, true), (20, false), (20, true)] {
        for (name, way) in WAYS {
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

/// The cost of leases and the time to change hands. Most of the time is random. So there are many seeds.
pub fn leases() -> String {
    const SEEDS: u64 = 200;
    const CYCLES: u32 = 100;
    let all = leases::cycles(CYCLES, HOP);
    let cycle = Cost { requests: all.requests / CYCLES, time: all.time / CYCLES };
    let costs = |play: &dyn Fn(u64) -> Cost| (0..SEEDS).map(play).collect::<Vec<_>>();
    let successions: Vec<_> = (0..SEEDS).map(|seed| leases::succession(HOP, seed)).collect();
    let waiters =
        format!("{WAITERS} waiters, {} ms of work each, leases of {} ms", WORK.as_millis(), WAITED_FOR.as_millis());
    let rows = [
        ("acquire and release", vec![cycle]),
        ("acquire, the connection breaks", costs(&|seed| leases::lost_acquire(Loss::Broken, HOP, seed))),
        ("acquire, no answer comes", costs(&|seed| leases::lost_acquire(Loss::Silent, HOP, seed))),
        (&waiters, costs(&|seed| leases::waiters(HOP, seed).cost)),
    ];
    let rows = rows.map(|(name, costs)| {
        let requests: Vec<_> = costs.iter().map(|cost| f64::from(cost.requests)).collect();
        let [time, longest] = times(costs.iter().map(|cost| cost.time));
        [name.to_owned(), figure(mean(&requests), 1), figure(most(&requests), 0), time, longest]
    });
    let row = |name: &str, [time, longest]: [String; 2]| [name.to_owned(), String::new(), String::new(), time, longest];
    let successions = [
        row(
            "a holder's death to the next holder, leases of 10 s",
            times(successions.iter().map(|next| next.after_death)),
        ),
        row("the part after its end and 1 s for the clocks", times(successions.iter().map(|next| next.after_free))),
    ];
    let about = format!("leases, 5 ms hops (virtual time, {SEEDS} seeds)");
    table([&about, "requests, mean", "worst", "ms, mean", "worst"], rows.into_iter().chain(successions))
}

/// The mean and the longest of these times, in milliseconds.
fn times(times: impl Iterator<Item = Duration>) -> [String; 2] {
    let times: Vec<_> = times.map(millis).collect();
    [figure(mean(&times), 0), figure(most(&times), 0)]
}
