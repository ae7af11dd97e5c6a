//! Lost answers: the outcome of the request is found out at once, and never reported wrongly.

use crate::harness::clients::{Way, client_that};
use crate::harness::engine::number;
use crate::leases::world::{World, acquire, call, release, terms, token};
use Way::{AnswerLost, Answered, Dropped, InTransaction};
use fencepost::{Error, Failure};
use serde_json::Value;
use std::time::Duration;

/// A world behind a client. Its first requests take these ways, and the others arrive. The client has had an answer
/// before, so it sends a request again after 150 ms without an answer.
async fn faring(ways: &'static [Way]) -> World {
    faring_on(&World::new(), ways).await
}

async fn faring_on(world: &World, ways: &'static [Way]) -> World {
    let way = |request: usize| request.checked_sub(1).and_then(|n| ways.get(n)).copied().unwrap_or(Answered(10));
    let world = world.reached_by(&client_that(&world.engine, way));
    world.app.leases.get("another").await.expect("answered");
    world.engine.take_log();
    world
}

fn is_unknown<T, R>(result: &Result<T, Error<R>>) -> bool {
    matches!(result, Err(Error::Failed(Failure::OutcomeUnknown { .. })))
}

#[tokio::test(start_paused = true)]
async fn an_acquire_whose_answer_is_lost_costs_exactly_one_request_more() {
    for lost in [AnswerLost, Dropped] {
        let ways: &'static [Way] = if lost == Dropped { &[Dropped] } else { &[AnswerLost] };
        let world = faring(ways).await;
        let began = world.clock.now();
        let lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
        let took = world.clock.now() - began;
        assert!(took < 200, "it does not wait until the lease ends: {took} ms");
        let asked = world.engine.take_log().len() + usize::from(lost == Dropped);
        assert_eq!(asked, 2);
        let row = world.row("k");
        assert_eq!(number(&row, "token").unsigned_abs(), lease.token().number());
        assert_eq!(number(&row, "expiresAt").unsigned_abs(), began + 10_000, "it counts from the first send");
        assert_eq!(u128::from(10_000 - took), lease.remaining().as_millis());
        assert_eq!((lease.holder(), lease.renewals()), ("a", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_through_the_function_whose_answer_is_lost_is_answered_201() {
    for event in [acquire("k", "a", 60), acquire("k", "a", 60).key("once")] {
        let world = World::new();
        let client = client_that(&world.engine, |request| if request == 0 { AnswerLost } else { Answered(10) });
        let answer = world.reached_by(&client).send(&event).await;
        let shown = answer.shown(201);
        assert_eq!((world.engine.take_counts(), answer.is_replay()), ((0, 2), false));
        let remaining = shown["remainingMs"].as_u64().expect("a number");
        assert!((57_900..60_000).contains(&remaining), "a cold client waits two seconds: {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_is_recognised_and_not_made_twice() {
    for ways in [&[Answered(10), AnswerLost][..], &[Answered(10), AnswerLost, AnswerLost, AnswerLost]] {
        let world = faring(ways).await;
        let mut lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
        world.pass(5_000).await;
        world.engine.take_log();
        let began = world.clock.now();
        world.app.leases.renew(&mut lease, terms(10_000)).await.expect("renewed");
        let took = world.clock.now() - began;
        assert_eq!((world.engine.take_counts(), lease.renewals()), ((0, ways.len()), 1));
        assert_eq!(number(&world.row("k"), "renewals"), 1);
        assert_eq!(u128::from(10_000 - took), lease.remaining().as_millis());
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_is_released_by_one_request_more() {
    for world in [faring(&[Answered(10), AnswerLost]).await, faring(&[Answered(10), AnswerLost]).await] {
        let lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
        world.engine.take_log();
        world.app.leases.release(lease).await.expect("released");
        assert_eq!(world.engine.take_counts(), (0, 2));
        assert_eq!(world.row("k").get("holder"), None);
    }
    let world = faring(&[Answered(10), AnswerLost]).await;
    let token = world.acquired("k", "a", 60).await;
    world.engine.take_log();
    assert_eq!((world.send(&release("k", token)).await.status, world.engine.take_counts()), (204, (0, 2)));
}

#[tokio::test(start_paused = true)]
async fn a_transaction_in_flight_is_no_lost_lease() {
    let world = faring(&[InTransaction, Answered(10), InTransaction, InTransaction, Answered(10), InTransaction]).await;
    let mut lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
    world.app.leases.renew(&mut lease, terms(10_000)).await.expect("renewed");
    world.app.leases.release(lease).await.expect("released");
    assert_eq!(world.engine.take_counts(), (0, 3), "a refused one is not asked of the engine");
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_shorter_renewal_is_not_answered_is_believed_no_longer_than_that() {
    let ways: &[Way] = &[Answered(10), AnswerLost, AnswerLost, AnswerLost, AnswerLost, AnswerLost, AnswerLost];
    let world = faring(ways).await;
    let mut lease = world.app.leases.acquire("k", "a", terms(60_000)).await.expect("acquired");
    let unknown = world.app.leases.in_call(&call(1)).renew(&mut lease, terms(2_000)).await;
    assert!(is_unknown(&unknown), "{unknown:?}");
    assert!(lease.remaining() <= Duration::from_secs(1), "it was applied, and ends then: {:?}", lease.remaining());
    world.pass(3_000).await;
    assert!(lease.remaining().is_zero());
    world.app.leases.acquire("k", "b", terms(2_000)).await.expect("it has ended");

    // A renewal that ends later does no harm.
    let world = faring(ways).await;
    let mut lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
    world.app.leases.in_call(&call(1)).renew(&mut lease, terms(60_000)).await.expect_err("no answer");
    assert!(lease.remaining() > Duration::from_secs(8), "{:?}", lease.remaining());
}

#[tokio::test(start_paused = true)]
async fn an_acquire_with_a_key_whose_outcome_stayed_unknown_is_found_out_by_repeating_it() {
    let world = World::new();
    let deaf = world.reached_by(&client_that(&world.engine, |_| AnswerLost));
    let event = acquire("k", "a", 60).key("once");
    let unknown = deaf.send(&event).await.says(504, "outcome_unknown");
    assert!(unknown["detail"].as_str().is_some_and(|detail| detail.contains("same Idempotency-Key")), "{unknown}");
    let again = world.send(&event).await;
    let shown: Value = again.shown(201);
    assert!(again.is_replay() && shown["remainingMs"].as_u64() < Some(60_000), "{shown}");
    assert_eq!(number(&world.row("k"), "token").unsigned_abs(), token(&shown));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_said_to_be_reused_and_a_lease_held_also_after_a_lost_answer() {
    let world = World::new();
    world.send(&acquire("k", "a", 60).key("once")).await.shown(201);
    for (event, status, code) in
        [(acquire("k", "b", 60).key("once"), 422, "idempotency_key_reused"), (acquire("k", "b", 60), 409, "lease_held")]
    {
        let world = faring_on(&world, &[AnswerLost, Dropped]).await;
        world.send(&event).await.says(status, code);
    }
}
