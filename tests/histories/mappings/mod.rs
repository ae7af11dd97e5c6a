//! Histories of addresses: instances registered and deleted late, twice and in any order, and what must hold after each.
//!
//! [`orders`] plays all orders of a few changes. The rest plays random ones under every fault. Reading order: [`plan`],
//! [`client`], [`play`], then what is checked in [`checks`], and by an independent judge in [`judged`]. The tests at the end
//! show that both notice.

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::functions::{self, Functions};
use crate::harness::off::OffClocks;
use checks::{Ended, violations};
use client::Client;
use plan::Plan;
use scene::{EPOCH, Scene};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep};

mod buried;
mod checks;
mod client;
mod judged;
mod orders;
mod plan;
mod scene;
mod total;

struct Mappings;

impl History for Mappings {
    const TABLES: &'static [(&'static str, &'static str)] = functions::Mappings::TABLES;
    const SAMPLE: u64 = 60;
    type Rule = Broken;
    const NOTHING: Broken = Broken::Nothing;
    type Ended = Ended;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
        LocalSet::new().run_until(play(engine, seed, broken)).await
    }

    fn violations(engine: &Engine, ended: &Ended, asked: &[Asked]) -> Vec<String> {
        let mut found = violations(engine, ended);
        let operations: BTreeSet<_> = asked.iter().map(|asked| asked.operation.as_str()).collect();
        if !operations.is_subset(&["GetItem", "PutItem"].into()) {
            found.push(format!("something else was sent than reads and conditional puts: {operations:?}"));
        }
        found
    }

    fn judged(ended: &Ended) -> Vec<String> {
        judged::violations(ended)
    }

    fn total(ended: &Ended) -> Total {
        total::total(ended)
    }

    fn assert_enough_happened(total: &Total) {
        total::assert_enough_happened(total);
    }
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
    let storm = network_that_breaks(engine, rates, broken, rng);
    let scene = Arc::new(Scene {
        plan,
        clocks: OffClocks::of(seed, Instant::now()),
        numbers: AtomicU64::new(1),
        sent: Mutex::default(),
        queue: Mutex::default(),
        asking: AtomicUsize::new(clients),
    });
    buried::bury(&scene.plan, &storm).await;
    let ttl_rng = fastrand::Rng::with_seed(seed ^ 0x771_771);
    let ttl = tokio::spawn(buried::remove_what_has_ended(scene.clone(), storm.clone(), ttl_rng));
    let mut working = JoinSet::new();
    for client in 0..clients {
        let asks = asks.iter().skip(client).step_by(clients).copied().collect();
        working.spawn_local(Client::new(&scene, &storm, client).ask_for(asks));
    }
    for reader in 0..readers {
        working.spawn_local(Client::new(&scene, &storm, clients + reader).empty_queue());
    }
    working.spawn_local(Client::new(&scene, &storm, clients + readers).look_around(8));
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    ttl.abort();
    // With the seed of the storm, its write ids could come again.
    let calm = network_that_breaks(engine, Rates::default(), broken, fastrand::Rng::with_seed(!seed));
    let client = Client::new(&scene, &calm, clients + readers + 1);
    let mut last = Vec::new();
    for address in 0..scene.plan.addresses.len() {
        last.push(client.look_up(address).await);
    }
    let applied = storm.applied().clone();
    let sent = scene.sent.lock().expect("no panic").clone();
    Ended { scene, sent, applied, last }
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
        garbled: rate(100),
        ..Rates::default()
    }
}

#[test]
fn the_newest_instance_wins_and_what_is_deleted_stays_so_under_every_fault() {
    Mappings::holds();
}

/// Among so few seeds, many histories cannot miss a broken rule.
const FEW: u64 = 100;

#[test]
fn without_its_condition_a_late_register_replaces_a_newer_one() {
    Mappings::is_noticed(Broken::NoCondition, 0..FEW, checks::OLDER_REPLACED);
}

#[test]
fn equality_in_place_of_the_ordering_refuses_a_newer_register() {
    Mappings::is_noticed(Broken::OnlyEqual, 0..FEW, checks::NEWER_REFUSED);
}

#[test]
fn equality_in_place_of_the_ordering_leaves_standing_what_a_newer_delete_covers() {
    Mappings::is_noticed(Broken::OnlyEqual, 0..FEW, checks::LEFT_STANDING);
}

#[test]
fn without_tombstones_a_late_register_brings_a_deleted_instance_back() {
    Mappings::is_noticed(Broken::RowsDeleted, 0..FEW, checks::REVIVED);
    Mappings::is_noticed(Broken::RowsDeleted, 0..FEW, checks::SEEN_AGAIN);
}

#[test]
fn the_independent_judge_notices_an_older_instance_that_replaces_a_newer_one_or_comes_back() {
    Mappings::is_noticed_by_the_judge(Broken::NoCondition, 0..FEW);
    Mappings::is_noticed_by_the_judge(Broken::RowsDeleted, 0..FEW);
}
