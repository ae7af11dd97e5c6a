//! Histories of a lease: leaders whose clocks are apart acquire, renew, release, are frozen and wake up and write, under
//! every fault at once, and what must hold after each.
//!
//! Reading order: [`leader`], [`play`], then what is checked in [`checks`] and [`timeline`], and by an independent judge in
//! [`judged`]. The rules that are broken at the end show that both notice. [`children`] and [`terms`] play shorter stories.

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine, Step};
use crate::harness::faults::{Applied, Broken, Network, Rates, Touched, network_that_breaks};
use crate::harness::functions::LEASES;
use checks::Ended;
use leader::Leader;
use scene::{EPOCH, REPORTS, Rule, Scene, TABLES, TTL};
use serde_json::{Value, json};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

mod checks;
mod children;
mod judged;
mod leader;
mod record;
mod scene;
mod terms;
mod timeline;
mod total;

/// For how long `DynamoDB` remembers the token of a transaction.
const TOKEN_LIFE: Duration = Duration::from_mins(10);
struct Leases;

impl History for Leases {
    const TABLES: &'static [(&'static str, &'static str)] = TABLES;
    const SAMPLE: u64 = 100;
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
        judged::violation(ended).into_iter().collect()
    }

    fn total(ended: &Ended) -> Total {
        total::total(ended)
    }

    fn assert_enough_happened(total: &Total) {
        total::assert_enough_happened(total);
    }
}

async fn play(engine: &Engine, seed: u64, rule: Rule) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng);
    let leaders = rng.usize(2..=4);
    // In every other history they are further apart than is assumed.
    let apart = 1000 * rng.u64(1..=2);
    let offsets = (0..leaders).map(|_| Duration::from_millis([0, apart, rng.u64(0..=apart)][rng.usize(..3)])).collect();
    let scene = Arc::new(Scene {
        name: format!("{seed}-{rule:?}"),
        rule,
        start: Instant::now(),
        offsets,
        days: rng.u32(..4) == 0,
        numbers: AtomicU64::new(TTL + 1),
        tokens: Mutex::default(),
        done: Mutex::default(),
        beliefs: Mutex::default(),
    });
    let broken = if let Rule::Wire(broken) = rule { broken } else { Broken::Nothing };
    let turns = rng.u64(2..=3);
    let storm = network_that_breaks(engine, rates, broken, rng);
    let service = tokio::spawn(serve(scene.clone(), storm.clone()));
    let mut working = tokio::task::JoinSet::new();
    for index in 0..leaders {
        working.spawn(Leader::new(&scene, &storm, index).work(turns));
    }
    let retired = working.join_all().await;
    // Until the last copy that was held has arrived, and in some until TTL has removed what it may.
    sleep(if scene.days {
        fencepost::lease::Leases::RETENTION + Duration::from_hours(30)
    } else {
        Duration::from_secs(700)
    })
    .await;
    service.abort();
    let landed = storm.applied().clone();
    let calm = network_that_breaks(engine, Rates::default(), broken, fastrand::Rng::with_seed(!seed));
    let newest = Leader::new(&scene, &calm, retired.first().map_or(0, |leader| leader.index));
    let mut wrong = newest.takes_over().await;
    // What is broken has to show before.
    let woken = retired.into_iter().filter(|_| rule == Leases::NOTHING);
    for leader in woken {
        wrong.extend(leader.wakes_up(&calm).await);
    }
    let mut applied = landed.clone();
    applied.extend(calm.applied().iter().cloned());
    let landed = landed.iter().map(|applied| applied.op).collect();
    Ended { scene, applied, landed, wrong }
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
        held: rate(80),
        second_copy: rate(100),
        throttled: rate(150),
        transaction_conflict: rate(120),
        denied: rate(10),
        frozen: rate(20),
        in_progress: rate(100),
        mismatch: rate(100),
        mixed_reasons: rate(150),
        unprocessed: rate(80),
        garbled: rate(100),
        // They are forgotten when that is allowed: see `serve`.
        tokens_forgotten: 0,
        ..Rates::default()
    }
}

/// What the service does by itself: TTL removes rows some time after it may, and tokens of transactions are forgotten
/// some time after the last one.
async fn serve(scene: Arc<Scene>, network: Arc<Network>) {
    loop {
        let longest = if scene.days { 43_200_000 } else { 1_200_000 };
        sleep(Duration::from_millis(network.below(longest))).await;
        let now = (EPOCH + scene.start.elapsed()).as_secs();
        let rows = [(LEASES, scene.name.clone()), (REPORTS, scene.fenced()), (REPORTS, scene.required())];
        for (table, id) in rows {
            let key = json!({network.engine.key_of(table): {"S": &id}});
            let row = network.engine.row_at(table, &key);
            let purge_at =
                row.get("purgeAt").or_else(|| row.get("_purgeAt")).and_then(|at| at["N"].as_str()?.parse().ok());
            if purge_at.is_some_and(|at: u64| at < now) && network.below(2) == 0 {
                network.engine.raw("DeleteItem", &json!({"TableName": table, "Key": key}));
                let step = Step { action: "DeleteItem", table: table.to_owned(), id, key };
                let rows = vec![Touched { step, row: Value::Null }];
                let purged = Applied { op: TTL, time: Instant::now(), rows, is_copy_of_refused: false };
                network.applied().push(purged);
            }
        }
        let last = network.applied().last().map(|applied| applied.time);
        if last.is_none_or(|last| last.elapsed() > TOKEN_LIFE) {
            network.engine.forget_tokens();
        }
    }
}

#[test]
fn no_two_holders_write_and_tokens_only_rise_under_every_fault() {
    Leases::holds();
}

#[test]
fn without_the_fence_an_item_takes_the_write_of_a_holder_that_was_replaced() {
    Leases::is_noticed(Rule::Wire(Broken::NoFence), 0..2000, checks::FELL);
}

#[test]
fn a_transaction_that_does_not_require_its_lease_writes_after_it_was_lost() {
    Leases::is_noticed(Rule::Wire(Broken::NotRequired), 0..2000, checks::NOT_HELD);
}

#[test]
fn tokens_that_begin_anew_after_a_release_do_not_rise() {
    Leases::is_noticed(Rule::Wire(Broken::LeasesDeleted), 0..2000, checks::NOT_RISEN);
}

#[test]
fn a_renewal_that_does_not_ask_how_often_it_was_renewed_is_applied_again() {
    Leases::is_noticed(Rule::Wire(Broken::RenewalsUnchecked), 0..2000, checks::RENEWED_TWICE);
}

#[test]
fn a_renewal_that_does_not_ask_for_a_holder_renews_what_was_released() {
    Leases::is_noticed(Rule::Wire(Broken::HolderUnchecked), 0..2000, checks::RELEASED_RENEWED);
}

#[test]
fn a_lease_that_is_taken_without_the_skew_has_two_holders_for_a_while() {
    Leases::is_noticed(Rule::NoSkew, 0..2000, checks::TWO_BELIEVED);
}

#[test]
fn the_independent_judge_notices_a_lease_that_two_leaders_write_under_and_tokens_that_begin_anew() {
    Leases::is_noticed_by_the_judge(Rule::Wire(Broken::NotRequired), 0..2000);
    Leases::is_noticed_by_the_judge(Rule::Wire(Broken::LeasesDeleted), 0..2000);
}

#[test]
fn the_independent_judge_notices_a_renewal_of_what_was_released() {
    Leases::is_noticed_by_the_judge(Rule::Wire(Broken::HolderUnchecked), 0..2000);
}
