//! Histories of a shop: orders placed, cancelled and restocked under every fault at once, and what must hold after each.
//!
//! Reading order: [`plan`], [`clerk`], [`play`], then what is checked in [`checks`], and by an independent judge in
//! [`judged`]. The rules that are broken at the end and the callers in [`wrong`] show that both notice.

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine, Step, store};
use crate::harness::faults::{Applied, Broken, Network, ONE_PAYLOAD, Rates, Touched, is_burn, network_that_breaks};
use crate::harness::functions::{Functions, ORDERS, PRODUCTS, RECORDS, Shop};
use crate::harness::off::OffClocks;
use checks::Ended;
use clerk::Clerk;
use plan::Plan;
use scene::{Days, EPOCH, Rule, Scene, TTL};
use serde_json::{Value, json};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

mod checks;
mod clerk;
mod judged;
mod plan;
mod scene;
mod wrong;

struct Orders;

impl History for Orders {
    const TABLES: &'static [(&'static str, &'static str)] = Shop::TABLES;
    const SAMPLE: u64 = 40;
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
        checks::total(ended)
    }

    fn assert_enough_happened(total: &Total) {
        checks::assert_enough_happened(total);
    }
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
    let storm = network_that_breaks(engine, rates, broken, rng);
    let (numbers, sent) = (AtomicU64::new(1), Mutex::default());
    let scene = Arc::new(Scene {
        plan,
        rule,
        clocks: OffClocks::of(seed, Instant::now()),
        numbers,
        sent,
        days: Days::of(seed),
    });
    let ttl = tokio::spawn(remove_what_has_ended(scene.clone(), storm.clone()));
    let mut working = tokio::task::JoinSet::new();
    for number in 0..clerks {
        working.spawn(Clerk::new(&scene, &storm, number).work(requests));
    }
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    ttl.abort();
    let before = scene.sent.lock().expect("no panic").clone();
    let (mut burns, mut applied) = effects(&storm);
    // With the seed of the storm, its write ids could come again.
    let calm = network_that_breaks(engine, Rates::default(), broken, fastrand::Rng::with_seed(!seed));
    let clerk = Clerk::new(&scene, &calm, clerks);
    let mut repeats = Vec::new();
    for unknown in before.iter().filter(|sent| sent.is_unknown()) {
        if let Some(what) = unknown.what.to_repeat() {
            repeats.push((unknown.clone(), clerk.send(what).await));
        }
    }
    let landed = applied.iter().map(|applied| applied.op).collect();
    let (more_burns, more) = effects(&calm);
    burns.extend(more_burns);
    applied.extend(more);
    let sent = scene.sent.lock().expect("no panic").clone();
    Ended { scene, sent, applied, burns, landed, repeats }
}

/// The burns, and all else that was applied.
fn effects(network: &Network) -> (Vec<Applied>, Vec<Applied>) {
    network.applied().iter().cloned().partition(is_burn)
}

/// How often each thing happens: every fault of the wire, in a storm or in a breeze. Most second copies come soon, so that some
/// come between two attempts.
fn rates(rng: &mut fastrand::Rng) -> Rates {
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    Rates {
        dropped: rate(60),
        answer_lost: rate(220),
        applied_500: rate(80),
        refused_500: rate(40),
        held: rate(80),
        second_copy: rate(160),
        copied_soon: 700,
        throttled: rate(200),
        transaction_conflict: rate(120),
        denied: rate(20),
        frozen: rate(25),
        in_progress: rate(120),
        mismatch: rate(150),
        tokens_forgotten: rate(100),
        mixed_reasons: rate(200),
        unprocessed: rate(80),
        garbled: rate(100),
        ..Rates::default()
    }
}

/// TTL: removes records, and tombstones of orders, some time after they have ended.
async fn remove_what_has_ended(scene: Arc<Scene>, network: Arc<Network>) {
    let (Some(days), plan, start) = (&scene.days, &scene.plan, Instant::now()) else { return };
    let orders = (0..plan.orders.len()).map(|order| (ORDERS, plan.order_id(order), "_purgeAt"));
    let records = (0..plan.restocks.len()).map(|restock| (RECORDS, plan.record_id(restock), "expiresAt"));
    let rows: Vec<_> = orders.chain(records).collect();
    loop {
        sleep(Duration::from_millis(days.below(10_000_000))).await;
        let now = (EPOCH + start.elapsed()).as_secs();
        for (table, id, ends) in &rows {
            let key = json!({network.engine.key_of(table): {"S": id}});
            let row = network.engine.row_at(table, &key);
            let end = row[*ends]["N"].as_str().and_then(|end| end.parse::<u64>().ok());
            if end.is_some_and(|end| end < now) && days.below(2) == 0 {
                network.engine.raw("DeleteItem", &json!({"TableName": table, "Key": key}));
                let step = Step { action: "DeleteItem", table: (*table).to_owned(), id: id.clone(), key };
                let rows = vec![Touched { step, row: Value::Null }];
                let purged = Applied { op: TTL, time: Instant::now(), rows, is_copy_of_refused: false };
                network.applied().push(purged);
            }
        }
    }
}

/// Creates a product before anything goes wrong.
async fn stock_up(engine: &Engine, product: &str, stock: i64) {
    let store = store(&engine.client(), || std::time::UNIX_EPOCH + EPOCH, || 7);
    let products = store.table(PRODUCTS);
    let call = fencepost::Call::new(fencepost::Deadline::within(Duration::from_secs(10)));
    let product_at_first = functions::product::new_product(stock, 2, store.now());
    products.in_call(&call).create(product, &product_at_first).await.expect("a free key and no fault");
}

#[test]
fn stock_and_orders_add_up_and_a_key_has_one_order_under_every_fault() {
    Orders::holds();
}

#[test]
fn a_token_reused_after_a_new_decision_is_noticed() {
    Orders::is_noticed(Rule::Wire(Broken::TokenReused), 0..2000, ONE_PAYLOAD);
}

#[test]
fn versioned_steps_without_an_id_deny_what_they_did() {
    Orders::is_noticed(Rule::Wire(Broken::NoIdInTransactions), 275..2275, checks::DENIED);
}

#[test]
fn a_guard_that_is_asked_before_the_judge_takes_its_own_order_for_anothers() {
    Orders::is_noticed(Rule::Wire(Broken::GuardBeforeJudge), 25..2025, checks::TAKEN_FOR_ANOTHERS);
}

#[test]
fn a_record_outside_the_transaction_lets_a_restock_count_twice() {
    Orders::is_noticed(Rule::RecordOutside, 0..2000, checks::COUNTED_TWICE);
}

#[test]
fn a_retry_although_a_guard_failed_places_two_orders_for_one_key() {
    Orders::is_noticed(Rule::GuardRetried, 0..2000, checks::TWO_ORDERS);
}

#[test]
fn the_independent_judge_notices_a_restock_that_counts_twice_and_a_second_order() {
    Orders::is_noticed_by_the_judge(Rule::RecordOutside, 0..2000);
    Orders::is_noticed_by_the_judge(Rule::GuardRetried, 0..2000);
}
