//! An acquire with an idempotency key: the same lease while it is held, then a new one.

use super::world::{SKEW, World, acquire, release, renew, shown_lease, token};
use crate::harness::events::Event;

fn keyed() -> Event {
    acquire("k", "a", 60).key("once")
}

#[tokio::test(start_paused = true)]
async fn the_same_acquire_again_gets_the_same_lease_with_its_remaining_time() {
    let world = World::new();
    let first = world.send(&keyed()).await;
    assert!(!first.is_replay());
    let (lease, ends) = (first.shown(201), world.clock.shows(60_000));
    // The skew is taken off at the same moment too: the clock of the first answer may be behind.
    for (passed, remaining) in [(0, 60_000 - SKEW), (1, 59_999 - SKEW), (9_999, 50_000 - SKEW), (50_000, 0), (SKEW, 0)]
    {
        world.pass(passed).await;
        let again = world.send(&keyed()).await;
        let mut expected = lease.clone();
        expected["remainingMs"] = remaining.into();
        assert_eq!((again.shown(201), again.is_replay()), (expected, true), "{passed}");
        assert_eq!((again.etag(), again.header("location")), (first.etag(), Some("/leases/k")));
        assert_eq!(again.json()["expiresAt"], ends);
    }
    world.send(&acquire("k", "a", 60)).await.says(409, "lease_held");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_renewed_since_is_replayed_as_it_stands() {
    let world = World::new();
    let token = token(&world.send(&keyed()).await.shown(201));
    world.pass(30_000).await;
    world.send(&renew("k", token, 60)).await.shown(200);
    let again = world.send(&keyed()).await;
    let shown = again.shown(201);
    assert_eq!((&shown["renewals"], &shown["token"], again.is_replay()), (&1.into(), &token.into(), true));
    assert_eq!(
        (&shown["expiresAt"], &shown["remainingMs"]),
        (&world.clock.shows(60_000).into(), &(60_000 - SKEW).into())
    );
}

#[tokio::test(start_paused = true)]
async fn another_acquire_under_the_same_key_is_refused_while_the_first_is_held() {
    let world = World::new();
    let token = token(&world.send(&keyed()).await.shown(201));
    for other in [acquire("k", "b", 60), acquire("k", "a", 61)] {
        let problem = world.refused_for(&other.key("once"), 422, "idempotency_key_reused", (0, 1)).await;
        assert_eq!(problem["field"], "header:idempotency-key");
    }
    // Another notation is the same request; another key or caller is another one.
    let same = keyed().text(r#" { "ttlSeconds" : 6.0e1, "holder" : "a" } "#);
    assert!(world.send(&same).await.is_replay());
    for other in [acquire("k", "a", 60).key("twice"), keyed().by("arn:aws:iam::123456789012:role/other")] {
        world.refused_for(&other, 409, "lease_held", (0, 1)).await;
    }
    world.send(&release("k", token)).await;
    world.send(&acquire("k", "b", 60).key("once")).await.shown(201);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_its_own_on_another_lease() {
    let world = World::new();
    world.send(&keyed()).await.shown(201);
    let elsewhere = world.send(&acquire("other", "a", 60).key("once")).await;
    elsewhere.shown(201);
    assert!(!elsewhere.is_replay());
}

#[tokio::test(start_paused = true)]
async fn after_its_end_or_its_release_the_same_request_is_a_new_acquire() {
    let world = World::new();
    let first = token(&world.send(&keyed()).await.shown(201));
    world.pass(60_000 + SKEW + 1).await;
    let second = world.send(&keyed()).await;
    assert!(!second.is_replay() && token(&second.shown(201)) > first);
    world.send(&release("k", token(&second.json()))).await;
    let third = world.send(&keyed()).await;
    assert!(!third.is_replay() && token(&third.shown(201)) > token(&second.json()));
    assert_eq!(world.send(&shown_lease("k")).await.shown(200)["token"], third.json()["token"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_does_not_share_a_lease_that_was_acquired_without_one() {
    let world = World::new();
    world.acquired("k", "a", 60).await;
    world.refused_for(&keyed(), 409, "lease_held", (0, 1)).await;
}
