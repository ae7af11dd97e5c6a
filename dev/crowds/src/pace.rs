//! Measures changes of one item against the capacity that `DynamoDB` gives an item: the units of each, and how many fit
//! into a second.
//!
//! Time is virtual, as in [`crate::crowd`].
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::adds::{Hot, add};
use crate::crowd::{jitter, read_and_write};
use crate::table::{self, NAME};
use crate::wire::{chance, paused, store};
use fencepost::Table;
use fencepost_test::{Capacity, Dynamo};
use std::convert::Infallible;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A way to raise the number of the item by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// `add`.
    Adds,
    /// `update_with_retry`.
    Updates,
    /// Read and write conditionally. After a refusal, wait between 0 and 2^n x 25 ms, at most 1 s, and read again.
    Usual,
}

/// The changes of one item by all callers.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many changes were acknowledged in a second, after the first two.
    pub a_second: f64,
    /// The write units of each.
    pub units: f64,
    /// The changes that were given up.
    pub gave_up: usize,
}

/// The unused capacity of the first second is used up by then.
const WARM: Duration = Duration::from_secs(2);

/// Lets callers, with a store each, change one item of this size one change after the other, for this time and two seconds
/// before it.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn of_one_item<const R: u64>(
    way: Way,
    callers: u64,
    bytes: usize,
    time: Duration,
    hop: Duration,
    seed: u64,
) -> Pace {
    paused(async move {
        let scene = Scene::<R>::new(bytes, hop, seed).await;
        scene.db.capacity(Capacity::of_items());
        let begun = Instant::now();
        let mut all = JoinSet::new();
        for caller in 0..callers {
            let (table, client) = (scene.table(caller), scene.db.client_without_retries());
            let mut rng = fastrand::Rng::with_seed(seed << 32 | caller);
            all.spawn_local(async move {
                let [mut done, mut timely, mut gave_up] = [0; 3];
                while begun.elapsed() < WARM + time {
                    let is_done = match way {
                        Way::Adds => add(&table).await,
                        Way::Updates => update(&table).await,
                        Way::Usual => read_and_write(&client, |conflicts| jitter(&mut rng, conflicts)).await,
                    };
                    *(if is_done { &mut done } else { &mut gave_up }) += 1;
                    timely += usize::from(is_done && (WARM..WARM + time).contains(&begun.elapsed()));
                }
                [done, timely, gave_up]
            });
        }
        let all = all.join_all().await;
        let [done, timely, gave_up] = [0, 1, 2].map(|part| all.iter().map(|one| one[part]).sum());
        Pace {
            a_second: number(timely) / time.as_secs_f64(),
            units: scene.db.log().units().write / number(done),
            gave_up,
        }
    })
}

/// An item of a count of units, and the way to it.
struct Scene<const R: u64> {
    db: Dynamo,
    begun: Instant,
}

impl<const R: u64> Scene<R> {
    async fn new(bytes: usize, hop: Duration, seed: u64) -> Self {
        let scene = Scene { db: table::dynamo(seed, hop), begun: Instant::now() };
        scene.db.count_units();
        scene.table(0).create("one", &Hot::new(bytes)).await.expect("a free key");
        scene
    }

    /// The table of a store of its own.
    fn table(&self, seed: u64) -> Table<Hot<R>> {
        let rng = fastrand::Rng::with_seed(self.db.seed() << 32 | seed);
        store(&self.db.client_without_retries(), self.begun, chance(rng)).table(NAME)
    }
}

async fn update<const R: u64>(table: &Table<Hot<R>>) -> bool {
    table.update_with_retry("one", |hot| Ok::<_, Infallible>(Some(hot.next()))).await.is_ok()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}
