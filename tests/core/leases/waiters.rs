//! Those who wait for one lease: all of them get it, one after the other, soon and without many requests.

use crowds::leases::{WAITERS, cycles, lost_acquire, succession, waiters};
use crowds::wire::Loss;
use fencepost::lease::LeaseTerms;
use std::ops::Range;
use std::time::Duration;

const HOP: Duration = Duration::from_millis(5);

/// `FENCEPOST_SEED` plays one alone.
fn seeds() -> Range<u64> {
    let Ok(seed) = std::env::var("FENCEPOST_SEED") else { return 0..25 };
    let seed = seed.parse().expect("a number");
    seed..seed + 1
}

#[test]
fn twenty_who_wait_for_one_lease_all_get_it_within_3_seconds_and_100_requests() {
    for seed in seeds() {
        let wait = waiters(HOP, seed);
        println!("seed {seed}: {} requests, {} ms (virtual)", wait.cost.requests, wait.cost.time.as_millis());
        assert_eq!((wait.tokens.len(), wait.overlaps), (WAITERS, 0), "seed {seed}");
        assert!(wait.tokens.is_sorted_by(|earlier, later| earlier < later), "seed {seed}: {:?}", wait.tokens);
        assert!(wait.cost.requests <= 100, "seed {seed}: {:?}", wait.cost);
        assert!(wait.cost.time <= Duration::from_secs(3), "seed {seed}: {:?}", wait.cost);
    }
}

#[test]
fn acquire_and_release_cost_two_requests_and_two_round_trips() {
    let cost = cycles(10, HOP);
    assert_eq!((cost.requests, cost.time), (20, HOP * 4 * 10));
}

#[test]
fn an_acquire_whose_answer_is_lost_is_known_one_request_later() {
    // A broken connection is followed by another send at once, and silence by a hedge after 150 ms.
    for (loss, time) in [(Loss::Broken, HOP * 4), (Loss::Silent, HOP * 2 + Duration::from_millis(150))] {
        for seed in seeds() {
            let cost = lost_acquire(loss, HOP, seed);
            assert_eq!(cost.requests, 2, "{loss:?}, seed {seed}");
            assert_eq!(cost.time, time, "{loss:?}, seed {seed}");
        }
    }
}

#[test]
fn after_a_holders_death_the_next_one_has_its_lease_as_soon_as_it_is_free() {
    for seed in seeds() {
        let next = succession(HOP, seed);
        let round_trip = HOP * 2 + Duration::from_millis(1);
        assert!(next.after_free <= LeaseTerms::LENGTH / 20 + round_trip, "seed {seed}: {next:?}");
        assert!(next.after_death > next.after_free, "seed {seed}: {next:?}");
    }
}
