//! The scene of all kinds of histories: a network in a storm, clients with clocks of their own, and TTL.

use crate::harness::engine::Step;
use crate::harness::faults::{Applied, Network, Rates, Touched, Wire, store_on};
use crate::harness::off::{OffClock, OffClocks};
use fencepost::{Call, Deadline, RetryPolicy, Store};
use serde_json::{Value, json};
use std::ops::{Deref, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The start of all histories, since 1970.
pub const EPOCH: Duration = Duration::from_hours(500_000);
/// The operation number of removals by TTL.
pub const TTL: u64 = 0;
/// After this time, the last held copy has arrived.
pub const ALL_HAS_ARRIVED: Duration = Duration::from_secs(700);

/// The highest rates of faults in most kinds of histories.
pub const STORM: Rates = Rates {
    dropped: 60,
    answer_lost: 200,
    applied_500: 80,
    refused_500: 40,
    held: 80,
    second_copy: 100,
    copied_soon: 0,
    copied_last: 0,
    throttled: 150,
    transaction_conflict: 120,
    denied: 20,
    frozen: 25,
    in_progress: 100,
    mismatch: 100,
    tokens_forgotten: 100,
    mixed_reasons: 150,
    unprocessed: 80,
    garbled: 100,
};

/// The rates of faults in one history: up to these, from a breeze to a storm.
pub fn rates(rng: &mut fastrand::Rng, storms: RangeInclusive<u32>, most: Rates) -> Rates {
    let storm = rng.u32(storms);
    let mut rate = |most: u32| if most == 0 { 0 } else { rng.u32(0..=most) * storm / 8 };
    Rates {
        dropped: rate(most.dropped),
        answer_lost: rate(most.answer_lost),
        applied_500: rate(most.applied_500),
        refused_500: rate(most.refused_500),
        held: rate(most.held),
        second_copy: rate(most.second_copy),
        throttled: rate(most.throttled),
        transaction_conflict: rate(most.transaction_conflict),
        denied: rate(most.denied),
        frozen: rate(most.frozen),
        in_progress: rate(most.in_progress),
        mismatch: rate(most.mismatch),
        tokens_forgotten: rate(most.tokens_forgotten),
        mixed_reasons: rate(most.mixed_reasons),
        unprocessed: rate(most.unprocessed),
        garbled: rate(most.garbled),
        ..most
    }
}

/// The state that all clients of a history share. `X` belongs to the kind of history, `D` is a client's note of an
/// operation.
pub struct Scene<X, D> {
    own: X,
    /// Unique to this history.
    pub name: String,
    pub network: Arc<Network>,
    pub start: Instant,
    pub clocks: OffClocks,
    /// The number of the next operation.
    pub numbers: AtomicU64,
    pub done: Mutex<Vec<D>>,
}

impl<X, D> Deref for Scene<X, D> {
    type Target = X;

    fn deref(&self) -> &X {
        &self.own
    }
}

impl<X, D> Scene<X, D> {
    pub fn new(seed: u64, name: String, network: Arc<Network>, own: X) -> Arc<Self> {
        let (start, numbers) = (Instant::now(), AtomicU64::new(TTL + 1));
        let clocks = OffClocks::of(seed, start);
        Arc::new(Scene { own, name, network, start, clocks, numbers, done: Mutex::default() })
    }

    /// Seconds since 1970 by the service's clock.
    pub fn now(&self) -> u64 {
        (EPOCH + self.start.elapsed()).as_secs()
    }

    pub fn note(&self, done: D) {
        self.done.lock().expect("no panic while noting").push(done);
    }

    pub fn take_done(&self) -> Vec<D> {
        std::mem::take(&mut *self.done.lock().expect("no panic while noting"))
    }

    /// Acts as TTL: removes those of these rows that have ended and are due.
    pub fn remove_ended(&self, rows: &[(&'static str, String)], mut is_due: impl FnMut() -> bool) {
        for (table, id) in rows {
            let engine = &self.network.engine;
            let key = json!({engine.key_of(table): {"S": id}});
            let row = engine.row_at(table, &key);
            let end = ["purgeAt", "_purgeAt", "expiresAt"].iter().find_map(|name| row.get(*name));
            let end = end.and_then(|end| end["N"].as_str()?.parse::<u64>().ok());
            if end.is_some_and(|end| end < self.now()) && is_due() {
                engine.raw("DeleteItem", &json!({"TableName": table, "Key": key}));
                let step = Step { action: "DeleteItem", table: (*table).to_owned(), id: id.clone(), key };
                let rows = vec![Touched { step, row: Value::Null }];
                let purged = Applied { op: TTL, time: Instant::now(), rows, is_copy_of_refused: false };
                self.network.applied().push(purged);
            }
        }
    }
}

/// Lets all of these clients work at once, to the end, and the last held copy arrive.
pub async fn work_together(work: impl Iterator<Item: Future<Output: Send> + Send + 'static>) {
    work.collect::<JoinSet<_>>().join_all().await;
    sleep(ALL_HAS_ARRIVED).await;
}

/// One client: its own SDK client, store, wire and clock.
pub struct Client<X, D> {
    pub scene: Arc<Scene<X, D>>,
    pub network: Arc<Network>,
    pub number: u64,
    pub wire: Wire,
    pub clock: OffClock,
}

pub struct Begun {
    pub number: u64,
    pub began: Instant,
    pub call: Call,
}

impl<X, D> Client<X, D> {
    pub fn new(scene: &Arc<Scene<X, D>>, network: &Arc<Network>, number: u64) -> Self {
        Self::with_clock(scene, network, number, scene.clocks.draw())
    }

    pub fn with_clock(scene: &Arc<Scene<X, D>>, network: &Arc<Network>, number: u64, clock: OffClock) -> Self {
        let wire = clock.wire(network);
        Client { scene: scene.clone(), network: network.clone(), number, wire, clock }
    }

    /// The store of a new process.
    pub fn open(&self) -> Store {
        let clock = self.clock.clone();
        store_on(&self.network, &self.wire.client(), move || clock.now(EPOCH))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.network.below(bound)
    }

    /// A random index below `count`.
    pub fn pick(&self, count: usize) -> usize {
        usize::try_from(self.below(u64::try_from(count).expect("small"))).expect("small")
    }

    pub async fn pause(&self, millis: u64) {
        sleep(Duration::from_millis(self.below(millis))).await;
    }

    /// Begins an operation with a deadline of 200 milliseconds, plus a random time below `millis`.
    pub fn begin(&self, millis: u64) -> Begun {
        let number = self.scene.numbers.fetch_add(1, Relaxed);
        self.wire.works_on(number);
        let call = Call::new(Deadline::within(Duration::from_millis(200 + self.below(millis))));
        Begun { number, began: Instant::now(), call }
    }
}

/// Fewer attempts than the default: some changes run out of them.
pub fn with_few_attempts() -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    policy.max_attempts = 12;
    policy
}
