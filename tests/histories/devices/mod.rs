//! Histories of one item: writers, a deleter-and-recreator and every fault at once, and what must hold after each.
//!
//! Reading order: [`record`], [`writer`], [`play`], then what is checked in [`checks`]. The rules that are broken at the end
//! show that it notices.

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Broken, Network, Rates};
use checks::{Ended, check};
use fencepost::Record;
use record::{Ledger, Operation, TABLE};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use writer::Writer;

mod checks;
mod record;
mod writer;

struct Devices;

impl History for Devices {
    const TABLES: &'static [(&'static str, &'static str)] = &[(TABLE, Ledger::PARTITION_KEY)];
    const SAMPLE: u64 = 200;
    type Rule = Broken;
    const NOTHING: Broken = Broken::Nothing;
    type Ended = Ended;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
        play(engine, seed, broken).await
    }

    fn violations(_: &Engine, Ended { applied, done, row }: &Ended, _: &[Asked]) -> Vec<String> {
        check(applied, done, row).err().into_iter().collect()
    }

    fn total(ended: &Ended) -> Total {
        checks::total(ended)
    }

    fn assert_enough_happened(total: &Total) {
        checks::assert_enough_happened(total);
    }
}

async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    let rates = Rates {
        dropped: rate(60),
        answer_lost: rate(200),
        applied_500: rate(80),
        refused_500: rate(40),
        held: rate(60),
        second_copy: rate(80),
        throttled: rate(250),
        transaction_conflict: rate(80),
        denied: rate(20),
        frozen: rate(25),
        ..Rates::default()
    };
    let writers = rng.u64(2..=8);
    let operations = rng.u64(2..=9);
    let network = Network::new(engine, rates, broken, rng);
    let key = format!("ledger-{seed}-{broken:?}");
    let (numbers, start) = (Arc::new(AtomicU64::new(1)), Instant::now());
    let done = Arc::<Mutex<Vec<Operation>>>::default();
    // The first create sees faults too: it is part of the history.
    let mut first = Writer::new(&network, &key, &numbers, &done, start);
    first.wire.works_on(0);
    let began = Instant::now();
    let told = first.perform("create", 0).await;
    done.lock().expect("no panic").push(Operation { number: 0, what: "create", began, ended: Instant::now(), told });
    let mut working = tokio::task::JoinSet::new();
    for index in 0..writers {
        let writer = Writer::new(&network, &key, &numbers, &done, start);
        working.spawn(writer.work(operations, index == 0));
    }
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    let applied = network.applied.lock().expect("no panic").clone();
    let done = std::mem::take(&mut *done.lock().expect("no panic"));
    Ended { applied, done, row: engine.row(TABLE, Ledger::PARTITION_KEY, &key) }
}

#[test]
fn no_change_is_applied_twice_and_no_verdict_is_false_under_every_fault() {
    Devices::holds();
}

#[test]
fn without_the_judge_changes_are_applied_twice() {
    Devices::is_noticed(Broken::NoJudge, 0..2000, checks::APPLIED_TWICE);
}

#[test]
fn judging_by_the_last_writer_alone_applies_changes_twice() {
    Devices::is_noticed(Broken::LastWriterOnly, 0..2000, checks::APPLIED_TWICE);
}

#[test]
fn without_tombstones_a_delayed_create_brings_a_deleted_item_back() {
    Devices::is_noticed(Broken::RowsDeleted, 690..2000, checks::DENIED);
}

#[test]
fn a_throttled_resend_that_clears_a_lost_answer_makes_false_verdicts() {
    Devices::is_noticed(Broken::ThrottlingClears, 0..2000, checks::DENIED);
}
