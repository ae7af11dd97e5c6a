//! One product is as fast as a thousand.

use crowds::orders::{Outcome, Scene, Way, play};
use std::time::Duration;

const CLIENTS: usize = 20;
/// The orders of each client.
const WANTED: usize = 30;
const HOP: Duration = Duration::from_millis(5);

fn orders(products: usize, seed: u64) -> Outcome {
    let (clients, orders, transaction) = (CLIENTS, WANTED, Duration::ZERO);
    let scene = Scene { clients, orders, newcomers: false, products, losses: false, transaction, throttles: false };
    let outcome = play(Way::Holds, scene, HOP, seed);
    let wanted = (CLIENTS * WANTED) as u64;
    assert_eq!((outcome.acknowledged, outcome.held), (wanted, wanted), "{products} products, seed {seed}");
    assert_eq!(outcome.taken, i64::try_from(wanted).expect("few"), "{products} products, seed {seed}");
    outcome
}

#[test]
fn orders_of_one_product_are_as_fast_as_orders_of_a_thousand() {
    let (hot, spread) = (orders(1, 0), orders(1000, 0));
    let each = f64::from(hot.requests) / f64::from(u32::try_from(CLIENTS * WANTED).expect("few"));
    let speed = spread.time.as_secs_f64() / hot.time.as_secs_f64();
    println!("{each:.2} requests each, {speed:.2} of the throughput over 1,000 products");
    assert!(each <= 3.2, "{each:.2} requests each");
    assert!(speed >= 0.9, "{speed:.2} of the throughput over 1,000 products");
}
