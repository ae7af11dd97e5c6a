//! Histories of changes whose attempts have different answers, on a network that delivers second copies of refused attempts
//! soon and throttles the next attempt. Each caller is told the answer of the attempt that was committed, or *unknown*.
//!
//! Reading order: [`client`], [`play`], then [`checks`].

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::off::OffClocks;
use checks::Ended;
use client::{COUNT, Client, KEY, NOTES, SHELVES, Scene};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

mod checks;
mod client;

struct Attempts;

impl History for Attempts {
    const TABLES: &'static [(&'static str, &'static str)] = &[(SHELVES, KEY), (NOTES, KEY)];
    const SAMPLE: u64 = 100;
    type Rule = Broken;
    const NOTHING: Broken = Broken::Nothing;
    type Ended = Ended;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
        play(engine, seed, broken).await
    }

    fn violations(_: &Engine, ended: &Ended, _: &[Asked]) -> Vec<String> {
        ended.violations()
    }

    fn judged(_: &Ended) -> Vec<String> {
        Vec::new()
    }

    fn total(ended: &Ended) -> Total {
        ended.total()
    }

    fn assert_enough_happened(total: &Total) {
        checks::assert_enough_happened(total);
    }
}

async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng);
    let (clients, turns) = (rng.u64(2..=5), rng.u64(3..=8));
    let network = network_that_breaks(engine, rates, broken, rng);
    let scene = Arc::new(Scene {
        name: format!("{seed}-{broken:?}"),
        numbers: AtomicU64::new(1),
        clocks: OffClocks::of(seed, Instant::now()),
        done: Mutex::default(),
    });
    for shelf in 0..COUNT {
        client::create(engine, &scene, shelf).await;
    }
    let first = (0..COUNT).map(|shelf| engine.row(SHELVES, KEY, &scene.shelf(shelf))).collect();
    let mut working = tokio::task::JoinSet::new();
    for _ in 0..clients {
        working.spawn(Client::new(&scene, &network).work(turns));
    }
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    let done = std::mem::take(&mut *scene.done.lock().expect("no panic"));
    let applied = network.applied().clone();
    Ended { scene, done, first, applied }
}

/// How often each thing happens: many second copies, most of them soon, and much throttling; the rest of the faults in a
/// storm or in a breeze.
fn rates(rng: &mut fastrand::Rng) -> Rates {
    let storm = rng.u32(0..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    Rates {
        dropped: rate(20),
        answer_lost: rate(80),
        applied_500: rate(30),
        held: rate(30),
        transaction_conflict: rate(60),
        frozen: rate(10),
        in_progress: rate(40),
        mismatch: rate(40),
        tokens_forgotten: rate(60),
        mixed_reasons: rate(100),
        garbled: rate(30),
        second_copy: 250,
        copied_soon: 800,
        throttled: 350,
        ..Rates::default()
    }
}

#[test]
fn each_change_is_answered_by_the_attempt_that_was_committed_under_every_fault() {
    Attempts::holds();
}
