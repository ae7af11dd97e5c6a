//! The embedded engine behind a connector that adds delays and counts requests.

use crate::table;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient, retry::RetryConfig};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dynoxide::{Database, DynoxideError};
use fencepost_test::size_of_item;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A connection to the engine that takes `hop` in each direction.
///
/// A transaction works for another `hop`. Another transaction or a single write on one of its items in that time gets
/// `TransactionConflict`, as on AWS. The engine itself never returns it.
#[derive(Clone)]
pub struct Wire {
    db: Database,
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
            db: table::engine(),
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
        let connector = SharedHttpConnector::new(self.clone());
        client("http://engine.invalid", http_client_fn(move |_, _| connector.clone()))
    }

    /// Carries out a request. Returns the status and the body of the answer.
    pub(crate) fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        match operation {
            "GetItem" => run(body, |request| self.db.get_item(request)),
            "PutItem" => run(body, |request| self.db.put_item(request)),
            "UpdateItem" => run(body, |request| self.db.update_item(request)),
            "BatchGetItem" => run(body, |request| self.db.batch_get_item(request)),
            "TransactWriteItems" => run(body, |request| self.db.transact_write_items(request)),
            "Scan" => run(body, |request| self.db.scan(request)),
            other => (501, format!("{other} is not measured")),
        }
    }

    /// Carries out a write of one item, unless a transaction is at work there.
    fn write(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let item = address(&request);
        if self.at_work.lock().expect("no panic while at work").contains(&item) {
            return (
                400,
                json!({ "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException" }).to_string(),
            );
        }
        let answer = self.answer(operation, body);
        if let Some(units) = &self.units {
            units.fetch_add(self.units_of(&request), SeqCst);
        }
        answer
    }

    /// The write units of a request, by the item as it is now. A refused write is charged too.
    fn units_of(&self, request: &Value) -> u64 {
        let read = json!({ "TableName": request["TableName"], "Key": request["Key"], "ConsistentRead": true });
        let (_, answer) = self.answer("GetItem", read.to_string().as_bytes());
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let bytes = size_of_item(&answer["Item"]);
        u64::try_from(bytes.div_ceil(1024).max(1)).unwrap_or(u64::MAX)
    }

    async fn transact(&self, body: &[u8]) -> (u16, String) {
        let items = if self.is_patient { Vec::new() } else { updated_items(body) };
        if let Some(conflict) = self.begin(&items) {
            return (400, conflict.to_string());
        }
        tokio::time::sleep(self.hop).await;
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
            tokio::time::sleep(wire.hop).await;
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default();
            let body = request.body().bytes().unwrap_or_default();
            let (status, body) = match operation {
                "TransactWriteItems" => wire.transact(body).await,
                "UpdateItem" => wire.write(operation, body),
                _ => wire.answer(operation, body),
            };
            tokio::time::sleep(wire.hop).await;
            match wire.loses() {
                None => {}
                Some(Loss::Broken) => return Err(ConnectorError::io("the connection broke".into())),
                Some(Loss::Silent) => std::future::pending().await,
            }
            let status = status.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
            Ok(HttpResponse::new(status, SdkBody::from(body)))
        })
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> (u16, String) {
    let Ok(request) = serde_json::from_slice(body) else { return (400, "{}".to_owned()) };
    match operation(request) {
        Ok(answer) => (200, serde_json::to_string(&answer).unwrap_or_default()),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

/// A client with fixed credentials and without retries.
pub fn client(endpoint: &str, http: SharedHttpClient) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(http)
        .build();
    Client::from_conf(config)
}
