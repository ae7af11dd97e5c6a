//! Every route and every answer of `lease`. An acquire with an idempotency key gives the same lease while it is held, then a new
//! one.

use super::world::{SKEW, World, acquire, release, renew, shown_lease, token};
use crate::harness::answers::Answer;
use crate::harness::events::Event;
use serde_json::{Value, json};

fn tag(token: u64, renewals: u64) -> String {
    format!("\"{token}.{renewals}\"")
}

/// A lease as it is shown where everything of it is known.
fn lease(holder: &str, token: u64, renewals: u64, (ends, remaining): (String, u64)) -> Value {
    json!({
        "leaseKey": "k",
        "holder": holder,
        "token": token,
        "renewals": renewals,
        "expiresAt": ends,
        "remainingMs": remaining,
    })
}

/// Asserts that the answer shows this lease, with its tag.
fn assert_shows(answer: &Answer, status: i64, lease: &Value) {
    assert_eq!(answer.shown(status), *lease);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.etag(), tag(token(lease), lease["renewals"].as_u64().expect("a number")));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_acquired_shown_renewed_and_released() {
    let world = World::new();
    world.send(&shown_lease("k")).await.says(404, "lease_not_found");
    let acquired = world.send(&acquire("k", "a", 60)).await;
    let token = token(&acquired.json());
    assert_shows(&acquired, 201, &lease("a", token, 0, (world.clock.shows(60_000), 60_000)));
    assert_eq!(acquired.header("location"), Some("/leases/k"));
    let ends = world.clock.shows(60_000);
    world.pass(10_000).await;
    // Another reader has a clock of its own, so the skew is taken off.
    assert_shows(&world.send(&shown_lease("k")).await, 200, &lease("a", token, 0, (ends, 50_000 - SKEW)));
    let renewed = world.send(&renew("k", token, 60)).await;
    assert_shows(&renewed, 200, &lease("a", token, 1, (world.clock.shows(60_000), 60_000)));
    let released = world.send(&release("k", token)).await;
    assert_eq!((released.status, &released.body, released.header("etag")), (204, &None, None));
    world.send(&shown_lease("k")).await.says(404, "lease_not_found");
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_refused_to_all_also_to_its_holder() {
    let world = World::new();
    world.acquired("k", "a", 60).await;
    let until = world.clock.shows(60_000);
    for (passed, seconds) in [(0, "62"), (500, "61"), (59_500, "2"), (1_000, "1")] {
        world.pass(passed).await;
        for holder in ["a", "b"] {
            let answer = world.send(&acquire("k", holder, 60)).await;
            let held = answer.says(409, "lease_held");
            assert_eq!((&held["holder"], &held["until"]), (&json!("a"), &json!(until)));
            assert_eq!(answer.header("retry-after"), Some(seconds), "a millisecond after its end and the skew");
            answer.check_problem();
        }
    }
    world.acquired("other", "a", 60).await;
    world.pass(1).await;
    world.acquired("k", "a", 60).await;
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_lease_honours_its_tags() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let look = |name: &str, value: &str| shown_lease("k").header(name, value);
    let unchanged = world.send(&look("if-none-match", &tag(token, 0))).await;
    assert_eq!((unchanged.status, &unchanged.body, unchanged.etag()), (304, &None, tag(token, 0).as_str()));
    world.send(&look("if-none-match", &tag(token, 1))).await.shown(200);
    let among_others = look("if-none-match", &format!("\"x\", W/{}", tag(token, 0)));
    assert_eq!(world.send(&among_others).await.status, 304);
    world.send(&look("if-match", &tag(token, 0))).await.shown(200);
    world.send(&look("if-match", "*")).await.shown(200);
    let stale = world.send(&look("if-match", &tag(token, 1))).await;
    assert_eq!(
        (stale.says(412, "version_conflict")["currentVersion"].as_u64(), stale.etag()),
        (Some(token), &*tag(token, 0))
    );
    world.pass(1).await;
    world.send(&renew("k", token, 60)).await.shown(200);
    world.send(&look("if-none-match", &tag(token, 0))).await.shown(200);
    world.send(&release("k", token)).await;
    for (name, value) in [("if-none-match", tag(token, 1)), ("if-match", "*".to_owned())] {
        world.send(&look(name, &value)).await.says(404, "lease_not_found");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_may_make_the_lease_end_later_or_earlier() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    world.engine.take_log();
    for (seconds, renewals) in [(120, 1), (60, 2), (61, 3), (1, 4)] {
        let renewed = world.send(&renew("k", token, seconds)).await;
        let shown = lease("a", token, renewals, (world.clock.shows(seconds * 1000), seconds * 1000));
        assert_shows(&renewed, 200, &shown);
        assert_eq!(world.engine.take_counts(), (1, 1), "{seconds} s");
        assert_eq!(world.send(&shown_lease("k")).await.shown(200)["expiresAt"], shown["expiresAt"]);
        world.engine.take_log();
    }
    world.pass(2_001).await;
    world.acquired("k", "b", 60).await;
}

#[tokio::test(start_paused = true)]
async fn under_an_old_or_a_future_token_nothing_is_written() {
    let world = World::new();
    let first = world.acquired("k", "a", 60).await;
    world.send(&release("k", first)).await;
    let second = world.acquired("k", "b", 60).await;
    for other in [first, second + 1, 1, (1 << 53) - 1] {
        // Without a tag a renewal looks first.
        for (event, untagged) in [(renew("k", other, 60), (1, 0)), (release("k", other), (0, 1))] {
            world.refused_for(&event, 409, "fenced", untagged).await;
            world.refused_for(&event.clone().header("if-match", "*"), 409, "fenced", untagged).await;
            world.refused_for(&event.header("if-match", &tag(other, 0)), 409, "fenced", (0, 1)).await;
        }
    }
    world.send(&release("k", second)).await;
    world.pass(1_000).await;
    let late = renew("k", second, 60);
    for (tag, counts) in [(None, (1, 0)), (Some("*".to_owned()), (1, 0)), (Some(tag(second, 0)), (0, 1))] {
        let event = tag.map_or(late.clone(), |tag| late.clone().header("if-match", &tag));
        world.refused_for(&event, 409, "fenced", counts).await;
    }
    world.refused_for(&release("k", second + 1), 409, "fenced", (0, 1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_and_a_release_honour_if_match() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let renewed_at = |tag: &str, seconds| renew("k", token, seconds).header("if-match", tag);
    let released_at = |tag: &str| release("k", token).header("if-match", tag);
    let first = world.send(&renewed_at(&tag(token, 0), 90)).await;
    assert_eq!((first.shown(200)["renewals"].as_u64(), first.etag()), (Some(1), &*tag(token, 1)));
    world.pass(1).await;
    for stale in [tag(token, 0), tag(token, 2)] {
        for event in [renewed_at(&stale, 90), released_at(&stale)] {
            // One write is refused. The answer shows the current lease.
            let problem = world.refused_for(&event, 412, "version_conflict", (0, 1)).await;
            assert_eq!(problem["currentVersion"], token);
            assert_eq!(world.send(&event).await.etag(), tag(token, 1));
        }
    }
    let of_another_acquire = tag(token + 1, 1);
    for event in [renewed_at(&of_another_acquire, 60), released_at(&of_another_acquire)] {
        world.send(&event).await.says(412, "version_conflict");
    }
    world.send(&renewed_at(&tag(token, 1), 10)).await.shown(200);
    world.send(&renewed_at("*", 90)).await.shown(200);
    for good in [tag(token, 3), tag(token, 3), "*".to_owned()] {
        assert_eq!(world.send(&released_at(&good)).await.status, 204);
    }
}

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
async fn the_same_acquire_gets_the_lease_as_it_stands_after_a_renewal_and_another_one_after_its_end_or_its_release() {
    let world = World::new();
    let first = token(&world.send(&keyed()).await.shown(201));
    world.pass(30_000).await;
    world.send(&renew("k", first, 60)).await.shown(200);
    let again = world.send(&keyed()).await;
    let shown = again.shown(201);
    assert_eq!((&shown["renewals"], &shown["token"], again.is_replay()), (&1.into(), &first.into(), true));
    assert_eq!(
        (&shown["expiresAt"], &shown["remainingMs"]),
        (&world.clock.shows(60_000).into(), &(60_000 - SKEW).into())
    );
    world.pass(60_000 + SKEW + 1).await;
    let second = world.send(&keyed()).await;
    assert!(!second.is_replay() && token(&second.shown(201)) > first);
    world.send(&release("k", token(&second.json()))).await;
    let third = world.send(&keyed()).await;
    assert!(!third.is_replay() && token(&third.shown(201)) > token(&second.json()));
    assert_eq!(world.send(&shown_lease("k")).await.shown(200)["token"], third.json()["token"]);
}
