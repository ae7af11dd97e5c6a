//! Histories of several lists: transactions read some of them and append to others, under every fault, and judges that
//! know nothing of the protocol say whether that was serializable.
//!
//! Reading order: [`client`], [`play`], then [`checks`]. The rules that are broken at the end show that each judge notices.

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::off::OffClocks;
use checks::Ended;
use client::{Client, KEY, LISTS, Rule, Scene, TABLE};
use judges::cycles;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

mod checks;
mod client;

struct Lists;

impl History for Lists {
    const TABLES: &'static [(&'static str, &'static str)] = &[(TABLE, KEY)];
    const SAMPLE: u64 = 80;
    type Rule = Rule;
    const NOTHING: Rule = Rule::Wire(Broken::Nothing);
    type Ended = Ended;

    async fn play(engine: &Engine, seed: u64, rule: Rule) -> Ended {
        play(engine, seed, rule).await
    }

    fn violations(engine: &Engine, ended: &Ended, _: &[Asked]) -> Vec<String> {
        checks::violations(engine, ended)
    }

    fn judged(ended: &Ended) -> Vec<String> {
        checks::judged(ended)
    }

    fn total(ended: &Ended) -> Total {
        checks::total(ended)
    }

    fn assert_enough_happened(total: &Total) {
        checks::assert_enough_happened(total);
    }
}

async fn play(engine: &Engine, seed: u64, rule: Rule) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng);
    let (clients, turns) = (rng.u64(2..=5), rng.u64(2..=6));
    let broken = if let Rule::Wire(broken) = rule { broken } else { Broken::Nothing };
    let storm = network_that_breaks(engine, rates, broken, rng);
    let scene = Arc::new(Scene {
        name: format!("{seed}-{rule:?}"),
        rule,
        numbers: AtomicU64::new(1),
        clocks: OffClocks::of(seed, Instant::now()),
        done: Mutex::default(),
    });
    for list in LISTS {
        client::create(engine, &scene, list).await;
    }
    let mut working = tokio::task::JoinSet::new();
    for number in 0..clients {
        working.spawn(Client::new(&scene, &storm, number).work(turns));
    }
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    let done = std::mem::take(&mut *scene.done.lock().expect("no panic"));
    let applied = storm.applied().clone();
    Ended { scene, done, applied }
}

/// How often each thing happens: every fault of the wire, in a storm or in a breeze.
fn rates(rng: &mut fastrand::Rng) -> Rates {
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    Rates {
        dropped: rate(60),
        answer_lost: rate(200),
        applied_500: rate(80),
        refused_500: rate(40),
        held: rate(60),
        second_copy: rate(80),
        throttled: rate(150),
        transaction_conflict: rate(100),
        denied: rate(20),
        frozen: rate(20),
        in_progress: rate(100),
        mismatch: rate(100),
        tokens_forgotten: rate(100),
        mixed_reasons: rate(150),
        unprocessed: rate(80),
        garbled: rate(100),
        ..Rates::default()
    }
}

#[test]
fn transactions_over_several_lists_are_serializable_under_every_fault() {
    Lists::holds();
}

#[test]
fn the_judge_of_cycles_notices_write_skew_where_nothing_is_checked() {
    Lists::is_noticed(Rule::Unchecked, 0..2000, cycles::WRITE_SKEW);
}

#[test]
fn both_judges_notice_lost_updates_of_a_client_that_writes_without_a_condition() {
    Lists::is_noticed(Rule::Blind, 0..2000, "lost update");
    Lists::is_noticed_by_the_judge(Rule::Blind, 0..2000);
}

#[test]
fn both_judges_notice_dirty_reads_of_a_client_that_takes_back_half_of_what_it_did() {
    Lists::is_noticed(Rule::TakenBack, 0..2000, "dirty read");
    Lists::is_noticed_by_the_judge(Rule::TakenBack, 0..2000);
}

#[test]
fn both_judges_notice_double_appends_where_there_is_nothing_to_judge_by() {
    Lists::is_noticed(Rule::Wire(Broken::NoJudge), 0..2000, "double append");
    Lists::is_noticed_by_the_judge(Rule::Wire(Broken::NoJudge), 0..2000);
}
