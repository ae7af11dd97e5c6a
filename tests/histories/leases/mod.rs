//! Histories of a lease: leaders with different clocks acquire, renew, release, freeze, wake up and write under every
//! fault at once. Every promise about the lease is checked.
//!
//! Reading order: [`leader`], [`Leaders`], then the checks in [`checks`] and [`timeline`] and the independent judge in
//! [`judged`]. The rules broken at the end show that both notice mistakes. [`children`] plays
//! a shorter story.

use super::history::{History, without_tickets};
use super::scene::{ALL_HAS_ARRIVED, STORM, TTL, calm, rates};
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::functions::LEASES;
use crate::harness::total::Total;
use checks::{Leaders, both_believed};
use fencepost::lease::Leases;
use leader::Leader;
use record::{Done, Own, REPORTS, Scene, TABLES, Told, What};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timeline::{Change, Timeline};
use tokio::time::sleep;

mod checks;
mod children;
mod judged;
mod leader;
mod record;
mod timeline;

/// For how long `DynamoDB` remembers the token of a transaction.
const TOKEN_LIFE: Duration = Duration::from_mins(10);

impl History for Leaders {
    const TABLES: &'static [(&'static str, &'static str)] = TABLES;
    const SAMPLE: u64 = 100;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        // `serve` forgets tokens when that is allowed.
        let rates = rates(&mut rng, 1..=8, Rates { denied: 10, frozen: 20, tokens_forgotten: 0, ..STORM });
        let leaders = rng.usize(2..=4);
        // In about half of the histories, the clocks may differ by more than is assumed.
        let apart = 1000 * rng.u64(1..=2);
        let mut offset = |_| Duration::from_millis([0, apart, rng.u64(0..=apart)][rng.usize(..3)]);
        let offsets = (0..leaders).map(&mut offset).collect();
        let days = rng.u32(..4) == 0;
        let turns = rng.u64(2..=3);
        let storm = network_that_breaks(engine, rates, broken, rng);
        let own = Own { broken, offsets, days, tokens: Mutex::default(), beliefs: Mutex::default() };
        let scene = Scene::new(seed, format!("{seed}-{broken:?}"), storm.clone(), own);
        let service = tokio::spawn(serve(scene.clone()));
        let mut working = tokio::task::JoinSet::new();
        for index in 0..leaders {
            working.spawn(Leader::new(&scene, &storm, index).work(turns));
        }
        let retired = working.join_all().await;
        // Some histories wait until TTL has removed all that it may.
        sleep(if days { Leases::RETENTION + Duration::from_hours(30) } else { ALL_HAS_ARRIVED }).await;
        service.abort();
        let mut applied = without_tickets(storm.applied().clone());
        let landed = applied.iter().map(|applied| applied.op).collect();
        let calm = calm(engine, seed, broken);
        let newest = Leader::new(&scene, &calm, retired.first().map_or(0, |leader| leader.index));
        let mut wrong = newest.takes_over().await;
        // A broken rule must show before this.
        for leader in retired.into_iter().filter(|_| broken == Broken::Nothing) {
            wrong.extend(leader.wakes_up(&calm).await);
        }
        applied.extend(calm.applied().iter().cloned());
        Leaders { scene, applied: without_tickets(applied), landed, wrong }
    }

    fn violations(&self, engine: &Engine, _: &[Asked]) -> Vec<String> {
        checks::violations(engine, self)
    }

    fn judged(&self) -> Vec<String> {
        judged::violation(self).into_iter().collect()
    }

    fn total(&self) -> Total {
        let timeline = Timeline::of(&self.scene, &self.applied);
        let done = self.scene.done.lock().expect("no panic");
        // The operations after the storm are left out.
        let last = self.landed.last().copied().unwrap_or_default();
        let count = |such: &dyn Fn(&Done) -> bool| done.iter().filter(|one| one.number <= last && such(one)).count();
        let changed =
            |change: Change| timeline.lease.iter().filter(move |state| state.op <= last && state.change == change);
        let heard: BTreeSet<_> =
            done.iter().filter(|one| !matches!(one.what, What::Release { .. })).filter_map(|one| one.token).collect();
        let unheard = |token: &u64| !heard.contains(token);
        Total::of(&[
            ("operations", count(&|_| true)),
            ("acquired", changed(Change::Acquired).count()),
            ("acquiredUnheard", changed(Change::Acquired).map(|state| state.token).filter(unheard).count()),
            ("renewed", changed(Change::Renewed).count()),
            ("released", changed(Change::Released).count()),
            ("toldHeld", count(&|one| matches!(one.told, Told::Held { .. }))),
            ("toldLost", count(&|one| one.told == Told::Fenced && !one.what.is_protected())),
            ("written", timeline.items.values().flatten().filter(|write| write.op != TTL && write.op <= last).count()),
            ("writesRefusedAsFenced", count(&|one| one.told == Told::Fenced && one.what.is_protected())),
            ("toldNothingApplied", count(&|one| one.told == Told::NotApplied)),
            ("unknown", count(&|one| one.told == Told::Unknown)),
            ("unknownThatLanded", count(&|one| one.told == Told::Unknown && self.landed.contains(&one.number))),
            ("removedByTtl", self.applied.iter().filter(|applied| applied.op == TTL).count()),
            ("twoBelieved", usize::from(!both_believed(&self.scene).is_empty())),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        let histories = total["histories"];
        assert!(total.least(&["acquired", "written"]) > 2 * histories, "little happened: {total}");
        let often = ["renewed", "released", "writesRefusedAsFenced"];
        assert!(total.least(&often) > histories, "little happened: {total}");
        assert!(total.least(&["toldHeld", "toldLost"]) * 2 > histories, "nobody stood in another's way: {total}");
        assert!(total["toldNothingApplied"] > 0, "nothing went wrong: {total}");
        let forgotten = total["removedByTtl"] * 20 > histories;
        assert!(total["acquiredUnheard"] > 0 && forgotten, "nothing was forgotten: {total}");
        assert!(total["twoBelieved"] * 50 > histories, "clocks were never too far apart: {total}");
        assert!(total["unknown"] * 8 < total["operations"], "unknown is for the rare case: {total}");
        total.assert_unknown_is_worth_its_name();
    }
}

/// The service's own actions: TTL removes rows some time after it may. Tokens of transactions are forgotten some time
/// after the last one.
async fn serve(scene: Arc<Scene>) {
    let network = &scene.network;
    let rows = [(LEASES, scene.name.clone()), (REPORTS, scene.fenced()), (REPORTS, scene.required())];
    loop {
        let longest = if scene.days { 43_200_000 } else { 1_200_000 };
        sleep(Duration::from_millis(network.below(longest))).await;
        scene.remove_ended(&rows, || network.below(2) == 0);
        let last = network.applied().last().map(|applied| applied.time);
        if last.is_none_or(|last| last.elapsed() > TOKEN_LIFE) {
            network.engine.forget_tokens();
        }
    }
}

#[test]
fn no_two_holders_write_and_tokens_only_rise_under_every_fault() {
    Leaders::holds();
}

#[test]
fn each_broken_rule_is_noticed() {
    Leaders::notices(&[
        (Broken::NoFence, 0..2000, checks::FELL),
        (Broken::NotRequired, 0..2000, checks::NOT_HELD),
        (Broken::LeasesDeleted, 0..2000, checks::NOT_RISEN),
        (Broken::RenewalsUnchecked, 0..2000, checks::RENEWED_TWICE),
        (Broken::HolderUnchecked, 0..2000, checks::RELEASED_RENEWED),
        (Broken::NoSkew, 0..2000, checks::TWO_BELIEVED),
    ]);
}

#[test]
fn the_independent_judge_notices_broken_rules() {
    Leaders::notices_by_the_judge(&[
        (Broken::NotRequired, 0..2000),
        (Broken::LeasesDeleted, 0..2000),
        (Broken::HolderUnchecked, 0..2000),
        (Broken::RenewalsUnchecked, 0..2000),
    ]);
}
