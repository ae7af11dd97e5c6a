//! One death and the two invocations after it, on an engine of their own, and the fate of the requests that the process
//! leaves behind.

use super::case::{Case, Given, Killed, Said};
use crate::harness::clock::{Clock, TEN_O_CLOCK};
use crate::harness::engine::{Engine, embedded_with_indexed_tables, is_read};
use crate::harness::events::Event;
use crate::harness::faults::{Network, Rates, Wire, store_on};
use crate::harness::functions::{CHILDREN, LEASES, ORDERS, PRODUCTS, RECORDS};
use crate::harness::restore::rows;
use crate::harness::world::World;
use fencepost_test::{Answer, Request, Seam, error};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::sleep;

/// Work that is dropped when it waits once more than allowed. Its output is then `None`.
pub struct Mortal<F> {
    work: Option<Pin<Box<F>>>,
    waits_left: usize,
}

impl<F> Mortal<F> {
    /// The work dies when it waits for the time after so many.
    pub fn after(waits: usize, work: F) -> Self {
        Mortal { work: Some(Box::pin(work)), waits_left: waits }
    }
}

impl<F: Future> Future for Mortal<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.waits_left == 0 => {
                self.work = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.waits_left -= 1;
                Poll::Pending
            }
        }
    }
}

/// The fate of the requests on their way at the death of their process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are delivered before the event comes again.
    Delivered,
    /// They never arrive.
    NeverDelivered,
    /// They arrive after the event came again.
    Late,
}

/// Who sends requests, as [`Wire::works_on`](crate::harness::faults::Wire::works_on) is told.
pub const TEST: u64 = 0;
pub const KILLED: u64 = 1;

/// Breaks a rule in all requests.
pub type Breaks = fn(&mut Request);

/// Decides about the remaining requests of a process.
pub struct Estate {
    fate: Fate,
    breaks: Breaks,
    is_dead: AtomicBool,
    /// The requests for a late arrival.
    kept: Mutex<Vec<Request>>,
    changes: Mutex<Changes>,
}

/// The number of changes to each row, by table and key. A write without a difference is no change.
pub type Changes = BTreeMap<(String, String), usize>;

impl Estate {
    pub fn new(fate: Fate, breaks: Breaks) -> Self {
        Estate { fate, breaks, is_dead: AtomicBool::new(false), kept: Mutex::default(), changes: Mutex::default() }
    }

    /// The process is dead.
    pub fn opens(&self) {
        self.is_dead.store(true, SeqCst);
    }

    /// Delivers the kept requests.
    pub fn deliver_late(&self, engine: &Engine) {
        let kept = std::mem::take(&mut *self.kept.lock().expect("no panic while keeping"));
        for request in kept {
            self.execute(engine, &request);
        }
    }

    /// The changes of all processes but the test's own.
    pub fn changes(&self) -> Changes {
        self.changes.lock().expect("no panic while counting").clone()
    }

    fn execute(&self, engine: &Engine, request: &Request) -> Answer {
        let steps = if is_read(&request.operation) || request.op == TEST {
            Vec::new()
        } else {
            engine.steps_of(&request.operation, &request.body)
        };
        let rows = || steps.iter().map(|step| engine.row_at(&step.table, &step.key)).collect::<Vec<_>>();
        let before = rows();
        let answer = engine.execute(request);
        let mut changes = self.changes.lock().expect("no panic while counting");
        for (step, (before, after)) in steps.iter().zip(before.iter().zip(rows())) {
            // What is held for an order is no effect: the order is, and the tables show the stock.
            let is_held = [before, &after].into_iter().any(has_holds);
            if !is_held && live(before, &step.table) != live(&after, &step.table) {
                *changes.entry((step.table.clone(), step.id.clone())).or_default() += 1;
            }
        }
        answer
    }
}

/// The same estate, as the network asks it.
pub struct Seen(pub std::sync::Arc<Estate>);

impl Seam for Seen {
    fn leaves(&self, _: &Network, request: &mut Request) {
        (self.0.breaks)(request);
    }

    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        let estate = &self.0;
        let is_left_behind = request.op == KILLED && estate.is_dead.load(SeqCst);
        if !is_left_behind || estate.fate == Fate::Delivered {
            return estate.execute(&network.engine, request);
        }
        if estate.fate == Fate::Late {
            estate.kept.lock().expect("no panic while keeping").push(request.clone());
        }
        error(500, "InternalServerError") // the process is dead and does not hear it
    }
}

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

    /// Invokes a process that lives. Then settles what is left to others.
    pub async fn invoke<F: Killed>(&self, event: &Event, invocation: u64) -> Said {
        self.clock.set_forward(F::TICK);
        let said = F::invoke(&self.process::<F>(KILLED + invocation), event).await;
        F::settle(&self.process::<F>(TEST)).await;
        said
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
    pub async fn deliver_late<F: Killed>(&self) {
        self.estate.deliver_late(self.engine());
        F::settle(&self.process::<F>(TEST)).await;
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
            let mut rows: Vec<_> = rows(self.engine(), &table).iter().map(|row| comparable(&table, row)).collect();
            rows.sort();
            (table, rows)
        };
        self.engine().tables().into_iter().map(dump).collect()
    }
}

fn has_holds(row: &Value) -> bool {
    row["_holds"]["M"].as_object().is_some_and(|holds| !holds.is_empty())
}

/// The row, unless it is an order that was burned.
fn live<'a>(row: &'a Value, table: &str) -> Option<&'a Value> {
    let is_burned = table == ORDERS && !(row["_purgeAt"].is_null() && row["_buried"].is_null());
    (!is_burned && !row.is_null()).then_some(row)
}

/// A row for comparison: without ids, a lease or a child also without times. Only the size of its memory stays. A
/// record becomes its key and its end.
fn comparable(table: &str, row: &Value) -> String {
    let mut row: Map<_, _> = row.as_object().cloned().unwrap_or_default();
    row.retain(|name, _| !["_incarnation", "_placedBy", "acquireId"].contains(&name.as_str()));
    if [ORDERS, PRODUCTS].contains(&table) {
        // An attempt that died leaves its writes, and the order that follows it a higher version.
        row.retain(|name, _| !["_version", "_writes", "placedVersion"].contains(&name.as_str()));
    }
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
