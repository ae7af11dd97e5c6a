//! The row of a lease has the attributes of the contract, and its end by clocks that differ.

use crate::harness::clock::millis;
use crate::harness::engine::{number, store};
use crate::harness::functions::LEASES;
use crate::leases::world::{World, acquire, release, renew, shown_lease, terms};
use fencepost::lease::LeaseHeld;
use fencepost::{Error, Failure, FailureKind};
use serde_json::json;
use std::time::{Duration, SystemTime};

const WEEK: i64 = 7 * 24 * 3600;

/// The row's TTL attribute is in seconds, a week ahead of the clock.
fn assert_purged_in_a_week(world: &World) {
    let now = i64::try_from(world.clock.now() / 1000).expect("small");
    assert_eq!(number(&world.row("k"), "purgeAt"), now + WEEK);
}

#[tokio::test(start_paused = true)]
async fn a_row_may_be_purged_a_week_after_it_was_acquired_renewed_or_released_last() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    assert_purged_in_a_week(&world);
    world.pass(50_000).await;
    world.send(&renew("k", token, 900).header("if-match", "*")).await.shown(200);
    assert_purged_in_a_week(&world);
    world.pass(50_000).await;
    world.send(&renew("k", token, 1)).await.shown(200);
    assert_purged_in_a_week(&world);
    world.pass(1_000).await;
    for _ in 0..2 {
        assert_eq!(world.send(&release("k", token)).await.status, 204);
        assert_purged_in_a_week(&world);
        world.pass(3_600_000).await;
    }
    world.acquired("k", "b", 60).await;
    assert_purged_in_a_week(&world);
}

#[tokio::test(start_paused = true)]
async fn the_remaining_time_goes_by_the_clock_that_has_less() {
    let world = World::new();
    let lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
    let left = || millis(lease.remaining());
    world.pass(3_000).await;
    assert_eq!(left(), 7_000);
    // The machine stood still, together with its monotonic clock.
    world.clock.set_forward(2_000);
    assert_eq!(left(), 5_000);
    // Here the time of day has stopped.
    let stopped = || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    let leases = store(&world.engine.client(), stopped, || fastrand::u64(..)).leases(LEASES);
    let lease = leases.acquire("j", "a", terms(10_000)).await.expect("acquired");
    world.pass(3_000).await;
    assert_eq!(millis(lease.remaining()), 7_000);
    world.pass(7_000).await;
    assert_eq!(millis(lease.remaining()), 0);
}

#[tokio::test(start_paused = true)]
async fn clocks_may_be_as_far_apart_as_is_said() {
    for skew in [0, 250, 60_000] {
        let world = World::new();
        let leases = world.clock.store(&world.engine.client()).leases(LEASES);
        let leases = leases.with_clock_skew(Duration::from_millis(skew));
        leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
        world.pass(10_000 + skew).await;
        let held = leases.acquire("k", "b", terms(10_000)).await.expect_err("held");
        let Error::Refused(LeaseHeld { until, .. }) = held else { panic!("{held:?}") };
        assert_eq!(millis(leases.free_in(until)), 1);
        let stored = leases.get("k").await.expect("read").expect("held");
        assert_eq!(millis(leases.remaining(&stored)), 0);
        world.pass(1).await;
        assert_eq!(leases.get("k").await.expect("read"), None);
        leases.acquire("k", "b", terms(10_000)).await.expect("acquired");
    }
}

/// Another program writes to the table. The row has no known meaning, so it is neither used nor changed.
#[tokio::test(start_paused = true)]
async fn a_row_that_is_no_lease_is_left_alone() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let lease = world.row("k");
    for (name, value) in [("acquireId", None), ("expiresAt", Some(json!({"S": "soon"}))), ("renewals", None)] {
        let mut row = lease.clone();
        let attributes = row.as_object_mut().expect("a row");
        attributes.remove(name);
        attributes.extend(value.map(|value| (name.to_owned(), value)));
        world.engine.raw("PutItem", &json!({"TableName": LEASES, "Item": row}));
        for event in [acquire("k", "b", 60), renew("k", token + 1, 60), release("k", token + 1), shown_lease("k")] {
            world.send(&event).await.says(500, "internal");
            assert_eq!(world.row("k"), row, "{event:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_has_a_holder_with_a_name() {
    let world = World::new();
    let leases = world.clock.store(&world.engine.client()).leases(LEASES);
    world.engine.take_log();
    let refused = leases.acquire("k", "", terms(1_000)).await.expect_err("no name");
    assert!(
        matches!(&refused, Error::Failed(Failure { kind: FailureKind::InvalidRecord { reason }, .. }) if reason.contains("holder")),
        "{refused:?}"
    );
    assert_eq!(world.engine.take_log().len(), 0);
}

/// A table may have rows of another library, with a holder or without. To write a lease into one would harm its owner.
#[tokio::test(start_paused = true)]
async fn the_row_of_another_library_is_no_free_lease() {
    for (attribute, value) in
        [("ownerName", json!({"S": "b"})), ("holder", json!({"S": "b"})), ("expiresAt", json!({"N": "1"}))]
    {
        let world = World::new();
        let row = json!({"leaseKey": {"S": "k"}, attribute: value});
        world.engine.raw("PutItem", &json!({"TableName": LEASES, "Item": row}));
        let leases = &world.app.leases;
        let campaign = leases.campaign("k", "a", terms(10_000), std::future::pending(), async |_| ());
        let (read, acquired, led) =
            (leases.get("k").await, leases.acquire("k", "a", terms(10_000)).await, campaign.await);
        for failure in [read.map(drop).expect_err("no lease"), failed(acquired), failed(led)] {
            assert!(matches!(failure.kind, FailureKind::CorruptItem { .. }), "{failure}");
            assert!(failure.to_string().contains("no lease of this crate's"), "{failure}");
        }
        assert_eq!(world.row("k"), row);
    }
}

fn failed<T: std::fmt::Debug, R: std::fmt::Debug>(told: Result<T, Error<R>>) -> Failure {
    match told {
        Err(Error::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}
