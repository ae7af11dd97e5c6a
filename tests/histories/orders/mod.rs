//! Histories of a shop: orders placed, cancelled and restocked under every fault at once, and what must hold after each.
//!
//! `FENCEPOST_HISTORIES=10000` says how many (a plain `cargo test` runs a sample), `FENCEPOST_SEED=7` replays one.
//! Reading order: [`plan`], [`clerk`], [`play`], then what is checked in [`checks`]; the callers in [`wrong`] show that
//! it notices.

use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Broken, Network, ONE_PAYLOAD, Rates};
use crate::harness::seeds::{self, Broke};
use checks::{Ended, Total, violations};
use clerk::Clerk;
use plan::{Plan, What};
use serde_json::json;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

mod checks;
mod clerk;
mod plan;
mod wrong;

const PRODUCTS: &str = "Products";
const ORDERS: &str = "Orders";
const RECORDS: &str = "IdempotencyRecords";
const TABLES: &[(&str, &str)] = &[(PRODUCTS, "productId"), (ORDERS, "orderId"), (RECORDS, "recordId")];

/// Which rule is broken on purpose, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rule {
    /// By what the wire does to requests and answers; `Broken::Nothing` for none.
    Wire(Broken),
    /// A restock is applied first, and the record of it written afterwards.
    RecordOutside,
    /// A placing whose order id is taken is tried again under another.
    GuardRetried,
}

/// What the clerks of one history share.
struct History {
    plan: Plan,
    rule: Rule,
    start: Instant,
    /// The number of the next request.
    numbers: AtomicU64,
    sent: Mutex<Vec<Sent>>,
}

/// One invocation of a function, and what it was answered.
#[derive(Clone, Debug)]
struct Sent {
    number: u64,
    what: What,
    began: Instant,
    status: u16,
    body: String,
    etag: Option<String>,
    replayed: bool,
    conflicts: u32,
}

impl Sent {
    fn is_unknown(&self) -> bool {
        self.status == 504
    }

    fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }

    fn is_success(&self) -> bool {
        matches!(self.status, 200 | 201)
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
    let plan = Plan::draw(&mut rng, format!("shop-{seed}-{rule:?}"));
    let (clerks, requests) = (rng.u64(3..=5), rng.u64(2..=4));
    for (product, stock) in plan.products.iter().zip(&plan.stocks) {
        stock_up(engine, product, *stock).await;
    }
    let broken = if let Rule::Wire(broken) = rule { broken } else { Broken::Nothing };
    let storm = Network::new(engine, rates, broken, rng);
    let (numbers, sent) = (AtomicU64::new(1), Mutex::default());
    let history = Arc::new(History { plan, rule, start: Instant::now(), numbers, sent });
    let mut working = tokio::task::JoinSet::new();
    for _ in 0..clerks {
        working.spawn(Clerk::new(&history, &storm).work(requests));
    }
    while let Some(ended) = working.join_next().await {
        ended.unwrap_or_else(|ended| resume_unwind(ended.into_panic()));
    }
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    let before = history.sent.lock().expect("no panic").clone();
    let mut applied = storm.applied.lock().expect("no panic").clone();
    let calm = Network::new(engine, Rates::default(), broken, fastrand::Rng::with_seed(seed));
    let clerk = Clerk::new(&history, &calm);
    let mut repeats = Vec::new();
    for unknown in before.iter().filter(|sent| sent.is_unknown()) {
        if let Some(what) = unknown.what.to_repeat() {
            repeats.push((unknown.clone(), clerk.send(what).await));
        }
    }
    let landed = applied.iter().map(|applied| applied.op).collect();
    applied.extend(calm.applied.lock().expect("no panic").iter().cloned());
    let sent = history.sent.lock().expect("no panic").clone();
    Ended { history, sent, applied, landed, repeats }
}

/// How often each thing happens: every fault of the wire, in a storm or in a breeze.
fn rates(rng: &mut fastrand::Rng) -> Rates {
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    Rates {
        dropped: rate(60),
        answer_lost: rate(220),
        applied_500: rate(80),
        refused_500: rate(40),
        held: rate(80),
        second_copy: rate(80),
        throttled: rate(200),
        transaction_conflict: rate(120),
        denied: rate(20),
        frozen: rate(25),
        in_progress: rate(120),
        mismatch: rate(150),
        tokens_forgotten: rate(100),
        mixed_reasons: rate(200),
        unprocessed: rate(80),
    }
}

/// Creates a product before anything goes wrong.
async fn stock_up(engine: &Engine, product: &str, stock: i64) {
    let store = store(&engine.client(), || std::time::UNIX_EPOCH + clerk::EPOCH, || 7);
    let products = store.table(PRODUCTS);
    let call = fencepost::Call::new(fencepost::Deadline::within(Duration::from_secs(10)));
    let product_at_first = inventory::product::new_product(stock, 2, store.now());
    products.create(&fencepost::Key::from(product), &product_at_first, &call).await.expect("a free key and no fault");
}

/// The first of these seeds whose history breaks, and how; else what they were made of.
fn explore(seeds: Range<u64>, rule: Rule) -> Result<Total, Broke> {
    let engine = Engine::embedded(TABLES);
    seeds::explore(seeds, |seed| run(&engine, seed, rule))
}

const NOTHING: Rule = Rule::Wire(Broken::Nothing);

#[test]
fn stock_and_orders_add_up_and_a_key_has_one_order_under_every_fault() {
    let Some(total) = seeds::play(150, |seeds| explore(seeds, NOTHING)) else { return };
    println!("{}", json!(total));
    total.assert_enough_happened();
}

/// Breaks a rule and looks for the harm that it prevents, from this seed on.
fn is_noticed(rule: Rule, from: u64, harm: &str) {
    seeds::is_noticed(from..2000, |seeds| explore(seeds, rule), |why| why.contains(harm));
}

#[test]
fn a_token_reused_after_a_new_decision_is_noticed() {
    is_noticed(Rule::Wire(Broken::TokenReused), 0, ONE_PAYLOAD);
}

#[test]
fn versioned_steps_without_a_slot_deny_what_they_did() {
    is_noticed(Rule::Wire(Broken::NoSlotInTransactions), 160, checks::DENIED);
}

#[test]
fn a_guard_that_is_asked_before_the_judge_takes_its_own_order_for_anothers() {
    is_noticed(Rule::Wire(Broken::GuardBeforeJudge), 0, checks::TAKEN_FOR_ANOTHERS);
}

#[test]
fn a_record_outside_the_transaction_lets_a_restock_count_twice() {
    is_noticed(Rule::RecordOutside, 0, checks::COUNTED_TWICE);
}

#[test]
fn a_retry_although_a_guard_failed_places_two_orders_for_one_key() {
    is_noticed(Rule::GuardRetried, 0, checks::TWO_ORDERS);
}
