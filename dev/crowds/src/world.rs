//! The world of a benchmark: virtual time, the tables of the kit, and the item that all callers change.

use fencepost::field::Field;
use fencepost::{Call, Clock, Deadline, Record, Rng, Settings, Store};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The table of [`Hot`] items.
pub(crate) const DEVICES: &str = "Devices";
pub(crate) const DEVICE_KEY: &str = "deviceId";
/// The table of products, with the key `productId`.
pub(crate) const PRODUCTS: &str = "Products";
/// The table of orders, with the key `orderId`.
pub(crate) const ORDERS: &str = "Orders";

/// The time of a request in each direction.
pub const HOP: Duration = Duration::from_millis(5);

/// The time for a call, out of Lambda's 10 s.
pub(crate) const ALLOWANCE: Duration = Duration::from_millis(9750);

/// A number raised by one by every change. Its row remembers the last `R` writes. An edit may be `R / 2` late.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Hot<const R: u64> {
    count: u64,
    filler: String,
}

impl<const R: u64> Record for Hot<R> {
    const PARTITION_KEY: &'static str = DEVICE_KEY;
    const ATTRIBUTES: &'static [&'static str] = &["count", "filler"];
    const SETTINGS: Settings = Settings::own().remembered_writes(R).edit_window(R / 2);
}

impl<const R: u64> Hot<R> {
    pub(crate) fn count() -> Field<Self, u64> {
        Field::of("count")
    }

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

/// Empty tables.
pub(crate) fn dynamo(seed: u64) -> Dynamo {
    let db = Dynamo::with_seed(seed);
    for (table, key) in [(DEVICES, DEVICE_KEY), (PRODUCTS, "productId"), (ORDERS, "orderId")] {
        db.create_table(table, key);
    }
    db.network().hops(HOP);
    db
}

/// A store of its own, under the virtual clock, which began then.
pub(crate) fn store(db: &Dynamo, begun: Instant, rng: fastrand::Rng) -> Store {
    let (base, rng) = (SystemTime::UNIX_EPOCH + Duration::from_hours(500_000), Mutex::new(rng));
    Store::new(&db.client_without_retries())
        .with_clock(Clock::new(move || base + begun.elapsed()))
        .with_rng(Rng::new(move || rng.lock().expect("no panic while drawing").u64(..)))
}

/// A call with the usual time of a Lambda invocation.
pub(crate) fn call() -> Call {
    Call::new(Deadline::within(ALLOWANCE))
}

/// Plays on virtual time.
pub(crate) fn paused<A>(played: impl Future<Output = A>) -> A {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime"), played)
}
