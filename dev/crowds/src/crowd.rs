//! Measures what the changes of one item by many callers cost: requests, units and time.
//!
//! Time is the paused clock of tokio, and all randomness comes from the seed. The network takes exactly its hops. All
//! other work takes no time. So a seed gives the same numbers on every machine.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock, and writes as the loop compared with does")]

use crate::world::{ALLOWANCE, DEVICE_KEY, DEVICES, Hot, call, dynamo, paused, store};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::Table;
use fencepost_test::{Capacity, Units};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A way to raise the number of the item by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// `update_with_retry`, with the default policy.
    Update,
    /// The same by a table that [remembers items](fencepost::Table::remembering_items).
    Remembering,
    /// `edit`, with an add.
    Add,
    /// Read and write conditionally on the bare SDK, which applies a change twice if an answer is lost. After a conflict, wait
    /// between 0 and 2^n x 25 ms, at most 1 s, and read again.
    FullJitter,
}

/// The stores of the callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stores {
    /// Each caller has a store of its own, as in functions with one request at a time.
    Own,
    /// All callers share one store, as in a service with many requests at once.
    One,
    /// All callers share one store, which knows the item.
    Warm,
}

/// What the callers do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How they change the item.
    pub way: Way,
    /// How many they are.
    pub callers: usize,
    /// How much later each begins than the one before.
    pub apart: Duration,
    /// The changes of each, one after the other.
    pub changes: usize,
    /// After this time, nobody begins a change.
    pub time: Duration,
    /// Their stores.
    pub stores: Stores,
    /// The size of the item.
    pub bytes: usize,
    /// Whether the item takes at most 1,000 write units a second, as on AWS.
    pub throttles: bool,
    /// Which part of the answers to writes is lost without a sign.
    pub losses: f64,
}

impl Load {
    /// So many callers begin at once, change a small item once each, and have stores of their own.
    #[must_use]
    pub const fn new(way: Way, callers: usize) -> Self {
        Load {
            way,
            callers,
            apart: Duration::ZERO,
            changes: 1,
            time: Duration::MAX,
            stores: Stores::Own,
            bytes: 0,
            throttles: false,
            losses: 0.0,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The requests of all callers, reads included.
    pub requests: u32,
    /// Their units.
    pub units: Units,
    /// The times that the acknowledged changes took, shortest first.
    pub times: Vec<Duration>,
    /// When they were acknowledged, since the first caller began.
    pub ends: Vec<Duration>,
    /// The number of changes that were given up or ended as unknown.
    pub gave_up: usize,
    /// The answers that were lost.
    pub lost: usize,
    /// The ids in the memory of the row at the end.
    pub ids: usize,
    /// How much the number of the item has grown.
    pub count: u64,
}

impl Outcome {
    /// Adds what came of another play.
    #[must_use]
    pub fn and(mut self, other: Outcome) -> Self {
        self.requests += other.requests;
        self.units += other.units;
        self.times.extend(other.times);
        self.times.sort();
        self.ends.extend(other.ends);
        self.gave_up += other.gave_up;
        self.lost += other.lost;
        self.ids += other.ids;
        self.count += other.count;
        self
    }

    /// The requests of all callers for each acknowledged change.
    #[must_use]
    pub fn requests_per_success(&self) -> f64 {
        f64::from(self.requests) / self.successes()
    }

    /// The write units for each acknowledged change, and the read units.
    #[must_use]
    pub fn units_per_success(&self) -> (f64, f64) {
        (self.units.write / self.successes(), self.units.read / self.successes())
    }

    fn successes(&self) -> f64 {
        f64::from(u32::try_from(self.times.len()).unwrap_or(u32::MAX))
    }

    /// The mean time of the acknowledged changes.
    #[must_use]
    pub fn mean_time(&self) -> Duration {
        self.times.iter().sum::<Duration>() / u32::try_from(self.times.len().max(1)).unwrap_or(u32::MAX)
    }

    /// The time that so many of 100 acknowledged changes did not exceed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let index = (self.times.len() * percent).div_ceil(100).saturating_sub(1);
        self.times.get(index).copied().unwrap_or_default()
    }

    /// The time of the slowest acknowledged change.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.percentile(100)
    }
}

/// Plays this load with an item that remembers `R` writes. All randomness comes from `seed`.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn play<const R: u64>(load: Load, seed: u64) -> Outcome {
    paused(played::<R>(load, seed))
}

async fn played<const R: u64>(load: Load, seed: u64) -> Outcome {
    let (db, begun) = (dynamo(seed), Instant::now());
    let mut seeds = fastrand::Rng::with_seed(seed);
    let new_table = |rng| store(&db, begun, rng).table::<Hot<R>>(DEVICES);
    let one = new_table(seeds.fork());
    one.create("one", &Hot::new(load.bytes)).await.expect("a free key");
    if load.stores == Stores::Warm {
        one.edit("one", &Hot::count().add(0, ..)).await.expect("an item");
    }
    let before = db.log().len();
    db.count_units();
    if load.throttles {
        db.capacity(Capacity::of_items());
    }
    let lost = db.lose_answer().of_writes().silently().with_probability(load.losses);
    let (outcome, began) = (Rc::new(RefCell::new(Outcome::default())), Instant::now());
    let mut callers = Vec::new();
    for number in 0..load.callers {
        let mut caller = Caller {
            way: load.way,
            table: if load.stores == Stores::Own { new_table(seeds.fork()) } else { one.clone() },
            client: db.client_without_retries(),
            rng: fastrand::Rng::with_seed(seed ^ (number as u64) << 32),
        };
        if load.way == Way::Remembering {
            caller.table = caller.table.remembering_items();
        }
        let outcome = outcome.clone();
        callers.push(tokio::task::spawn_local(async move {
            if !load.apart.is_zero() {
                sleep(load.apart * u32::try_from(number).expect("few")).await;
            }
            for _ in 0..load.changes {
                let begun = Instant::now();
                if began.elapsed() >= load.time {
                    break;
                }
                let is_done = caller.change().await;
                let mut outcome = outcome.borrow_mut();
                if is_done {
                    outcome.times.push(begun.elapsed());
                    outcome.ends.push(began.elapsed());
                } else {
                    outcome.gave_up += 1;
                }
            }
        }));
    }
    for caller in callers {
        caller.await.expect("no caller panics");
    }
    let mut outcome = outcome.take();
    let log = db.log();
    outcome.requests = u32::try_from(log.len() - before).unwrap_or(u32::MAX);
    outcome.units = log.units();
    outcome.lost = lost.struck();
    outcome.times.sort();
    outcome.ids = db.row(DEVICES, "one")["_writes"]["M"].as_object().into_iter().flatten().count();
    outcome.count = u64::try_from(db.number(DEVICES, "one", "count")).expect("raised only");
    outcome
}

struct Caller<const R: u64> {
    way: Way,
    table: Table<Hot<R>>,
    client: Client,
    rng: fastrand::Rng,
}

impl<const R: u64> Caller<R> {
    /// Raises the number by one. Returns whether this was acknowledged.
    async fn change(&mut self) -> bool {
        match self.way {
            Way::Update | Way::Remembering => {
                let decide = |hot: &Hot<R>| hot.next();
                self.table.in_call(&call()).update_with_retry("one", decide).await.is_ok()
            }
            Way::Add => self.table.in_call(&call()).edit("one", &Hot::count().add(1, ..)).await.is_ok(),
            Way::FullJitter => self.read_and_write().await,
        }
    }

    async fn read_and_write(&mut self) -> bool {
        let begun = Instant::now();
        for conflicts in 0_u32.. {
            if let Ok(seen) = self.read().await
                && self.write(seen).await.is_ok()
            {
                return true;
            }
            let pause = full_jitter(&mut self.rng, conflicts);
            if begun.elapsed() + pause > ALLOWANCE {
                break;
            }
            sleep(pause).await;
        }
        false
    }

    /// The version and the number, strongly consistent.
    async fn read(&self) -> Result<(u64, u64), SdkError<GetItemError>> {
        let key = AttributeValue::S("one".to_owned());
        let read = self.client.get_item().table_name(DEVICES).key(DEVICE_KEY, key).consistent_read(true);
        let item = Box::pin(read.send()).await?.item.expect("an item");
        let number = |name: &str| item[name].as_n().expect("a number").parse().expect("a whole one");
        Ok((number("_version"), number("count")))
    }

    /// Raises the number that was read at this version.
    async fn write(&self, (version, count): (u64, u64)) -> Result<(), SdkError<UpdateItemError>> {
        let number = |number: u64| AttributeValue::N(number.to_string());
        let write = self
            .client
            .update_item()
            .table_name(DEVICES)
            .key(DEVICE_KEY, AttributeValue::S("one".to_owned()))
            .update_expression("SET #count = :count, #version = :next")
            .condition_expression("#version = :version")
            .expression_attribute_names("#count", "count")
            .expression_attribute_names("#version", "_version")
            .expression_attribute_values(":count", number(count + 1))
            .expression_attribute_values(":next", number(version + 1))
            .expression_attribute_values(":version", number(version));
        Box::pin(write.send()).await.map(drop)
    }
}

/// The pause of the usual way after so many conflicts: between 0 and 2^n x 25 ms, at most 1 s.
pub(crate) fn full_jitter(rng: &mut fastrand::Rng, conflicts: u32) -> Duration {
    Duration::from_millis(rng.u64(0..=(25 << conflicts.min(6)).min(1000)))
}
