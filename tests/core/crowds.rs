//! A hundred writers on one item: all are acknowledged, and how many requests that takes.

use bench::crowd::{Strategy, play};
use std::time::Duration;

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
