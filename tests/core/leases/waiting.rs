//! Waiting for a held lease, alone and with many: the looks at it, and the time until it is found free.

use super::{Sent, TRIP, reached};
use crate::harness::clients::Way;
use crate::leases::world::{SKEW, World, call, terms};
use fencepost::Error;
use fencepost::lease::{Lease, LeaseHeld};
use std::time::Duration;

/// Draws everything on this thread from a seed, which is printed.
fn seed() -> u64 {
    let given = std::env::var("FENCEPOST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("FENCEPOST_SEED={seed}");
    fastrand::seed(seed);
    seed
}

/// The same world reached by a waiter, and when its requests leave.
fn waiter(world: &World) -> (World, Sent) {
    reached(world, |_| Way::Answered(TRIP))
}

async fn wait(world: &World, length: u64, timeout: u64) -> Result<Lease, Error<LeaseHeld>> {
    let timeout = Duration::from_millis(timeout);
    world.app.leases.acquire_within("k", "waiter", terms(length), timeout).await
}

/// At most three looks in each length of the lease, and in all one more than two a length.
fn assert_few(looks: &Sent, length: u64, seed: u64) -> usize {
    let looks = looks.lock().expect("no panic");
    let lengths = looks.last().expect("one at least") / length + 1;
    for number in 0..lengths {
        let within = looks.iter().filter(|look| **look / length == number).count();
        assert!(within <= 3, "seed {seed}: {within} in one length of {length} ms: {looks:?}");
    }
    assert!(looks.len() as u64 <= 1 + 2 * lengths, "seed {seed}: {lengths} lengths of {length} ms: {looks:?}");
    looks.len()
}

#[tokio::test(start_paused = true)]
async fn after_a_holders_death_its_lease_is_acquired_within_the_skew_and_a_twentieth_of_its_end() {
    let seed = seed();
    for length in [1_000, 10_000, 60_000] {
        for number in 0..20 {
            let world = World::new();
            let lease = world.app.leases.acquire("k", "dead", terms(length)).await.expect("acquired");
            let ends = lease.expires_at().epoch_millis().expect("after 1970");
            // One comes early, others any time before or shortly after its end.
            let begins = if number == 0 { 0 } else { fastrand::u64(..length + SKEW) };
            world.pass(begins).await;
            let (waiting, looks) = waiter(&world);
            let acquired = wait(&waiting, length, 10 * length + 10 * SKEW).await.expect("acquired");
            let at = world.clock.now();
            assert!(ends + SKEW < at, "seed {seed}: not while it may be believed: {at} {ends}");
            // The timer is exact to a millisecond. An earlier look must be answered first.
            let latest = ends + SKEW + length / 20 + 2 * TRIP + 3;
            assert!(at <= latest, "seed {seed}: {} ms after {latest}, begun {begins} of {length}", at - latest);
            assert!(acquired.token().number() > lease.token().number());
            assert_few(&looks, length, seed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_free_is_acquired_by_one_request_and_one_that_is_not_by_none_after_the_timeout() {
    let world = World::new();
    let (waiting, looks) = waiter(&world);
    let lease = wait(&waiting, 10_000, 0).await.expect("acquired");
    assert_eq!(looks.lock().expect("no panic").len(), 1);
    let (waiting, looks) = waiter(&world);
    let began = world.clock.now();
    for timeout in [0, 1, 100] {
        let held = wait(&waiting, 10_000, timeout).await.expect_err("held");
        let Error::Refused(LeaseHeld { holder, until }) = held else { panic!("{held:?}") };
        assert_eq!((holder.as_str(), until), ("waiter", lease.expires_at()));
    }
    assert!(world.clock.now() - began <= 101 + 4 * TRIP);
    assert!(looks.lock().expect("no panic").len() <= 4, "{looks:?}");
}

/// The call has an end too: the earlier end counts. No look leaves too late for an answer, and none more often.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_call_ends_is_told_the_holder() {
    let seed = seed();
    let world = World::new();
    world.app.leases.acquire("k", "a", terms(900_000)).await.expect("acquired");
    for (length, lasts, timeout, times) in
        [(1, 1, 300, 20), (10, 10, 300, 10), (10, 10, 60, 1), (10, 10, 3_600, 1), (10, 25, 3_600, 1)]
    {
        for _ in 0..times {
            let (waiting, looks) = waiter(&world);
            let (began, timeout) = (world.clock.now(), Duration::from_secs(timeout));
            let leases = waiting.app.leases.in_call(&call(lasts));
            let waited = leases.acquire_within("k", "b", terms(length * 1_000), timeout).await;
            assert!(
                matches!(&waited, Err(Error::Refused(LeaseHeld { holder, .. })) if holder == "a"),
                "seed {seed}: {waited:?}"
            );
            assert!(world.clock.now() - began <= lasts * 1_000, "seed {seed}");
            assert_few(&looks, length * 1_000, seed);
        }
    }
}
