//! Many writers on one item: all are acknowledged, at a bounded number of requests each.

use aws_sdk_dynamodb::types::AttributeValue;
use crowds::adds::{Callers, at_once, one_after_another, steady};
use crowds::crowd::{Outcome, Strategy, play};
use crowds::table::{KEY, NAME};
use crowds::wire::{Loss, Wire};
use fencepost::{Record, Rng, Settings, Store};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const HOP: Duration = Duration::from_millis(5);

#[test]
fn a_hundred_writers_on_one_item_are_all_acknowledged_in_turn() {
    for seed in 0..6 {
        let outcome = play(Strategy::Fencepost, 100, HOP, seed);
        let per_success = outcome.requests_per_success();
        println!(
            "seed {seed}: {per_success:.2} requests per success, mean {} ms, longest {} ms (virtual)",
            outcome.mean_time().as_millis(),
            outcome.longest().as_millis(),
        );
        assert_eq!((outcome.times.len(), outcome.gave_up, outcome.count), (100, 0, 100), "seed {seed}");
        assert!(per_success <= 5.5, "seed {seed}: {per_success:.2} requests per success");
        assert!(outcome.longest() <= Duration::from_millis(1_500), "seed {seed}: {:?}", outcome.longest());
    }
}

#[test]
fn a_few_writers_who_meet_do_not_wait_for_a_crowd() {
    for (writers, requests, millis) in [(1, 2.0, 20), (2, 3.0, 30), (3, 3.7, 40), (5, 4.2, 55), (10, 4.6, 90)] {
        for seed in 0..20 {
            let outcome = play(Strategy::Fencepost, writers, HOP, seed);
            assert_eq!((outcome.times.len(), outcome.gave_up), (writers, 0), "{writers} writers, seed {seed}");
            assert!(outcome.requests_per_success() <= requests, "{writers} writers, seed {seed}: {outcome:?}");
            assert!(
                outcome.mean_time() <= Duration::from_millis(millis),
                "{writers} writers, seed {seed}: {outcome:?}"
            );
        }
    }
}

/// A counter that other programs change too. So its writers have no line.
#[derive(Clone, Serialize, Deserialize, Debug)]
struct Shared {
    count: u64,
}

impl Record for Shared {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["count"];
    const SETTINGS: Settings = Settings::without_ttl().shared_with_versioned_writers().swept();
}

/// Our second attempt is refused. This answer is lost. Five versions pass until its resend is refused too: fewer than
/// two in five round trips, since the wait for the lost answer is a part of the time.
#[tokio::test(start_paused = true)]
async fn commits_during_the_wait_for_a_lost_answer_are_not_taken_for_a_crowd() {
    let wire = Wire::new(HOP);
    // Each pause is two fifths of its bound: 100 ms after the first conflict, 1.4 s in a crowd.
    let draws = AtomicU64::new(u64::MAX / 5 * 2);
    let rng = Rng::new(move || draws.fetch_add(1, Relaxed));
    let table = Store::new(&wire.client()).with_rng(rng).table::<Shared>(NAME);
    table.create("one", &Shared { count: 0 }).await.expect("a free key");
    let begun = Instant::now();
    let at = |millis| sleep_until(begun + Duration::from_millis(millis));
    let others = async {
        for millis in [7, 55, 135, 165, 195, 225] {
            at(millis).await;
            let write = wire.client().update_item().table_name(NAME).key(KEY, AttributeValue::S("one".to_owned()));
            let write = write.update_expression("SET #v = #v + :one").expression_attribute_names("#v", "_version");
            let write = write.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
            Box::pin(write.send()).await.expect("applied");
        }
    };
    let loss = async {
        at(126).await;
        wire.lose_next(Loss::Silent);
    };
    let plus_one = |shared: &Shared| Ok::<_, Infallible>(Some(Shared { count: shared.count + 1 }));
    let ours = async { (table.update_with_retry("one", plus_one).await.is_ok(), begun.elapsed()) };
    let ((raised, took), (), ()) = tokio::join!(ours, others, loss);
    assert!(raised && took <= Duration::from_millis(300), "{took:?}");
}

/// Asserts that all changes were acknowledged and counted, within this time and number of requests each.
fn assert_cost(what: &str, outcome: &Outcome, (callers, before): (usize, u64), requests: f64, within: Duration) {
    let (each, longest) = (outcome.requests_per_success(), outcome.longest());
    println!("{what}: {each:.3} requests each, mean {:?}, longest {longest:?} (virtual)", outcome.mean_time());
    assert_eq!((outcome.times.len(), outcome.gave_up), (callers, 0), "{what}");
    assert_eq!(outcome.count, callers as u64 + before, "{what}");
    assert!(each <= requests, "{what}: {each:.3} requests each");
    assert!(longest <= within, "{what}: {longest:?}");
}

fn assert_crowd(callers: Callers, count: usize, seeds: u64, requests: f64, within: Duration) {
    for seed in 0..seeds {
        let what = format!("{count} callers, {callers:?}, seed {seed}");
        assert_cost(&what, &at_once(callers, count, HOP, seed), (count, 0), requests, within);
    }
}

#[test]
fn a_hundred_callers_of_one_store_add_at_once_for_less_than_three_requests_each() {
    assert_crowd(Callers::OneStore, 100, 5, 2.8, Duration::from_millis(150));
}

#[test]
fn a_thousand_callers_of_one_store_add_at_once_within_two_seconds() {
    assert_crowd(Callers::OneStore, 1000, 1, 4.0, Duration::from_secs(2));
}

/// With a window of 32, one round trip admits 32 adds that know the same version. A hundred in step that send again at
/// once need 100 reads and 100 + 68 + 36 + 4 writes, or 3.08 requests each. The pauses save a few of the last ones.
#[test]
fn a_hundred_callers_with_a_store_each_add_at_once_at_about_what_the_window_allows() {
    assert_crowd(Callers::OwnStores, 100, 5, 3.1, Duration::from_millis(300));
}

/// The first refusal looks the same for a hundred callers and for a thousand. So most of a thousand fail twice before
/// their first sufficient pause: 1 read, 2 pairs of a stale write and a fresh one, and more.
#[test]
fn a_thousand_callers_with_a_store_each_add_at_once_at_six_requests_each_at_most() {
    assert_crowd(Callers::OwnStores, 1000, 1, 6.0, Duration::from_secs(4));
}

#[test]
fn a_store_that_knows_the_item_adds_with_one_request() {
    let outcome = one_after_another(100, HOP, 1);
    assert_cost("one after another", &outcome, (100, 1), 1.1, 2 * HOP);
}

#[test]
fn two_hundred_adds_a_second_cost_one_request_each_for_as_long_as_they_go_on() {
    let outcome = steady(200, Duration::from_secs(10), HOP, 0);
    let count = outcome.times.len();
    assert!((1_990..=2_000).contains(&count), "{count}");
    assert_cost("200 a second", &outcome, (count, 1), 1.1, 4 * HOP);
}
