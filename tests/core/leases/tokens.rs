//! The end of a lease by clocks that differ, and rows that are no leases.

use crate::harness::clock::millis;
use crate::harness::engine::store;
use crate::harness::functions::LEASES;
use crate::leases::world::{World, terms};
use fencepost::{Error, Failure, FailureKind};
use serde_json::json;
use std::time::{Duration, SystemTime};

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
        let read = leases.get("k").await.expect_err("no lease");
        let acquired = leases.acquire("k", "a", terms(10_000)).await.expect_err("no lease");
        let led = campaign.await.expect_err("no lease");
        for failure in [Some(&read), acquired.failure(), led.failure()] {
            let failure = failure.expect("not refused");
            assert!(matches!(failure.kind, FailureKind::CorruptItem { .. }), "{failure}");
            assert!(failure.to_string().contains("no lease of this crate's"), "{failure}");
        }
        assert_eq!(world.row("k"), row);
    }
}
