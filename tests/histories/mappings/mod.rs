//! Histories of addresses: instances are registered and deleted late, twice and in any order. Every promise is checked.
//!
//! Reading order: [`plan`], [`client`], [`Mappings`], then the checks in [`checks`] and the independent judge in
//! [`judged`]. The tests at the end show that both notice mistakes. The models play all orders of a few changes.

use super::history::History;
use super::scene::{ALL_HAS_ARRIVED, EPOCH, STORM, TTL, calm, rates};
use crate::harness::engine::{Asked, Engine, store};
use crate::harness::faults::{Broken, Network, Rates, network_that_breaks};
use crate::harness::functions::{self, Functions, MAPPINGS};
use crate::harness::total::Total;
use ::functions::mapping::Mapping;
use checks::Mappings;
use client::Asker;
use fencepost::lww::{LwwTable, OrderKey};
use plan::{Change, Name, Own, Plan, Scene, Sent, Told, What};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

mod checks;
mod client;
mod judged;
mod plan;

impl History for Mappings {
    const TABLES: &'static [(&'static str, &'static str)] = functions::Mappings::TABLES;
    const SAMPLE: u64 = 60;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        LocalSet::new().run_until(play(engine, seed, broken)).await
    }

    fn violations(&self, engine: &Engine, asked: &[Asked]) -> Vec<String> {
        let mut found = checks::violations(engine, self);
        let operations: BTreeSet<_> = asked.iter().map(|asked| asked.operation.as_str()).collect();
        if !operations.is_subset(&["GetItem", "PutItem"].into()) {
            found.push(format!("something else was sent than reads and conditional puts: {operations:?}"));
        }
        found
    }

    fn judged(&self) -> Vec<String> {
        judged::violations(self)
    }

    /// The last looks are left out.
    fn total(&self) -> Total {
        let sent = &self.sent[..self.sent.len() - self.last.len()];
        let count = |such: &dyn Fn(&Sent) -> bool| sent.iter().filter(|sent| such(sent)).count();
        let told = |told: Told| count(&|sent| sent.told == told);
        let is_register = |sent: &Sent| matches!(sent.what, What::Change(Change::Register(_)));
        let superseded = |sent: &Sent| matches!(sent.told, Told::Superseded(_));
        let stayed_deleted = |sent: &Sent| match (&sent.what, &sent.told) {
            (What::Change(Change::Register(who)), Told::Superseded(by)) => by.as_ref() == Some(who),
            _ => false,
        };
        let nameless = |sent: &Sent| matches!(&sent.what, What::Change(change) if change.who().name == Name::All);
        let is_change = |sent: &Sent| matches!(sent.what, What::Change(_));
        let numbers = |queued| sent.iter().filter(move |sent| sent.was_queued() == queued).map(|sent| sent.number);
        let batches = numbers(true).collect::<BTreeSet<_>>().len();
        Total::of(&[
            ("invocations", numbers(false).count() + batches),
            ("batches", batches),
            ("messages", count(&Sent::was_queued)),
            ("duplicates", count(&is_change) - self.scene.plan.different()),
            ("registered", told(Told::New)),
            ("same", told(Told::Same)),
            ("superseded", count(&|sent| is_register(sent) && superseded(sent))),
            ("stayedDeleted", count(&stayed_deleted)),
            ("deleted", told(Told::Deleted)),
            ("alreadyGone", told(Told::AlreadyGone)),
            ("cameLate", count(&|sent| !is_register(sent) && superseded(sent))),
            ("folded", told(Told::Folded)),
            ("nameless", count(&nameless)),
            ("shown", count(&|sent| matches!(sent.told, Told::Shown(_)))),
            ("shownNothing", told(Told::ShownNothing)),
            ("toldNothingApplied", told(Told::NotApplied)),
            ("removedByTtl", self.applied.iter().filter(|applied| applied.op == TTL).count()),
            ("unknown", told(Told::Unknown)),
            ("unknownThatLanded", count(&|sent| sent.told == Told::Unknown && self.has_landed(sent))),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        let histories = total["histories"];
        let often = ["registered", "same", "superseded", "deleted", "alreadyGone", "cameLate", "duplicates"];
        assert!(total.least(&often) * 2 > histories, "little happened: {total}");
        assert!(total.least(&["shown", "shownNothing"]) * 2 > histories, "little happened: {total}");
        assert!(total.least(&["stayedDeleted", "folded", "nameless"]) * 8 > histories, "little happened: {total}");
        assert!(total["removedByTtl"] * 20 > histories, "few tombstones have ended: {total}");
        assert!(total["toldNothingApplied"] > 0, "nothing went wrong: {total}");
        total.assert_unknown_is_worth_its_name();
    }
}

async fn play(engine: &Engine, seed: u64, broken: Broken) -> Mappings {
    let mut rng = fastrand::Rng::with_seed(seed);
    let most = Rates { dropped: 80, applied_500: 100, refused_500: 60, held: 120, second_copy: 120, ..STORM };
    let most = Rates { transaction_conflict: 80, frozen: 30, in_progress: 0, mismatch: 0, tokens_forgotten: 0, ..most };
    let rates = rates(&mut rng, 1..=8, Rates { mixed_reasons: 0, unprocessed: 0, ..most });
    let an_hour_ago = EPOCH.saturating_sub(Duration::from_hours(1));
    let plan = Plan::draw(&mut rng, seed, u64::try_from(an_hour_ago.as_millis()).expect("our time"));
    // Each change is asked for one to three times, by any client.
    let mut asks: Vec<_> = (0..plan.asks.len()).flat_map(|ask| vec![ask; rng.usize(1..=3)]).collect();
    rng.shuffle(&mut asks);
    let clients = rng.usize(2..=4);
    let readers = rng.usize(1..=2);
    let storm = network_that_breaks(engine, rates, broken, rng);
    let (queue, asking) = (Mutex::default(), AtomicUsize::new(clients));
    let scene = Scene::new(seed, seed.to_string(), storm.clone(), Own { plan, queue, asking });
    bury(&scene.plan, &storm).await;
    let ttl = tokio::spawn(remove_what_has_ended(scene.clone(), fastrand::Rng::with_seed(seed ^ 0x771_771)));
    let mut working = JoinSet::new();
    for client in 0..clients {
        let asks = asks.iter().skip(client).step_by(clients).copied().collect();
        working.spawn_local(Asker::new(&scene, &storm, client).ask_for(asks));
    }
    for reader in 0..readers {
        working.spawn_local(Asker::new(&scene, &storm, clients + reader).empty_queue());
    }
    working.spawn_local(Asker::new(&scene, &storm, clients + readers).look_around(8));
    working.join_all().await;
    sleep(ALL_HAS_ARRIVED).await;
    ttl.abort();
    let calm = calm(engine, seed, broken);
    let client = Asker::new(&scene, &calm, clients + readers + 1);
    let mut last = Vec::new();
    for address in 0..scene.plan.addresses.len() {
        last.push(client.look_up(address).await);
    }
    let (applied, sent) = (storm.applied().clone(), scene.take_done());
    Mappings { scene, sent, applied, last }
}

/// Deletes the buried instances a month before, so that their tombstones end in the middle of the history.
async fn bury(plan: &Plan, network: &Network) {
    for (address, buried) in plan.addresses.iter().zip(&plan.buried) {
        let Some(buried) = buried else { continue };
        let then = (EPOCH + buried.ends_after).saturating_sub(LwwTable::<Mapping>::TOMBSTONE_RETENTION);
        let store = store(&network.engine.client(), move || SystemTime::UNIX_EPOCH + then, || 7);
        let instance = OrderKey { order: buried.who.moment, name: buried.who.instance().map(ToOwned::to_owned) };
        let key = address.kept.as_str();
        store.lww_table::<Mapping>(MAPPINGS).delete(key, &instance).await.expect("no fault");
    }
}

async fn remove_what_has_ended(scene: Arc<Scene>, mut rng: fastrand::Rng) {
    let rows: Vec<_> = scene.plan.addresses.iter().map(|address| (MAPPINGS, address.kept.clone())).collect();
    loop {
        sleep(Duration::from_millis(rng.u64(0..60_000))).await;
        scene.remove_ended(&rows, || true);
    }
}

#[test]
fn the_newest_instance_wins_and_what_is_deleted_stays_so_under_every_fault() {
    Mappings::holds();
}

/// So few seeds are enough: a broken rule shows in many of their histories.
const FEW: u64 = 100;

#[test]
fn each_broken_rule_is_noticed() {
    Mappings::notices(&[
        (Broken::NoCondition, 0..FEW, checks::OLDER_REPLACED),
        (Broken::RowsDeleted, 0..FEW, checks::REVIVED),
    ]);
}

#[test]
fn the_independent_judge_notices_broken_rules() {
    Mappings::notices_by_the_judge(&[
        (Broken::NoCondition, 0..FEW),
        (Broken::RowsDeleted, 0..FEW),
        (Broken::OnlyEqual, 0..FEW),
    ]);
}
