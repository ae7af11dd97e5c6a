//! Histories of addresses: instances registered and deleted late, twice and in any order, and what must hold after each.
//!
//! [`orders`] plays all orders of a few changes. The rest plays random ones under every fault: `FENCEPOST_HISTORIES=10000`
//! says how many (a plain `cargo test` runs a sample), `FENCEPOST_SEED=7` replays one. Reading order: [`plan`],
//! [`client`], [`play`], then what is checked in [`checks`]; the tests at the end show that it notices.

use crate::harness::engine::Engine;
use crate::harness::faults::{Broken, Network, Rates};
use crate::harness::seeds::{self, Broke};
use checks::{Ended, violations};
use client::{Client, EPOCH, Sent};
use plan::Plan;
use serde_json::json;
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep};
use total::Total;

mod checks;
mod client;
mod orders;
mod plan;
mod total;

const TABLE: &str = "HostToCellMapping";
const TABLES: &[(&str, &str)] = &[(TABLE, "hostIp")];

/// What the clients of one history share.
struct History {
    plan: Plan,
    start: Instant,
    /// The number of the next invocation.
    numbers: AtomicU64,
    sent: Mutex<Vec<Sent>>,
    /// The deletes that wait in the queue, by their place in the plan.
    queue: Mutex<Vec<usize>>,
    /// How many clients may still put something there.
    asking: AtomicUsize,
}

/// Runs the history of a seed and checks it.
fn run(engine: &Engine, seed: u64, broken: Broken) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    engine.take_log();
    let ended = runtime.block_on(LocalSet::new().run_until(play(engine, seed, broken)));
    let log = engine.take_log();
    let operations: BTreeSet<_> = log.iter().map(|asked| asked.operation.as_str()).collect();
    let mut found = violations(engine, &ended);
    if !operations.is_subset(&["GetItem", "PutItem"].into()) {
        found.push(format!("something else was sent than reads and conditional puts: {operations:?}"));
    }
    if found.is_empty() { Ok(Total::of(log.len(), &ended)) } else { Err(found.join("; ")) }
}

async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng);
    let an_hour_ago = EPOCH.saturating_sub(Duration::from_hours(1));
    let plan = Plan::draw(&mut rng, seed, u64::try_from(an_hour_ago.as_millis()).expect("our time"));
    // Each change is asked for once to three times, by whomever.
    let mut asks: Vec<_> = (0..plan.asks.len()).flat_map(|ask| vec![ask; rng.usize(1..=3)]).collect();
    rng.shuffle(&mut asks);
    let clients = rng.usize(2..=4);
    let readers = rng.usize(1..=2);
    let storm = Network::new(engine, rates, broken, rng);
    let history = Arc::new(History {
        plan,
        start: Instant::now(),
        numbers: AtomicU64::new(1),
        sent: Mutex::default(),
        queue: Mutex::default(),
        asking: AtomicUsize::new(clients),
    });
    let mut working = JoinSet::new();
    for client in 0..clients {
        let asks = asks.iter().skip(client).step_by(clients).copied().collect();
        working.spawn_local(Client::new(&history, &storm).ask_for(asks));
    }
    for _ in 0..readers {
        working.spawn_local(Client::new(&history, &storm).empty_queue());
    }
    working.spawn_local(Client::new(&history, &storm).look_around(8));
    while let Some(ended) = working.join_next().await {
        ended.unwrap_or_else(|ended| resume_unwind(ended.into_panic()));
    }
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    let calm = Network::new(engine, Rates::default(), broken, fastrand::Rng::with_seed(seed));
    let client = Client::new(&history, &calm);
    let mut last = Vec::new();
    for address in 0..history.plan.addresses.len() {
        last.push(client.look_up(address).await);
    }
    let applied = storm.applied.lock().expect("no panic").clone();
    let sent = history.sent.lock().expect("no panic").clone();
    Ended { history, sent, applied, last }
}

/// How often each thing happens: every fault of the wire, in a storm or in a breeze.
fn rates(rng: &mut fastrand::Rng) -> Rates {
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    Rates {
        dropped: rate(80),
        answer_lost: rate(200),
        applied_500: rate(100),
        refused_500: rate(60),
        held: rate(120),
        second_copy: rate(120),
        throttled: rate(150),
        transaction_conflict: rate(80),
        denied: rate(20),
        frozen: rate(30),
        ..Rates::default()
    }
}

/// The first of these seeds whose history breaks, and how; else what they were made of.
fn explore(seeds: Range<u64>, broken: Broken) -> Result<Total, Broke> {
    let engine = Engine::embedded(TABLES);
    seeds::explore(seeds, |seed| run(&engine, seed, broken))
}

#[test]
fn the_newest_instance_wins_and_what_is_deleted_stays_so_under_every_fault() {
    let Some(total) = seeds::play(300, |seeds| explore(seeds, Broken::Nothing)) else { return };
    println!("{}", json!(total));
    total.assert_enough_happened();
}

/// Breaks a rule and looks for the harm that it prevents, among so few seeds that many histories cannot miss it.
fn is_noticed(broken: Broken, harm: &str) {
    let is_harm = |why: &str| why.split("; ").any(|found| found.starts_with(harm));
    seeds::is_noticed(0..100, |seeds| explore(seeds, broken), is_harm);
}

#[test]
fn without_its_condition_a_late_register_replaces_a_newer_one() {
    is_noticed(Broken::NoCondition, checks::OLDER_REPLACED);
}

#[test]
fn equality_in_place_of_the_ordering_refuses_a_newer_register() {
    is_noticed(Broken::OnlyEqual, checks::NEWER_REFUSED);
}

#[test]
fn equality_in_place_of_the_ordering_leaves_standing_what_a_newer_delete_covers() {
    is_noticed(Broken::OnlyEqual, checks::LEFT_STANDING);
}

#[test]
fn without_tombstones_a_late_register_brings_a_deleted_instance_back() {
    is_noticed(Broken::RowsDeleted, checks::REVIVED);
    is_noticed(Broken::RowsDeleted, checks::SEEN_AGAIN);
}
