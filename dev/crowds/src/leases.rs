//! Measures leases: the cost of a cycle, many waiting callers for one key, an acquire with a lost answer and the death
//! of a holder.
//!
//! Time is virtual, as in [`crate::crowd`]. Every client is separate.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::table::LEASES;
use crate::wire::{Loss, Wire, paused};
use fencepost::lease::{Lease, LeaseTerms, Leases};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The number of callers in wait for one key.
pub const WAITERS: usize = 20;
/// The time of each one's work under the lease.
pub const WORK: Duration = Duration::from_millis(20);
/// The length of the lease for which they wait.
pub const WAITED_FOR: Duration = Duration::from_secs(1);

const KEY: &str = "one";
const FOR_EVER: Duration = Duration::from_hours(1);

/// The cost of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// The requests of all clients.
    pub requests: u32,
    /// The time from the first request to the last answer.
    pub time: Duration,
}

/// The result for the callers that waited for one key.
#[derive(Clone, Default, Debug)]
pub struct Wait {
    /// The cost of all of them together.
    pub cost: Cost,
    /// The tokens of the callers, in the order of their work.
    pub tokens: Vec<u64>,
    /// The number of callers that began to work while another one was working.
    pub overlaps: usize,
}

/// The time without a holder after the death of a holder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Succession {
    /// The time from the death until another caller is told that it has the lease.
    pub after_death: Duration,
    /// The part of this time after the end of the lease and the clock skew.
    pub after_free: Duration,
}

/// Acquires and releases a lease `count` times.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn cycles(count: u32, hop: Duration) -> Cost {
    paused(async move {
        let world = World::new(hop, 0);
        let leases = world.leases();
        let begun = Instant::now();
        for _ in 0..count {
            let lease = acquired(&leases).await;
            leases.release(lease).await.expect("released");
        }
        Cost { requests: world.wire.take_requests(), time: begun.elapsed() }
    })
}

/// Lets [`WAITERS`] callers acquire one key at once. Each does its [`WORK`] and releases the lease.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn waiters(hop: Duration, seed: u64) -> Wait {
    paused(async move {
        let world = World::new(hop, seed);
        let begun = Instant::now();
        let at_work = Rc::new(RefCell::new((0, Wait::default())));
        let waiters: Vec<_> = (0..WAITERS)
            .map(|waiter| {
                let (leases, at_work) = (world.leases(), at_work.clone());
                tokio::task::spawn_local(async move {
                    let terms = LeaseTerms::new(WAITED_FOR).expect("long enough");
                    let holder = format!("waiter-{waiter}");
                    let lease = leases.acquire_within(KEY, &holder, terms, FOR_EVER);
                    let lease = lease.await.expect("acquired in the end");
                    {
                        let (others, wait) = &mut *at_work.borrow_mut();
                        wait.overlaps += *others;
                        wait.tokens.push(lease.token().number());
                        *others += 1;
                    }
                    sleep(WORK).await;
                    at_work.borrow_mut().0 -= 1;
                    leases.release(lease).await.expect("released");
                })
            })
            .collect();
        for waiter in waiters {
            waiter.await.expect("no waiter panics");
        }
        let mut wait = at_work.take().1;
        wait.cost = Cost { requests: world.wire.take_requests(), time: begun.elapsed() };
        wait
    })
}

/// Acquires a lease on a connection that has carried an answer before, and loses the answer.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn lost_acquire(loss: Loss, hop: Duration, seed: u64) -> Cost {
    paused(async move {
        let world = World::new(hop, seed);
        let leases = world.leases();
        let lease = acquired(&leases).await;
        leases.release(lease).await.expect("released");
        let _ = world.wire.take_requests();
        world.wire.lose_next(loss);
        let begun = Instant::now();
        acquired(&leases).await;
        Cost { requests: world.wire.take_requests(), time: begun.elapsed() }
    })
}

/// Lets a holder work under a lease of the default length and renew it. The holder dies at a random moment, while
/// another caller waits.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn succession(hop: Duration, seed: u64) -> Succession {
    paused(async move {
        let world = World::new(hop, seed);
        let (holder, other) = (world.leases(), world.leases());
        let dies_after = LeaseTerms::LENGTH.mul_f64(2.0 + 2.0 * world.seeds.lock().expect("no panic").f64());
        let holding = tokio::task::spawn_local(async move {
            let terms = LeaseTerms::default();
            let held = holder.while_held(KEY, "holder", terms, |_| sleep(FOR_EVER));
            drop(held.await);
        });
        sleep(hop * 4).await;
        let waits_since = Instant::now();
        let waiting = tokio::task::spawn_local(async move {
            let next = other.acquire_within(KEY, "next", LeaseTerms::default(), FOR_EVER);
            next.await.expect("acquired in the end");
            Instant::now()
        });
        sleep(dies_after.saturating_sub(waits_since.elapsed())).await;
        holding.abort();
        let died = Instant::now();
        let looks = world.leases();
        let stored = looks.get(KEY).await.expect("an answer").expect("a lease");
        let until = fencepost::Timestamp::from_epoch_millis(stored.expires_at).expect("a moment");
        let free = Instant::now() + looks.free_in(until);
        let next = waiting.await.expect("no panic");
        Succession { after_death: next - died, after_free: next.saturating_duration_since(free) }
    })
}

/// The engine with the settings for its clients.
struct World {
    wire: Wire,
    seeds: Mutex<fastrand::Rng>,
}

impl World {
    fn new(hop: Duration, seed: u64) -> Self {
        let seeds = Mutex::new(fastrand::Rng::with_seed(seed));
        World { wire: Wire::new(hop), seeds }
    }

    /// The leases of one new client.
    fn leases(&self) -> Leases {
        self.wire.store(self.seeds.lock().expect("no panic while drawing").fork()).leases(LEASES)
    }
}

async fn acquired(leases: &Leases) -> Lease {
    leases.acquire(KEY, "holder", LeaseTerms::default()).await.expect("acquired")
}
