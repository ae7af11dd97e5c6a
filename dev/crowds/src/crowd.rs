//! Measures requests and time per success for many writers that begin at once on one item and write once each.
//!
//! Time is the paused clock of tokio, and all randomness comes from the seed. The network takes exactly its hops. All
//! other work takes no time. So a seed gives the same numbers on every machine.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::table::{self, ALLOWANCE, Counter, KEY, NAME};
use crate::wire::{chance, paused, store};
use aws_sdk_dynamodb::Client;
use fencepost_test::Units;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A way to change an item among other writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// `update_with_retry`, with the default policy.
    Fencepost,
    /// The same by a table that [remembers items](fencepost::Table::remembering_items).
    Remembering,
    /// Read and write conditionally. After a conflict, wait between 0 and 2^n x 25 ms, at most 1 s, and read again.
    FullJitter,
    /// Read and write conditionally. After a conflict, read again at once.
    AtOnce,
}

/// The result of one crowd.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The requests of all writers, reads included.
    pub requests: u32,
    /// Their units.
    pub units: Units,
    /// The times of the acknowledged writers, shortest first.
    pub times: Vec<Duration>,
    /// The number of writers that gave up.
    pub gave_up: usize,
    /// The number in the item at the end.
    pub count: u64,
}

impl Outcome {
    /// The requests of all writers, divided by the number of acknowledged writers.
    #[must_use]
    pub fn requests_per_success(&self) -> f64 {
        f64::from(self.requests) / f64::from(u32::try_from(self.times.len()).unwrap_or(u32::MAX))
    }

    /// The mean time of the acknowledged writers.
    #[must_use]
    pub fn mean_time(&self) -> Duration {
        self.times.iter().sum::<Duration>() / u32::try_from(self.times.len().max(1)).unwrap_or(u32::MAX)
    }

    /// The time of the slowest acknowledged writer.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }
}

/// Lets `writers` write to one item at this distance at once, each by `strategy`. All randomness comes from `seed`.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn play(strategy: Strategy, writers: usize, hop: Duration, seed: u64) -> Outcome {
    paused(played(strategy, writers, 1, hop, seed))
}

/// The same with so many changes of each writer, one after the other.
#[must_use]
pub fn play_steadily(strategy: Strategy, writers: usize, changes: usize, hop: Duration, seed: u64) -> Outcome {
    paused(played(strategy, writers, changes, hop, seed))
}

async fn played(strategy: Strategy, writers: usize, changes: usize, hop: Duration, seed: u64) -> Outcome {
    let (db, begun) = (table::dynamo(seed, hop), Instant::now());
    let mut seeds = fastrand::Rng::with_seed(seed);
    let client = db.client_without_retries();
    let new_table = |rng| store(&client, begun, chance(rng)).table::<Counter>(NAME);
    table::create(&new_table(seeds.fork()), "one").await;
    let before = db.log().len();
    db.count_units();
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let crowd: Vec<_> = (0..writers)
        .map(|writer| {
            let table = new_table(seeds.fork());
            let (client, outcome) = (client.clone(), outcome.clone());
            let mut rng = fastrand::Rng::with_seed(seed ^ (writer as u64) << 32);
            let table = if strategy == Strategy::Remembering { table.remembering_items() } else { table };
            tokio::task::spawn_local(async move {
                for _ in 0..changes {
                    let begun = Instant::now();
                    let done = match strategy {
                        Strategy::Fencepost | Strategy::Remembering => table::raise(&table, "one").await,
                        Strategy::FullJitter => read_and_write(&client, |conflicts| jitter(&mut rng, conflicts)).await,
                        Strategy::AtOnce => read_and_write(&client, |_| Duration::ZERO).await,
                    };
                    let mut outcome = outcome.borrow_mut();
                    if done { outcome.times.push(begun.elapsed()) } else { outcome.gave_up += 1 }
                }
            })
        })
        .collect();
    for writer in crowd {
        writer.await.expect("no writer panics");
    }
    let mut outcome = outcome.take();
    let log = db.log();
    outcome.requests = u32::try_from(log.len() - before).unwrap_or(u32::MAX);
    outcome.units = log.units();
    outcome.times.sort();
    let row = db.engine().row(NAME, KEY, "one");
    outcome.count = row["count"]["N"].as_str().and_then(|count| count.parse().ok()).expect("a counter");
    outcome
}

/// Full jitter: the pause after so many conflicts.
pub(crate) fn jitter(rng: &mut fastrand::Rng, conflicts: u32) -> Duration {
    Duration::from_millis(rng.u64(0..=(25 << conflicts.min(6)).min(1000)))
}

/// The usual loop. It applies a change twice if an answer is lost. Here, no answer is lost.
pub(crate) async fn read_and_write(client: &Client, mut pause: impl FnMut(u32) -> Duration) -> bool {
    let begun = Instant::now();
    for conflicts in 0.. {
        if let Ok(read) = table::read(client).await
            && table::write(client, read).await.is_ok()
        {
            return true;
        }
        let pause = pause(conflicts);
        if begun.elapsed() + pause > ALLOWANCE {
            break;
        }
        sleep(pause).await;
    }
    false
}
