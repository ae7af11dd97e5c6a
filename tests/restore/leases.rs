//! Leases and their protected items after a restore: tokens rise if the table starts empty.

use crate::harness::engine::Engine;
use crate::harness::events::{Event, ensure_under, release, renew};
use crate::harness::functions::{CHILDREN, LEASES, Leasing};
use crate::harness::restore::{Moment, SentWrites};
use crate::harness::world::World;
use fencepost::lease::LeaseTerms;
use fencepost::{Failure, FailureKind, Record, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::{Duration, SystemTime};

type Leads = World<Leasing>;

const MINUTE: u64 = 60_000;

impl Leads {
    /// The token of a new holder for a second, after the holder before has gone.
    async fn leader(&self, holder: &str) -> u64 {
        self.pass(5_000).await;
        self.acquired("k", holder, 1).await
    }
}

/// Wants the child of the parent `p` under a token.
fn child(token: u64) -> Event {
    ensure_under("p", "u-1", &json!({"pages": 1}), ("k", token))
}

/// `a` leads at the moment, then `b`, then `c`. After the restore `d` leads, and `b` wakes up.
async fn a_leader_of_before_makes_a_child(runbook: bool) -> bool {
    let world = Leads::new();
    let a = world.leader("a").await;
    let moment = Moment::of(&world.engine);
    let (b, c) = (world.leader("b").await, world.leader("c").await);
    moment.restored(&world.engine, runbook).await;
    if runbook {
        world.send(&child(b)).await.says(409, "fenced");
        world.send(&renew("k", b, 1)).await.says(404, "lease_not_found");
        world.send(&release("k", b)).await.says(404, "lease_not_found");
        world.pass(15 * MINUTE).await;
    }
    let d = world.leader("d").await;
    assert_eq!((d > a, d > c), (true, runbook), "{a} {b} {c} {d}");
    let answer = world.send(&child(b)).await;
    if answer.status == 201 {
        assert_eq!(d, b, "one token, two leaders");
        return true;
    }
    answer.says(409, "fenced");
    world.send(&renew("k", c, 1)).await.says(409, "fenced");
    world.send(&child(c)).await.says(409, "fenced");
    world.send(&child(d)).await.shown(201);
    false
}

#[tokio::test(start_paused = true)]
async fn a_restored_token_is_given_out_twice_and_one_that_starts_from_the_clock_is_higher_than_all_before() {
    assert!(a_leader_of_before_makes_a_child(false).await, "the rehearsal shows nothing");
    assert!(!a_leader_of_before_makes_a_child(true).await);
}

#[tokio::test(start_paused = true)]
async fn tokens_rise_although_the_first_new_leader_has_a_clock_that_is_five_minutes_behind() {
    let world = Leads::new();
    let before = world.leader("a").await;
    let engine = Engine::with_tables(&[(LEASES, "leaseKey"), (CHILDREN, "childId")]);
    world.pass(15 * MINUTE).await;
    let clock = world.clock.clone();
    let behind = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.now() - 5 * MINUTE);
    let leases = crate::harness::engine::store(&engine.client(), behind, || fastrand::u64(..)).leases(LEASES);
    let terms = LeaseTerms::new(Duration::from_secs(10)).expect("long enough");
    let lease = leases.acquire("k", "b", terms).await.expect("free");
    assert!(lease.token().number() > before);
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_of_a_fenced_child_is_refused_by_the_empty_leases() {
    for runbook in [false, true] {
        let world = Leads::new();
        let a = world.leader("a").await;
        let moment = Moment::of(&world.engine);
        let sent = SentWrites::default();
        world.reached_by(&sent.client(&world.engine)).send(&child(a)).await.shown(201);
        moment.restored(&world.engine, runbook).await;
        assert_eq!(sent.deliver_last(&world.engine), !runbook);
    }
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "reportId")]
struct Report {
    by: String,
}

async fn report(table: &Table<Report>, by: &str) -> Result<(), UpdateError> {
    let put = |_: &Report| Ok(Some(Report { by: by.to_owned() }));
    table.update_with_retry("r-1", put).await.map(drop)
}

/// An item under `fenced_by` alone goes back to its old tokens. The next leader's first write raises them.
#[tokio::test(start_paused = true)]
async fn an_item_that_only_remembers_tokens_refuses_old_ones_from_the_first_write_of_the_new_leader_on() {
    let engine = Engine::with_tables(&[("Reports", "reportId"), (LEASES, "leaseKey")]);
    let clock = crate::harness::clock::Clock::running_since(tokio::time::Instant::now());
    let store = clock.store(&engine.client());
    let (table, leases) = (store.table::<Report>("Reports"), store.leases(LEASES));
    let terms = LeaseTerms::new(Duration::from_secs(1)).expect("long enough");
    let leader = async |holder: &str| {
        tokio::time::advance(Duration::from_mins(15)).await;
        leases.acquire("k", holder, terms).await.expect("free").token().clone()
    };
    table.create("r-1", &Report { by: "nobody".to_owned() }).await.expect("a free key");
    let a = leader("a").await;
    report(&table.fenced_by(&a), "a").await.expect("applied");
    let moment = Moment::of(&engine);
    let (b, c) = (leader("b").await, leader("c").await);
    report(&table.fenced_by(&c), "c").await.expect("applied");
    let is_fenced = |result| matches!(result, Err(UpdateError::Failed(Failure { kind: FailureKind::Fenced, .. })));
    assert!(is_fenced(report(&table.fenced_by(&b), "b").await));
    moment.restored(&engine, true).await;
    report(&table.fenced_by(&b), "b").await.expect("the item knows only a, so end every holder before the restore");
    let d = leader("d").await;
    report(&table.fenced_by(&d), "d").await.expect("applied");
    for old in [a, b, c] {
        assert!(is_fenced(report(&table.fenced_by(&old), "old").await), "{old:?}");
    }
}
