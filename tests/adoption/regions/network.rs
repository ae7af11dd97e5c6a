//! Two Regions over one table with multi-Region strong consistency: of two writes to one item in different Regions, at
//! least one is refused for now.

use crate::harness::clock::TEN_O_CLOCK;
use crate::harness::engine::{Engine, is_read};
use crate::harness::faults::{Network, Rates, store_on};
use crate::harness::off::OffClocks;
use fencepost::Store;
use fencepost_test::{Answer, Request, Seam, Sent, error};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const CONFLICT: &str = "ReplicatedWriteConflictException";

/// Both Regions of one table.
pub struct Regions {
    pub network: Arc<Network>,
    clocks: OffClocks,
}

/// The writes between their arrival in a Region and their commit in the other one.
struct Replication {
    /// Against all promises, so many of a thousand conflicts are answered as if the write were applied.
    denied: u64,
    /// The last write to each item: its Region and its end.
    under_way: Mutex<BTreeMap<(String, String), (u64, Instant)>>,
}

impl Seam for Replication {
    /// The operation of a request is its Region.
    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        if is_read(&request.operation) {
            return network.engine.execute(request);
        }
        if request.operation == "TransactWriteItems" {
            return error(400, "ValidationException");
        }
        let step = network.engine.steps_of(&request.operation, &request.body).remove(0);
        let (now, ends, region) = (Instant::now(), Duration::from_millis(5 + network.below(55)), request.op);
        let mut under_way = self.under_way.lock().expect("no panic while noting");
        let last = under_way.get(&(step.table.clone(), step.id.clone()));
        let is_met = last.is_some_and(|(other, until)| *other != region && now < *until);
        // Both of two such writes may be refused.
        if !is_met && network.below(20) > 0 {
            under_way.insert((step.table, step.id), (region, now + ends));
            return network.engine.execute(request);
        }
        let is_denied = network.below(1000) < self.denied;
        if is_denied { Answer { status: 200, body: json!({}) } } else { error(400, CONFLICT) }
    }
}

/// Whether a write met one of the other Region.
pub fn is_conflict(sent: &Sent) -> bool {
    sent.arrivals.iter().any(|(_, outcome)| outcome.to_string().contains(CONFLICT))
}

impl Regions {
    /// Answers so many of a thousand conflicts as if the write were applied.
    pub fn new(engine: &Engine, rates: Rates, denied: u64, seed: u64) -> Arc<Self> {
        let replication = Replication { denied, under_way: Mutex::default() };
        let network = Network::through(engine, rates, fastrand::Rng::with_seed(seed), replication);
        Arc::new(Regions { network, clocks: OffClocks::of(seed, Instant::now()) })
    }

    /// The store of a client in this Region, with a clock of its own.
    pub fn store(&self, region: u64) -> Store {
        let clock = self.clocks.draw();
        let wire = clock.wire(&self.network);
        wire.works_on(region);
        store_on(&self.network, &wire.client(), move || clock.now(Duration::from_millis(TEN_O_CLOCK)))
    }
}
