//! A hundred writers on one item: all are acknowledged, and how many requests that takes.

use aws_sdk_dynamodb::types::AttributeValue;
use crowds::crowd::{Strategy, play};
use crowds::table::{Counter, KEY, NAME, create, raise};
use crowds::wire::{Loss, Wire};
use fencepost::{Rng, Store};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const HOP: Duration = Duration::from_millis(5);

#[test]
fn a_hundred_writers_on_one_item_are_all_acknowledged_at_six_requests_each_at_most() {
    for seed in 0..6 {
        let outcome = play(Strategy::Fencepost, 100, HOP, seed);
        let per_success = outcome.requests_per_success();
        println!(
            "seed {seed}: {per_success:.2} requests per success, mean {} ms, longest {} ms (virtual)",
            outcome.mean_time().as_millis(),
            outcome.longest().as_millis(),
        );
        assert_eq!((outcome.times.len(), outcome.gave_up, outcome.count), (100, 0, 100), "seed {seed}");
        assert!(per_success <= 6.0, "seed {seed}: {per_success:.2} requests per success");
    }
}

#[test]
fn a_few_writers_who_meet_do_not_wait_for_a_crowd() {
    for (writers, requests, millis) in [(1, 2.0, 20), (2, 2.5, 150), (5, 4.0, 300), (10, 5.5, 1000)] {
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

/// One wins, and one more commits during the first pause of the third, however short that is.
#[test]
fn three_writers_are_never_taken_for_a_crowd() {
    for seed in 0..300 {
        let longest = play(Strategy::Fencepost, 3, HOP, seed).longest();
        assert!(longest <= Duration::from_millis(350), "seed {seed}: {longest:?}");
    }
}

/// Our second attempt is refused, and that answer is lost. Five versions pass until its resend is refused too: fewer than
/// two in five round trips, since the wait for the lost answer is part of that time.
#[tokio::test(start_paused = true)]
async fn commits_during_the_wait_for_a_lost_answer_are_not_taken_for_a_crowd() {
    let wire = Wire::new(HOP);
    // Each pause is two fifths of its bound: 100 ms after the first conflict, 1.4 s in a crowd.
    let draws = AtomicU64::new(u64::MAX / 5 * 2);
    let rng = Rng::new(move || draws.fetch_add(1, Relaxed));
    let table = Store::new(&wire.client()).with_rng(rng).table::<Counter>(NAME);
    create(&table, "one").await;
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
    let ours = async { (raise(&table, "one").await, begun.elapsed()) };
    let ((raised, took), (), ()) = tokio::join!(ours, others, loss);
    assert!(raised && took <= Duration::from_millis(300), "{took:?}");
}
