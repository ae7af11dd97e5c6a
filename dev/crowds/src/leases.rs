//! Measures many callers that wait for the lease of one key. Time is virtual, as in [`crate::crowd`].
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::table::LEASES;
use crate::wire::{Wire, paused};
use fencepost::lease::LeaseTerms;
use std::cell::RefCell;
use std::rc::Rc;
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

/// Lets [`WAITERS`] callers acquire one key at once. Each does its [`WORK`] and releases the lease.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn waiters(hop: Duration, seed: u64) -> Wait {
    paused(async move {
        let (wire, mut seeds) = (Wire::new(hop), fastrand::Rng::with_seed(seed));
        let begun = Instant::now();
        let at_work = Rc::new(RefCell::new((0, Wait::default())));
        let waiters: Vec<_> = (0..WAITERS)
            .map(|waiter| {
                let (leases, at_work) = (wire.store(seeds.fork()).leases(LEASES), at_work.clone());
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
        wait.cost = Cost { requests: wire.take_requests(), time: begun.elapsed() };
        wait
    })
}
