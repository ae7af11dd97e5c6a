//! The embedded engine behind a connector that adds delays and counts requests.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::table;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use fencepost::{Clock, Rng, Store};
use fencepost_test::{Engine, body_of, client_over, error, operation_of, response, size_of_item};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// A connection to the engine that takes `hop` in each direction.
///
/// A transaction works for another `hop`. Another transaction or a single write on one of its items in that time gets
/// `TransactionConflict`, as on AWS. The engine itself never returns it.
#[derive(Clone)]
pub struct Wire {
    engine: Engine,
    begun: Instant,
    hop: Duration,
    requests: Arc<AtomicU32>,
    at_work: Arc<Mutex<HashSet<String>>>,
    losses: Option<Arc<Mutex<fastrand::Rng>>>,
    next_loss: Arc<Mutex<Option<Loss>>>,
    is_patient: bool,
    units: Option<Arc<AtomicU64>>,
}

/// How the answer to an applied request is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The connection breaks.
    Broken,
    /// No answer arrives.
    Silent,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// Creates a wire to an engine with empty tables.
    #[must_use]
    pub fn new(hop: Duration) -> Self {
        Wire {
            engine: table::engine(),
            begun: Instant::now(),
            hop,
            requests: Arc::default(),
            at_work: Arc::default(),
            losses: None,
            next_loss: Arc::default(),
            is_patient: false,
            units: None,
        }
    }

    /// Returns a wire to the same engine on which no request ever gets `TransactionConflict`.
    #[must_use]
    pub fn without_conflicts(&self) -> Self {
        Wire { is_patient: true, ..self.clone() }
    }

    /// Returns a wire to the same engine that counts the write units of single writes.
    #[must_use]
    pub fn charging(&self) -> Self {
        Wire { units: Some(Arc::default()), ..self.clone() }
    }

    /// The write units since the last call. Zero unless the wire is [`charging`](Wire::charging).
    #[must_use]
    pub fn take_units(&self) -> u64 {
        self.units.as_ref().map_or(0, |units| units.swap(0, SeqCst))
    }

    /// Returns a wire to the same engine that loses one answer in 50: the request is applied, but its connection
    /// breaks.
    #[must_use]
    pub fn losing(&self, chance: fastrand::Rng) -> Self {
        Wire { losses: Some(Arc::new(Mutex::new(chance))), ..self.clone() }
    }

    /// Loses the next answer.
    ///
    /// # Panics
    /// Never, because no code panics while it holds the lock.
    pub fn lose_next(&self, loss: Loss) {
        *self.next_loss.lock().expect("no panic while setting") = Some(loss);
    }

    /// The number of requests since the last call.
    #[must_use]
    pub fn take_requests(&self) -> u32 {
        self.requests.swap(0, SeqCst)
    }

    /// A client of the real SDK over this wire, without retries.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.clone())
    }

    /// The store of a new process, under the virtual clock.
    pub fn store(&self, rng: fastrand::Rng) -> Store {
        store(&self.client(), self.begun, chance(rng))
    }

    /// Carries out a request. Returns the status and the body of the answer.
    pub(crate) fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let answer = self.engine.answer(operation, body);
        drop(self.engine.take_log());
        answer
    }

    /// Carries out a write of one item, unless a transaction is at work there.
    fn write(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let item = address(&request);
        if self.at_work.lock().expect("no panic while at work").contains(&item) {
            return (400, error(400, "TransactionConflictException").body.to_string());
        }
        let answer = self.answer(operation, body);
        if let Some(units) = &self.units {
            units.fetch_add(self.units_of(&request), SeqCst);
        }
        answer
    }

    /// The write units of a request, by the item as it is now. A refused write is charged too.
    fn units_of(&self, request: &Value) -> u64 {
        let table = request["TableName"].as_str().unwrap_or_default();
        let bytes = size_of_item(&self.engine.row_at(table, &request["Key"]));
        u64::try_from(bytes.div_ceil(1024).max(1)).unwrap_or(u64::MAX)
    }

    async fn transact(&self, body: &[u8]) -> (u16, String) {
        let items = if self.is_patient { Vec::new() } else { updated_items(body) };
        if let Some(conflict) = self.begin(&items) {
            return (400, conflict.to_string());
        }
        sleep(self.hop).await;
        let answer = self.answer("TransactWriteItems", body);
        let mut at_work = self.at_work.lock().expect("no panic while at work");
        at_work.retain(|item| !items.iter().flatten().any(|done| done == item));
        answer
    }

    /// Marks the items as being worked on. If one of them is already, returns the answer to the transaction instead.
    fn begin(&self, items: &[Option<String>]) -> Option<Value> {
        let mut at_work = self.at_work.lock().expect("no panic while at work");
        let taken = |item: &Option<String>| item.as_ref().is_some_and(|item| at_work.contains(item));
        if !items.iter().any(taken) {
            at_work.extend(items.iter().flatten().cloned());
            return None;
        }
        let reason = |item| json!({ "Code": if taken(item) { "TransactionConflict" } else { "None" } });
        Some(json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
            "CancellationReasons": items.iter().map(reason).collect::<Vec<_>>(),
        }))
    }

    fn loses(&self) -> Option<Loss> {
        let next = self.next_loss.lock().expect("no panic while taking").take();
        let drawn =
            self.losses.as_ref().is_some_and(|chance| chance.lock().expect("no panic while drawing").u8(..50) == 0);
        next.or(drawn.then_some(Loss::Broken))
    }
}

/// The item that each step updates. `None` for a step that creates an item, because no other transaction uses the item.
fn updated_items(body: &[u8]) -> Vec<Option<String>> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let item = |step: &Value| step.get("Update").map(address);
    body["TransactItems"].as_array().map(|steps| steps.iter().map(item).collect()).unwrap_or_default()
}

/// The table and the key of an update, as one text.
fn address(update: &Value) -> String {
    format!("{} {}", update["TableName"], update["Key"])
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.requests.fetch_add(1, SeqCst);
        let wire = self.clone();
        HttpConnectorFuture::new(async move {
            sleep(wire.hop).await;
            let (operation, body) = (&*operation_of(&request), &*body_of(&request));
            let (status, body) = match operation {
                "TransactWriteItems" => wire.transact(body).await,
                "UpdateItem" => wire.write(operation, body),
                _ => wire.answer(operation, body),
            };
            sleep(wire.hop).await;
            match wire.loses() {
                None => {}
                Some(Loss::Broken) => return Err(ConnectorError::io("the connection broke".into())),
                Some(Loss::Silent) => std::future::pending().await,
            }
            response(status, body)
        })
    }
}

/// A store under the virtual clock, which began then.
pub(crate) fn store(client: &Client, begun: Instant, chance: Rng) -> Store {
    let base = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    Store::new(client).with_clock(Clock::new(move || base + begun.elapsed())).with_rng(chance)
}

/// The random numbers of a store.
pub(crate) fn chance(rng: fastrand::Rng) -> Rng {
    let rng = Mutex::new(rng);
    Rng::new(move || rng.lock().expect("no panic while drawing").u64(..))
}

/// Plays on virtual time.
pub(crate) fn paused<A>(played: impl Future<Output = A>) -> A {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime"), played)
}
