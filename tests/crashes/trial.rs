//! One death and the two invocations after it, on an engine of their own.

use super::case::{Case, Given, Killed, Said};
use super::death::{Breaks, Changes, Estate, Fate, KILLED, Mortal, Seen, TEST};
use crate::harness::clock::{Clock, TEN_O_CLOCK};
use crate::harness::engine::{Engine, embedded_with_indexed_tables};
use crate::harness::events::Event;
use crate::harness::faults::{Network, Rates, Wire, store_on};
use crate::harness::functions::{CHILDREN, LEASES, RECORDS};
use crate::harness::world::World;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// All rows of all tables, without the ids, which differ from play to play.
pub type Dump = BTreeMap<String, Vec<String>>;

pub struct Trial {
    network: Arc<Network>,
    estate: Arc<Estate>,
    clock: Clock,
}

impl Trial {
    pub async fn set<F: Killed>(case: &Case, fate: Fate, breaks: Breaks) -> (Self, Event) {
        let engine = embedded_with_indexed_tables(F::tables());
        let estate = Arc::new(Estate::new(fate, breaks));
        let rng = fastrand::Rng::with_seed(1);
        let network = Network::through(&engine, Rates::default(), rng, Seen(estate.clone()));
        // An hour later: no mapping of the morning lies in the future.
        let clock = Clock::standing(TEN_O_CLOCK + 3_600_000);
        let trial = Trial { network, estate, clock };
        let event = F::prepare(&trial.process::<F>(TEST), case).await;
        (trial, event)
    }

    /// A newly started process.
    fn process<F: Killed>(&self, op: u64) -> World<F> {
        let wire = Wire::new(&self.network);
        wire.works_on(op);
        let store = store_on(&self.network, &wire.client(), self.clock.looks());
        World::under(&self.network.engine, self.clock.clone(), &store)
    }

    /// Invokes a process that lives.
    pub async fn invoke<F: Killed>(&self, event: &Event, invocation: u64) -> Said {
        self.clock.set_forward(F::TICK);
        F::invoke(&self.process::<F>(KILLED + invocation), event).await
    }

    /// Invokes a process that dies when it waits once more than this. Tells whether it died.
    pub async fn kill<F: Killed>(&self, case: &Case, event: &Event, waits: usize) -> bool {
        let process = self.process::<F>(KILLED);
        if case.given == Given::Seen {
            F::invoke(&process, &F::seeing().expect("how it is seen")).await;
        }
        let answered = Mortal::after(waits, F::invoke(&process, event)).await;
        self.estate.opens();
        while !self.network.is_quiet() {
            sleep(Duration::from_millis(10)).await;
        }
        answered.is_none()
    }

    /// Delivers the requests kept for later.
    pub fn deliver_late(&self) {
        self.estate.deliver_late(self.engine());
    }

    fn engine(&self) -> &Engine {
        &self.network.engine
    }

    /// The changes of all invocations so far.
    pub fn changes(&self) -> Changes {
        self.estate.changes()
    }

    pub fn dump(&self) -> Dump {
        let dump = |(table, _): (String, String)| {
            let mut answer = self.engine().raw("Scan", &json!({"TableName": table, "ConsistentRead": true}));
            let rows = answer["Items"].take();
            let mut rows: Vec<_> = rows.as_array().into_iter().flatten().map(|row| comparable(&table, row)).collect();
            rows.sort();
            (table, rows)
        };
        self.engine().tables().into_iter().map(dump).collect()
    }
}

/// A row for comparison: without ids, a lease or a child also without times. Only the size of its memory stays. A
/// record becomes its key and its end.
fn comparable(table: &str, row: &Value) -> String {
    let mut row: Map<_, _> = row.as_object().cloned().unwrap_or_default();
    row.retain(|name, _| !["_incarnation", "acquireId"].contains(&name.as_str()));
    if [LEASES, CHILDREN].contains(&table) {
        row.retain(|name, _| !["expiresAt", "purgeAt", "token", "createdAt"].contains(&name.as_str()));
    }
    if let Some(memory) = row.get_mut("_writes") {
        *memory = json!(memory["M"].as_object().map(Map::len));
    }
    if table == RECORDS {
        row.retain(|name, _| ["recordId", "_purgeAt", "_version"].contains(&name.as_str()));
    }
    Value::Object(row).to_string()
}
