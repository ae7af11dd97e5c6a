//! Histories of a lease: leaders whose clocks are apart acquire, renew, release, are frozen and wake up and write, under
//! every fault at once, and what must hold after each.
//!
//! `FENCEPOST_HISTORIES=10000` says how many (a plain `cargo test` runs a sample), `FENCEPOST_SEED=7` replays one.
//! Reading order: [`leader`], [`play`], then what is checked in [`checks`] and [`timeline`]; the rules that are broken at
//! the end show that it notices.

use crate::harness::engine::Engine;
use crate::harness::faults::{Applied, Broken, Network, Rates, Touched};
use crate::harness::seeds::{self, Broke};
use checks::{Ended, violations};
use fencepost::Leases;
use leader::Leader;
use record::{Belief, Done};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use total::Total;

mod checks;
mod children;
mod leader;
mod record;
mod terms;
mod timeline;
mod total;

const LEASES: &str = "Leases";
const REPORTS: &str = "Reports";
const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (REPORTS, "reportId")];
/// When histories begin, since 1970.
const EPOCH: Duration = Duration::from_hours(500_000);
/// For how long `DynamoDB` remembers the token of a transaction.
const TOKEN_LIFE: Duration = Duration::from_mins(10);
/// The number that what TTL does is noted under.
const TTL: u64 = 0;

/// Which rule is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rule {
    /// By what the wire does to requests; `Broken::Nothing` for none.
    Wire(Broken),
    /// Leases are taken as soon as they have ended by the clock of whoever takes them.
    NoSkew,
}

/// What the leaders of one history share.
struct History {
    /// No other history has it.
    name: String,
    rule: Rule,
    start: Instant,
    /// How far the clock of each leader is ahead.
    offsets: Vec<Duration>,
    /// Some leaders are away for days.
    days: bool,
    /// The number of the next operation.
    numbers: AtomicU64,
    /// The token that each operation was under.
    tokens: Mutex<BTreeMap<u64, u64>>,
    done: Mutex<Vec<Done>>,
    beliefs: Mutex<Vec<Belief>>,
}

impl History {
    fn fenced(&self) -> String {
        format!("fenced-{}", self.name)
    }

    fn required(&self) -> String {
        format!("required-{}", self.name)
    }

    /// The leader that holds leases under this name.
    fn leader(&self, holder: &str) -> Option<usize> {
        (0..self.offsets.len()).find(|index| leader::name(*index) == holder)
    }
}

/// Runs the history of a seed and checks it.
fn run(engine: &Engine, seed: u64, rule: Rule) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    engine.take_log();
    let ended = runtime.block_on(play(engine, seed, rule));
    let requests = engine.take_log().len();
    let found = violations(engine, &ended);
    if found.is_empty() { Ok(Total::of(requests, &ended)) } else { Err(found.join("; ")) }
}

async fn play(engine: &Engine, seed: u64, rule: Rule) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng);
    let leaders = rng.usize(2..=4);
    // In every other history they are further apart than is assumed.
    let apart = 1000 * rng.u64(1..=2);
    let offsets = (0..leaders).map(|_| Duration::from_millis([0, apart, rng.u64(0..=apart)][rng.usize(..3)])).collect();
    let history = Arc::new(History {
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
    let storm = Network::new(engine, rates, broken, rng);
    let service = tokio::spawn(serve(history.clone(), storm.clone()));
    let mut working = tokio::task::JoinSet::new();
    for index in 0..leaders {
        working.spawn(Leader::new(&history, &storm, index).work(turns));
    }
    let mut retired = Vec::new();
    while let Some(ended) = working.join_next().await {
        retired.push(ended.unwrap_or_else(|ended| resume_unwind(ended.into_panic())));
    }
    // Until the last copy that was held has arrived, and in some until TTL has removed what it may.
    sleep(if history.days { Leases::RETENTION + Duration::from_hours(30) } else { Duration::from_secs(700) }).await;
    service.abort();
    let landed = storm.applied.lock().expect("no panic").clone();
    let calm = Network::new(engine, Rates::default(), broken, fastrand::Rng::with_seed(!seed));
    let newest = Leader::new(&history, &calm, retired.first().map_or(0, |leader| leader.index));
    let mut wrong = newest.takes_over().await;
    // What is broken has to show before.
    let woken = retired.into_iter().filter(|_| rule == NOTHING);
    for leader in woken {
        wrong.extend(leader.wakes_up(&calm).await);
    }
    let mut applied = landed.clone();
    applied.extend(calm.applied.lock().expect("no panic").iter().cloned());
    let landed = landed.iter().map(|applied| applied.op).collect();
    Ended { history, applied, landed, wrong }
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
        // They are forgotten when that is allowed: see `serve`.
        tokens_forgotten: 0,
    }
}

/// What the service does by itself: TTL removes rows some time after it may, and tokens of transactions are forgotten
/// some time after the last one.
async fn serve(history: Arc<History>, network: Arc<Network>) {
    loop {
        let longest = if history.days { 43_200_000 } else { 1_200_000 };
        sleep(Duration::from_millis(network.below(longest))).await;
        let now = (EPOCH + history.start.elapsed()).as_secs();
        let rows = [(LEASES, history.name.clone()), (REPORTS, history.fenced()), (REPORTS, history.required())];
        for (table, id) in rows {
            let key = network.engine.key_of(table);
            let row = network.engine.row(table, key, &id);
            let purge_at =
                row.get("purgeAt").or_else(|| row.get("_purgeAt")).and_then(|at| at["N"].as_str()?.parse().ok());
            if purge_at.is_some_and(|at: u64| at < now) && network.below(2) == 0 {
                network.engine.raw("DeleteItem", &json!({"TableName": table, "Key": {key: {"S": id}}}));
                let step = crate::harness::engine::Step { action: "DeleteItem", table: table.to_owned(), id };
                let rows = vec![Touched { step, row: Value::Null }];
                network.applied.lock().expect("no panic").push(Applied { op: TTL, time: Instant::now(), rows });
            }
        }
        let last = network.applied.lock().expect("no panic").last().map(|applied| applied.time);
        if last.is_none_or(|last| last.elapsed() > TOKEN_LIFE) {
            network.engine.forget_tokens();
        }
    }
}

/// The first of these seeds whose history breaks, and how; else what they were made of.
fn explore(seeds: Range<u64>, rule: Rule) -> Result<Total, Broke> {
    let engine = Engine::embedded(TABLES);
    seeds::explore(seeds, |seed| run(&engine, seed, rule))
}

const NOTHING: Rule = Rule::Wire(Broken::Nothing);

#[test]
fn no_two_holders_write_and_tokens_only_rise_under_every_fault() {
    let Some(total) = seeds::play(200, |seeds| explore(seeds, NOTHING)) else { return };
    println!("{}", json!(total));
    total.assert_enough_happened();
}

/// Breaks a rule and looks for the harm that it prevents, from this seed on.
fn is_noticed(rule: Rule, from: u64, harm: &str) {
    seeds::is_noticed(from..2000, |seeds| explore(seeds, rule), |why| why.contains(harm));
}

#[test]
fn without_the_fence_an_item_takes_the_write_of_a_holder_that_was_replaced() {
    is_noticed(Rule::Wire(Broken::NoFence), 0, checks::FELL);
}

#[test]
fn a_transaction_that_does_not_require_its_lease_writes_after_it_was_lost() {
    is_noticed(Rule::Wire(Broken::NotRequired), 0, checks::NOT_HELD);
}

#[test]
fn tokens_that_begin_anew_after_a_release_do_not_rise() {
    is_noticed(Rule::Wire(Broken::LeasesDeleted), 0, checks::NOT_RISEN);
}

#[test]
fn a_renewal_that_does_not_ask_how_often_it_was_renewed_is_applied_again() {
    is_noticed(Rule::Wire(Broken::RenewalsUnchecked), 0, checks::RENEWED_TWICE);
}

#[test]
fn a_renewal_that_does_not_ask_for_a_holder_renews_what_was_released() {
    is_noticed(Rule::Wire(Broken::HolderUnchecked), 0, checks::RELEASED_RENEWED);
}

#[test]
fn a_lease_that_is_taken_without_the_skew_has_two_holders_for_a_while() {
    is_noticed(Rule::NoSkew, 0, checks::TWO_BELIEVED);
}
