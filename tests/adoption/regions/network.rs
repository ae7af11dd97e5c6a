//! Two Regions over one table with multi-Region strong consistency, as a seam of the network: of two writes to one item in
//! different Regions, one is refused for now.

use crate::harness::clock::TEN_O_CLOCK;
use crate::harness::engine::{Engine, Step, is_read};
use crate::harness::faults::{Rates, store_on};
use crate::harness::off::OffClocks;
use fencepost::Store;
use fencepost_test::{Answer, Fault, Request, Seam, error};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The service in both Regions. The `op` of a request is its Region.
struct Service {
    in_flight: Mutex<Vec<Flight>>,
    conflicts: Arc<AtomicUsize>,
    /// Against all promises, so many of a thousand conflicts are answered as if the write were applied.
    denied: u64,
}

/// A write until it is committed in both Regions.
struct Flight {
    region: u64,
    item: Step,
    ends: Instant,
}

impl Seam for Service {
    fn arrives(&self, network: &fencepost_test::Network, request: &Request) -> Answer {
        if request.operation == "TransactWriteItems" {
            return error(400, "ValidationException");
        }
        if is_read(&request.operation) {
            return network.engine.execute(request);
        }
        let (region, now) = (request.op, Instant::now());
        let item = network.engine.steps_of(&request.operation, &request.body).remove(0);
        let mut in_flight = self.in_flight.lock().expect("no panic while noting");
        in_flight.retain(|flight| flight.ends > now);
        let is_met = |flight: &Flight| {
            flight.region != region && (&flight.item.table, &flight.item.id) == (&item.table, &item.id)
        };
        // One in eight meets a write that is refused too.
        if in_flight.iter().any(is_met) || network.below(8) == 0 {
            self.conflicts.fetch_add(1, SeqCst);
            let is_denied = network.below(1000) < self.denied;
            let done = Answer { status: 200, body: json!({}) };
            return if is_denied { done } else { error(400, "ReplicatedWriteConflictException") };
        }
        let ends = now + Duration::from_millis(5 + network.below(55));
        in_flight.push(Flight { region, item, ends });
        network.engine.execute(request)
    }
}

/// The events on the network.
#[derive(Debug)]
pub struct Totals {
    pub requests: usize,
    /// Reads of one item without consistency.
    pub inconsistent: usize,
    pub conflicts: usize,
    /// Lost answers to applied writes.
    pub lost: usize,
}

/// The network between both Regions.
pub struct Network {
    inner: Arc<fencepost_test::Network>,
    clocks: OffClocks,
    conflicts: Arc<AtomicUsize>,
}

impl Network {
    pub fn new(engine: &Engine, rates: Rates, seed: u64) -> Arc<Self> {
        Self::denying(engine, rates, seed, 0)
    }

    /// The same with a service that denies so many of a thousand conflicts.
    pub fn denying(engine: &Engine, rates: Rates, seed: u64, denied: u64) -> Arc<Self> {
        let conflicts = Arc::<AtomicUsize>::default();
        let service = Service { in_flight: Mutex::default(), conflicts: conflicts.clone(), denied };
        let inner = fencepost_test::Network::through(engine, rates, fastrand::Rng::with_seed(seed), service);
        Arc::new(Network { inner, clocks: OffClocks::of(seed, Instant::now()), conflicts })
    }

    /// The store of a client in this Region, with a clock of its own.
    pub fn store(&self, region: u64) -> Store {
        let clock = self.clocks.draw();
        let wire = clock.wire(&self.inner);
        wire.works_on(region);
        store_on(&self.inner, &wire.client(), move || clock.now(Duration::from_millis(TEN_O_CLOCK)))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.inner.below(bound)
    }

    pub fn totals(&self) -> Totals {
        let log = self.inner.log();
        let count = |holds: fn(&fencepost_test::Sent) -> bool| log.iter().filter(|sent| holds(sent)).count();
        Totals {
            requests: log.len(),
            inconsistent: count(|sent| sent.operation() == "GetItem" && sent.request.body["ConsistentRead"] != true),
            conflicts: self.conflicts.load(SeqCst),
            lost: count(|sent| {
                !sent.is_read() && sent.executed() > 0 && matches!(sent.fault, Some(Fault::AnswerLost | Fault::Held))
            }),
        }
    }

    /// The rows left by applied writes, in their order.
    pub fn rows(&self) -> Vec<(Step, Value)> {
        let applied = self.inner.applied();
        let rows = applied.iter().flat_map(|applied| &applied.rows);
        rows.map(|touched| (touched.step.clone(), touched.row.clone())).collect()
    }
}
