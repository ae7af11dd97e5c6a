//! Many callers that add to one item: all are acknowledged, the number is exact, and the cost of each add is bounded.

use crowds::adds::{Callers, at_once, one_after_another, steady};
use crowds::crowd::Outcome;
use std::time::Duration;

const HOP: Duration = Duration::from_millis(5);

/// Asserts that all were acknowledged and counted, within these requests each and this time.
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

/// With a window of 32, a round trip lets 32 of those through that know the same version. A hundred that act in step
/// and send again at once need 100 reads and 100 + 68 + 36 + 4 writes, which is 3.08 requests each. The pauses save a
/// few of the last ones.
#[test]
fn a_hundred_callers_with_a_store_each_add_at_once_at_about_what_the_window_allows() {
    assert_crowd(Callers::OwnStores, 100, 5, 3.1, Duration::from_millis(300));
}

/// The first refusal cannot tell a caller whether there are a hundred others or a thousand. So most of a thousand send in
/// vain twice before the first pause that is long enough: 1 read, 2 pairs of a stale write and a fresh one, and more.
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
