//! Writers that all begin at once on one item, each once: requests and time per success.
//!
//! Time is tokio's paused clock and all chance comes from the seed: the network takes exactly its hops, everything
//! else takes no time, and a seed gives the same numbers everywhere.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock, and writes as the loops compared with do")]

use crate::table::{self, ALLOWANCE, Counter, KEY, NAME};
use crate::wire::Wire;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Clock, Rng, Store};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// A way to make one change to an item that others change as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// `update_with_retry`, with the default policy.
    Fencepost,
    /// Read, write conditionally; after a conflict wait 2^n x 100 ms and read again, 5 times at most.
    Naive,
    /// Read, write conditionally; after a conflict wait between 0 and 2^n x 25 ms, 1 s at most, and read again.
    FullJitter,
}

/// How a crowd fared.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Requests of all writers, reads included.
    pub requests: u32,
    /// How long each writer took that was acknowledged, shortest first.
    pub times: Vec<Duration>,
    /// Writers that gave up.
    pub gave_up: usize,
    /// What the item holds at the end.
    pub count: u64,
}

impl Outcome {
    /// Requests of all writers by the number of those that were acknowledged.
    #[must_use]
    pub fn requests_per_success(&self) -> f64 {
        f64::from(self.requests) / f64::from(u32::try_from(self.times.len()).unwrap_or(u32::MAX))
    }

    /// The time that those took on average who were acknowledged.
    #[must_use]
    pub fn mean_time(&self) -> Duration {
        self.times.iter().sum::<Duration>() / u32::try_from(self.times.len().max(1)).unwrap_or(u32::MAX)
    }

    /// The time of the slowest of them.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }
}

/// Lets `writers` loose on one item at this distance, each by `strategy`, all chance from `seed`.
///
/// # Panics
/// Where the engine fails, which it does not.
#[must_use]
pub fn play(strategy: Strategy, writers: usize, hop: Duration, seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, played(strategy, writers, hop, seed))
}

async fn played(strategy: Strategy, writers: usize, hop: Duration, seed: u64) -> Outcome {
    let wire = Wire::new(hop);
    let start = Instant::now();
    let base = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    let mut seeds = fastrand::Rng::with_seed(seed);
    let mut table = || {
        let chance = Mutex::new(seeds.fork());
        let random = move || chance.lock().expect("no panic while drawing").u64(..);
        Store::new(&wire.client())
            .with_clock(Clock::new(move || base + start.elapsed()))
            .with_rng(Rng::new(random))
            .table::<Counter>(NAME)
    };
    table::create(&table(), "one").await;
    let _ = wire.take_requests();
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let crowd: Vec<_> = (0..writers)
        .map(|writer| {
            let (table, client, outcome) = (table(), wire.client(), outcome.clone());
            let mut rng = fastrand::Rng::with_seed(seed ^ (writer as u64) << 32);
            tokio::task::spawn_local(async move {
                let begun = Instant::now();
                let done = match strategy {
                    Strategy::Fencepost => table::raise(&table, "one").await,
                    Strategy::Naive => {
                        let pause = |conflicts| Duration::from_millis(100_u64 << conflicts);
                        read_and_write(&client, begun, 5, pause).await
                    }
                    Strategy::FullJitter => {
                        let pause =
                            |conflicts: u32| Duration::from_millis(rng.u64(0..=(25 << conflicts.min(6)).min(1000)));
                        read_and_write(&client, begun, u32::MAX, pause).await
                    }
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
    outcome.count = read(&wire.client()).await.1;
    outcome
}

/// The usual loop. It applies a change twice when an answer is lost; here none is.
async fn read_and_write(client: &Client, begun: Instant, retries: u32, mut pause: impl FnMut(u32) -> Duration) -> bool {
    for conflicts in 0..=retries {
        let (version, count) = read(client).await;
        let written = client
            .update_item()
            .table_name(NAME)
            .key(KEY, AttributeValue::S("one".to_owned()))
            .update_expression("SET #count = :count, #version = :next")
            .condition_expression("#version = :version")
            .expression_attribute_names("#count", "count")
            .expression_attribute_names("#version", "_version")
            .expression_attribute_values(":count", AttributeValue::N((count + 1).to_string()))
            .expression_attribute_values(":next", AttributeValue::N((version + 1).to_string()))
            .expression_attribute_values(":version", AttributeValue::N(version.to_string()));
        if Box::pin(written.send()).await.is_ok() {
            return true;
        }
        let pause = pause(conflicts);
        if conflicts == retries || begun.elapsed() + pause > ALLOWANCE {
            break;
        }
        sleep(pause).await;
    }
    false
}

/// The version and the number, by a strongly consistent read.
async fn read(client: &Client) -> (u64, u64) {
    let read = client.get_item().table_name(NAME).key(KEY, AttributeValue::S("one".to_owned())).consistent_read(true);
    let item = Box::pin(read.send()).await.expect("an answer").item.expect("an item");
    let number = |name: &str| item[name].as_n().expect("a number").parse().expect("a whole one");
    (number("_version"), number("count"))
}
