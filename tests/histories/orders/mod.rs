//! Histories of a shop: clerks place orders, cancel and restock under every fault at once, and every promise is
//! checked.
//!
//! Reading order: [`plan`], [`clerk`], [`Orders`], then the checks in [`checks`] and the independent judge in
//! [`judged`]. The rules broken at the end, some of them by [`clerk::Wrong`], show that both notice mistakes.

use super::history::{self, History};
use super::item::without_tickets;
use super::scene::{EPOCH, STORM, TTL, calm, rates, work_together};
use crate::harness::engine::{Asked, Engine, store};
use crate::harness::faults::{Applied, Broken, Network, ONE_PAYLOAD, Rates, is_burn, network_that_breaks};
use crate::harness::functions::{Functions, ORDERS, PRODUCTS, RECORDS};
use crate::harness::total::Total;
use checks::Orders;
use clerk::Clerk;
use plan::{Days, Own, Plan, Scene, Sent, What};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

mod checks;
mod clerk;
mod judged;
mod plan;

impl History for Orders {
    const TABLES: &'static [(&'static str, &'static str)] = crate::harness::functions::Shop::TABLES;
    const SAMPLE: u64 = 40;

    /// Most second copies come soon: some arrive between two attempts.
    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = Rates { answer_lost: 220, second_copy: 160, copied_soon: 700, throttled: 200, ..STORM };
        let most = Rates { in_progress: 120, mismatch: 150, mixed_reasons: 200, ..most };
        let rates = rates(&mut rng, 1..=8, most);
        let name = format!("shop-{seed}-{broken:?}");
        let plan = Plan::draw(&mut rng, name.clone());
        let (clerks, requests) = (rng.u64(3..=5), rng.u64(2..=4));
        for (product, stock) in plan.products.iter().zip(&plan.stocks) {
            stock_up(engine, product, *stock).await;
        }
        let storm = network_that_breaks(engine, rates, broken, rng);
        let scene = Scene::new(seed, name, storm.clone(), Own { plan, broken, days: Days::of(seed) });
        let ttl = tokio::spawn(remove_what_has_ended(scene.clone()));
        work_together((0..clerks).map(|number| Clerk::new(&scene, &storm, number).work(requests))).await;
        ttl.abort();
        let before = scene.done.lock().expect("no panic").clone();
        let (mut burns, mut applied) = effects(&storm);
        let calm = calm(engine, seed, broken);
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
        let sent = scene.take_done();
        Orders { scene, sent, applied, burns, landed, repeats }
    }

    fn violations(&self, engine: &Engine, _: &[Asked]) -> Vec<String> {
        checks::violations(engine, self)
    }

    fn judged(&self) -> Vec<String> {
        judged::violation(self).into_iter().collect()
    }

    fn total(&self) -> Total {
        let count = |such: &dyn Fn(&Sent) -> bool| self.sent.iter().filter(|sent| such(sent)).count();
        let done = |sent: &Sent| self.applied_by(sent) > 0;
        let conflicts: u32 = self.sent.iter().map(|sent| sent.conflicts).sum();
        let restocks = (0..self.scene.plan.restocks.len()).map(What::Restock);
        let used_anew = restocks.filter(|what| self.stock_changes(what).len() > 1).count();
        Total::of(&[
            ("invocations", self.sent.len()),
            ("ordersPlaced", count(&|sent| matches!(sent.what, What::Place(_)) && done(sent))),
            ("cancelled", count(&|sent| matches!(sent.what, What::Cancel(..)) && done(sent))),
            ("restocked", count(&|sent| matches!(sent.what, What::Restock(_)) && done(sent))),
            ("replayed", count(&|sent| sent.replayed)),
            ("refused", count(&Sent::is_refusal)),
            ("toldNothingApplied", count(&|sent| matches!(sent.status, 500 | 503))),
            ("unknown", count(&|sent| sent.is_unknown())),
            ("unknownThatLanded", count(&|sent| sent.is_unknown() && done(sent))),
            ("refusalsMadeUntrue", count(&|sent| self.is_made_untrue(sent))),
            ("removedByTtl", self.applied.iter().filter(|applied| applied.op == TTL).count()),
            ("keysUsedAnew", used_anew),
            ("conflicts", usize::try_from(conflicts).expect("few")),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        let histories = total["histories"];
        assert!(total["ordersPlaced"] > histories && total["refused"] > histories / 2, "little happened: {total}");
        assert!(total.least(&["cancelled", "restocked", "replayed"]) * 4 > histories, "little happened: {total}");
        assert!(total.least(&["conflicts", "toldNothingApplied"]) > 0, "nobody stood in another's way: {total}");
        assert!(total.least(&["removedByTtl", "keysUsedAnew"]) > 0, "no record has ended: {total}");
        assert!(total["unknown"] * 10 < total["invocations"], "unknown is for the rare case: {total}");
        assert!(total["refusalsMadeUntrue"] * 50 < total["refused"], "that is for the rare case: {total}");
        total.assert_unknown_is_worth_its_name();
    }
}

/// The burns, and all other applied writes.
fn effects(network: &Network) -> (Vec<Applied>, Vec<Applied>) {
    without_tickets(network.applied().clone()).into_iter().partition(is_burn)
}

/// Acts as TTL: removes records and tombstones of orders some time after they have ended.
async fn remove_what_has_ended(scene: Arc<Scene>) {
    let (Some(days), plan) = (&scene.days, &scene.plan) else { return };
    let orders = (0..plan.orders.len()).map(|order| (ORDERS, plan.order_id(order)));
    let records = (0..plan.restocks.len()).map(|restock| (RECORDS, plan.record_id(restock)));
    let rows: Vec<_> = orders.chain(records).collect();
    loop {
        sleep(Duration::from_millis(days.below(10_000_000))).await;
        scene.remove_ended(&rows, || days.below(2) == 0);
    }
}

/// Creates a product before the faults begin.
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
fn each_broken_rule_is_noticed() {
    Orders::notices(&[
        (Broken::TokenReused, 0..2000, ONE_PAYLOAD),
        (Broken::NoIdInTransactions, 275..2275, history::DENIED),
        (Broken::GuardBeforeJudge, 25..2025, checks::TAKEN_FOR_ANOTHERS),
        (Broken::RecordOutside, 0..2000, checks::COUNTED_TWICE),
        (Broken::GuardRetried, 0..2000, checks::TWO_ORDERS),
    ]);
}

#[test]
fn the_independent_judge_notices_broken_rules() {
    Orders::notices_by_the_judge(&[(Broken::RecordOutside, 0..2000), (Broken::GuardRetried, 0..2000)]);
}
