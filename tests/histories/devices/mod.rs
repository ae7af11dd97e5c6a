//! Histories of one item: adds, changes, transactions, a deleter-and-recreator, TTL and every fault at once, and what must
//! hold after each.
//!
//! Reading order: [`record`], [`writer`], [`play`], then what is checked in [`checks`], and by an independent judge in
//! [`judged`]. The rules that are broken at the end show that both notice.

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine, Step};
use crate::harness::faults::{Applied, Broken, Rates, Touched, network_that_breaks};
use crate::harness::off::OffClocks;
use fencepost::Record;
use record::{Ended, Ledger, NOTES, Note, REMEMBERED, TABLE, TTL};
use serde_json::{Value, json};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};
use writer::{Scene, Writer};

mod checks;
mod judged;
mod record;
mod timeline;
mod total;
mod writer;

struct Devices;

impl History for Devices {
    const TABLES: &'static [(&'static str, &'static str)] =
        &[(TABLE, Ledger::PARTITION_KEY), (NOTES, Note::PARTITION_KEY)];
    const SAMPLE: u64 = 40;
    type Rule = Broken;
    const NOTHING: Broken = Broken::Nothing;
    type Ended = Ended;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Ended {
        play(engine, seed, broken).await
    }

    fn violations(_: &Engine, ended: &Ended, _: &[Asked]) -> Vec<String> {
        checks::violations(ended)
    }

    fn judged(ended: &Ended) -> Vec<String> {
        judged::violation(ended).into_iter().collect()
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
    let (writers, operations, hours) = (rng.u64(2..=8), rng.u64(2..=9), rng.u32(..4) == 0);
    let start = Instant::now();
    let scene = Arc::new(Scene {
        network: network_that_breaks(engine, rates, broken, rng),
        key: format!("ledger-{seed}-{broken:?}"),
        hours,
        numbers: AtomicU64::new(1),
        start,
        clocks: OffClocks::of(seed, start),
        rollout: rollout(seed),
        done: Mutex::default(),
    });
    let ttl = tokio::spawn(remove_what_has_ended(scene.clone()));
    // The first create sees faults too: it is part of the history.
    Writer::new(&scene, 0).run("create").await;
    let mut working = tokio::task::JoinSet::new();
    for index in 0..writers {
        working.spawn(Writer::new(&scene, index).work(operations, index == 0));
    }
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    ttl.abort();
    let applied = scene.network.applied().clone();
    let done = std::mem::take(&mut *scene.done.lock().expect("no panic"));
    let row = engine.row(TABLE, Ledger::PARTITION_KEY, &scene.key);
    Ended { key: scene.key.clone(), applied, done, row }
}

/// One in three histories has two builds.
fn rollout(seed: u64) -> Option<Mutex<fastrand::Rng>> {
    let mut rng = fastrand::Rng::with_seed(seed ^ 0x0B01_1D00);
    (rng.u32(..3) == 0).then(|| Mutex::new(rng))
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
        throttled: rate(250),
        transaction_conflict: rate(80),
        denied: rate(20),
        frozen: rate(25),
        in_progress: rate(60),
        mismatch: rate(60),
        tokens_forgotten: rate(100),
        mixed_reasons: rate(100),
        unprocessed: rate(100),
        garbled: rate(100),
        ..Rates::default()
    }
}

/// TTL: removes the row's tombstone some time after it has ended.
async fn remove_what_has_ended(scene: Arc<Scene>) {
    loop {
        sleep(Duration::from_millis(scene.network.below(1_200_000))).await;
        let (engine, id) = (&scene.network.engine, scene.key.clone());
        let row = engine.row(TABLE, Ledger::PARTITION_KEY, &id);
        let now = scene.now().duration_since(SystemTime::UNIX_EPOCH).expect("after it").as_secs();
        if row["_purgeAt"]["N"].as_str().and_then(|at| at.parse().ok()).is_some_and(|at: u64| at < now) {
            let key = json!({Ledger::PARTITION_KEY: {"S": &id}});
            engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": key}));
            let step = Step { action: "DeleteItem", table: TABLE.to_owned(), id, key };
            let rows = vec![Touched { step, row: Value::Null }];
            let purged = Applied { op: TTL, time: Instant::now(), rows, is_copy_of_refused: false };
            scene.network.applied().push(purged);
        }
    }
}

#[test]
fn no_change_is_applied_twice_and_no_verdict_is_false_under_every_fault() {
    Devices::holds();
}

#[test]
fn without_the_judge_changes_are_applied_twice() {
    Devices::is_noticed(Broken::NoJudge, 20..2000, checks::APPLIED_TWICE);
}

#[test]
fn judging_by_the_last_writer_alone_applies_changes_twice() {
    Devices::is_noticed(Broken::LastWriterOnly, 50..2006, checks::APPLIED_TWICE);
}

#[test]
fn without_tombstones_a_delayed_create_brings_a_deleted_item_back() {
    Devices::is_noticed(Broken::RowsDeleted, 890..2890, checks::DENIED);
}

#[test]
fn a_throttled_resend_that_clears_a_lost_answer_makes_false_verdicts() {
    Devices::is_noticed(Broken::ThrottlingClears, 97..2000, checks::DENIED);
}

#[test]
fn an_add_that_does_not_ask_for_its_id_is_applied_twice() {
    Devices::is_noticed(Broken::AddOfAnyId, 0..2000, checks::APPLIED_TWICE);
}

#[test]
fn an_add_whose_window_has_no_end_is_applied_after_its_row_has_forgotten_it() {
    Devices::is_noticed(Broken::AddNeverLate, 71..2036, checks::APPLIED_TWICE);
}

#[test]
fn a_row_that_forgets_ids_within_the_window_applies_changes_twice() {
    Devices::is_noticed(Broken::Forgets { after: 2 }, 27..2020, checks::APPLIED_TWICE);
}

#[test]
fn a_row_that_forgets_an_id_one_commit_too_early_applies_changes_twice() {
    Devices::is_noticed(Broken::Forgets { after: REMEMBERED - 1 }, 7615..9616, checks::APPLIED_TWICE);
}

#[test]
fn a_burn_that_stores_no_id_denies_an_add_that_is_still_on_its_way() {
    Devices::is_noticed(Broken::BurnLeavesNothing, 20120..22195, checks::DENIED);
}

#[test]
fn a_burn_that_looks_like_an_add_is_taken_for_one() {
    Devices::is_noticed(Broken::BurnAsAdd, 44..2000, checks::NEVER_APPLIED);
}

#[test]
fn a_judge_that_does_not_know_burns_takes_them_for_adds() {
    Devices::is_noticed(Broken::BurnsIgnored, 44..2000, checks::NEVER_APPLIED);
}

#[test]
fn a_new_id_for_a_resend_applies_changes_twice() {
    Devices::is_noticed(Broken::FreshIds, 23..2000, checks::APPLIED_TWICE);
}

#[test]
fn a_create_on_a_tombstone_that_forgets_the_ids_makes_false_verdicts() {
    Devices::is_noticed(Broken::RevivedWithoutMemory, 155..2093, checks::DENIED);
}

#[test]
fn the_independent_judge_notices_doubled_changes_and_adds() {
    Devices::is_noticed_by_the_judge(Broken::NoJudge, 20..2000);
    Devices::is_noticed_by_the_judge(Broken::AddOfAnyId, 0..2000);
}

#[test]
fn the_independent_judge_notices_a_deleted_item_that_comes_back() {
    Devices::is_noticed_by_the_judge(Broken::RowsDeleted, 806..2800);
}
