//! Measures adds to one item: the requests and the time of each.
//!
//! Time is virtual, as in [`crate::crowd`].
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::crowd::Outcome;
use crate::table::{KEY, NAME};
use crate::wire::{Wire, paused};
use fencepost::{Edit, Record, Settings, Table};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A number raised by one by every caller. Its row remembers the last `R` writes. An add may be `R / 2` late.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Hot<const R: u64> {
    count: u64,
    filler: String,
}

impl<const R: u64> Record for Hot<R> {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["count", "filler"];
    const SETTINGS: Settings = Settings::own().remembered_writes(R).edit_window(R / 2);
}

impl<const R: u64> Hot<R> {
    /// At 0, with attributes and key of so many bytes or a little more.
    pub(crate) fn new(bytes: usize) -> Self {
        // The names and values beside the filler have about 30 bytes.
        Hot { count: 0, filler: "x".repeat(bytes.saturating_sub(30)) }
    }

    /// One more.
    pub(crate) fn next(&self) -> Self {
        Hot { count: self.count + 1, filler: self.filler.clone() }
    }
}

/// The processes in which the callers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callers {
    /// All callers share one store, as in a service with many requests at once.
    OneStore,
    /// Each caller has a store of its own, as in functions with one request at a time.
    OwnStores,
}

/// Lets `count` cold callers add at once to one item, with R = 64. All randomness comes from `seed`.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn at_once(callers: Callers, count: usize, hop: Duration, seed: u64) -> Outcome {
    paused(async move {
        let scene = Scene::new(Wire::new(hop), seed).await;
        let one = scene.table();
        for _ in 0..count {
            scene.spawn(if callers == Callers::OneStore { one.clone() } else { scene.table() });
        }
        scene.end(count).await
    })
}

/// Lets one warm caller add to the item `count` times, one after another.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn one_after_another(count: usize, hop: Duration, seed: u64) -> Outcome {
    paused(async move {
        let scene = Scene::new(Wire::new(hop), seed).await;
        let table = scene.warm_table().await;
        for done in 1..=count {
            scene.spawn(table.clone());
            scene.until(done).await;
        }
        scene.end(count).await
    })
}

/// Lets callers of one warm store add to the item at a steady rate for this time.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn steady(per_second: u32, time: Duration, hop: Duration, seed: u64) -> Outcome {
    paused(async move {
        let scene = Scene::new(Wire::new(hop), seed).await;
        let (table, begun, mut count) = (scene.warm_table().await, Instant::now(), 0);
        while begun.elapsed() < time {
            scene.spawn(table.clone());
            count += 1;
            sleep(Duration::from_secs(1) / per_second).await;
        }
        scene.end(count).await
    })
}

/// One item with the callers that add to it.
struct Scene {
    wire: Wire,
    seeds: RefCell<fastrand::Rng>,
    outcome: Rc<RefCell<Outcome>>,
}

impl Scene {
    /// Creates the item.
    async fn new(wire: Wire, seed: u64) -> Self {
        let seeds = RefCell::new(fastrand::Rng::with_seed(seed));
        let scene = Scene { wire, seeds, outcome: Rc::default() };
        scene.table().create("one", &Hot::new(0)).await.expect("a free key");
        let _ = scene.wire.take_requests();
        scene
    }

    /// The table of a store with an empty memory.
    fn table(&self) -> Table<Hot<64>> {
        self.wire.store(self.seeds.borrow_mut().fork()).table(NAME)
    }

    /// The table of a store with the item in memory.
    async fn warm_table(&self) -> Table<Hot<64>> {
        let table = self.table();
        table.get("one").await.expect("an answer").expect("an item");
        add(&table).await;
        let _ = self.wire.take_requests();
        table
    }

    /// Adds with a caller of its own.
    fn spawn(&self, table: Table<Hot<64>>) {
        let outcome = Rc::clone(&self.outcome);
        tokio::task::spawn_local(async move {
            let begun = Instant::now();
            let done = add(&table).await;
            let mut outcome = outcome.borrow_mut();
            if done { outcome.times.push(begun.elapsed()) } else { outcome.gave_up += 1 }
        });
    }

    /// Waits until so many callers are done.
    async fn until(&self, done: usize) {
        let is_done = || self.outcome.borrow().times.len() + self.outcome.borrow().gave_up >= done;
        while !is_done() {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// The result, when so many callers are done.
    async fn end(self, callers: usize) -> Outcome {
        self.until(callers).await;
        let mut outcome = self.outcome.take();
        outcome.requests = self.wire.take_requests();
        outcome.times.sort();
        outcome.count = self.table().get("one").await.expect("an answer").expect("an item").value.count;
        outcome
    }
}

/// Adds one. Returns whether the add was acknowledged.
pub(crate) async fn add<const R: u64>(table: &Table<Hot<R>>) -> bool {
    table.edit("one", &Edit::add("count", 1, ..)).await.is_ok()
}
