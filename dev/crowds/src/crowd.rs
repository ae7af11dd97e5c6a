//! Measures requests and time per success for many writers that begin at once on one item and write once each.
//!
//! Time is the paused clock of tokio, and all randomness comes from the seed. The network takes exactly its hops. All
//! other work takes no time. So a seed gives the same numbers on every machine.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::table::{self, ALLOWANCE, Counter, NAME};
use crate::wire::{Wire, paused};
use aws_sdk_dynamodb::Client;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A way to change an item among other writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// `update_with_retry`, with the default policy.
    Fencepost,
    /// Read and write conditionally. After a conflict, wait between 0 and 2^n x 25 ms, at most 1 s, and read again.
    FullJitter,
    /// Read and write conditionally. After a conflict, read again at once.
    AtOnce,
}

/// How the writers of a crowd come, and over which network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scene {
    /// All begin at once.
    InStep,
    /// One begins after the other, so many in a second.
    Stream(u32),
    /// All begin at once. The hops of the first one are ten times as long.
    OneSlow,
    /// All begin at once. Five answers of a hundred are lost.
    Losses,
}

/// The result of one crowd.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The requests of all writers, reads included.
    pub requests: u32,
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

/// Lets `writers` write to one item at this distance, each by `strategy`. All randomness comes from `seed`.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn play(strategy: Strategy, writers: usize, hop: Duration, seed: u64) -> Outcome {
    play_scene(Scene::InStep, strategy, writers, hop, seed)
}

/// The same in this scene.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn play_scene(scene: Scene, strategy: Strategy, writers: usize, hop: Duration, seed: u64) -> Outcome {
    paused(played(scene, strategy, writers, hop, seed))
}

async fn played(scene: Scene, strategy: Strategy, writers: usize, hop: Duration, seed: u64) -> Outcome {
    let wire = Wire::new(hop);
    let mut seeds = fastrand::Rng::with_seed(seed);
    table::create(&wire.store(seeds.fork()).table::<Counter>(NAME), "one").await;
    let _ = wire.take_requests();
    if scene == Scene::Losses {
        wire.lose_some(fastrand::Rng::with_seed(seed ^ 0x105E));
    }
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let crowd: Vec<_> = (0..writers)
        .map(|writer| {
            let wire = if scene == Scene::OneSlow && writer == 0 { wire.with_hop(hop * 10) } else { wire.clone() };
            let table = wire.store(seeds.fork()).table::<Counter>(NAME);
            let (client, outcome) = (wire.client(), outcome.clone());
            let after = match scene {
                Scene::Stream(a_second) => Duration::from_secs(writer as u64) / a_second,
                _ => Duration::ZERO,
            };
            let mut rng = fastrand::Rng::with_seed(seed ^ (writer as u64) << 32);
            tokio::task::spawn_local(async move {
                sleep(after).await;
                let begun = Instant::now();
                let done = match strategy {
                    Strategy::Fencepost => table::raise(&table, "one").await,
                    Strategy::FullJitter => {
                        let pause =
                            |conflicts: u32| Duration::from_millis(rng.u64(0..=(25 << conflicts.min(6)).min(1000)));
                        read_and_write(&client, begun, pause).await
                    }
                    Strategy::AtOnce => read_and_write(&client, begun, |_| Duration::ZERO).await,
                };
                let mut outcome = outcome.borrow_mut();
                if done { outcome.times.push(begun.elapsed()) } else { outcome.gave_up += 1 }
            })
        })
        .collect();
    for writer in crowd {
        writer.await.expect("no writer panics");
    }
    let mut outcome = outcome.take();
    outcome.requests = wire.take_requests();
    outcome.times.sort();
    outcome.count = wire.count("one");
    outcome
}

/// The usual loop. It applies a change twice if an answer is lost. Here, no answer is lost.
pub(crate) async fn read_and_write(client: &Client, begun: Instant, mut pause: impl FnMut(u32) -> Duration) -> bool {
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
