//! The fault seam: a connector between the real SDK and the embedded engine that loses, delays and doubles.
//!
//! Every fate is drawn from a seeded generator, and time is tokio's paused clock, so a seed replays exactly.
//! Deliveries run in tasks of their own: what a client gives up on may still arrive.

use crate::engine::{Engine, body_of, client_over, operation_of, response};
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

/// A request signed longer ago than this is refused unread.
const SIGNATURE_LIFE: Duration = Duration::from_mins(5);

/// How often each thing happens to a request, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// It never arrives.
    pub dropped: u32,
    /// It is applied, and its answer never arrives.
    pub answer_lost: u32,
    /// It is applied, and answered 500.
    pub applied_500: u32,
    /// It is not applied, and answered 500.
    pub refused_500: u32,
    /// It is held for up to five minutes and then delivered; nobody hears its answer.
    pub held: u32,
    /// After its answer, a second copy of it is delivered.
    pub second_copy: u32,
    /// It is throttled.
    pub throttled: u32,
    /// A transaction in flight refuses it.
    pub transaction_conflict: u32,
    /// It is denied.
    pub denied: u32,
    /// At any of its steps, the whole client stands still for up to seven minutes.
    pub frozen: u32,
}

/// A rule broken on purpose: the tests that do show that the histories notice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Broken {
    Nothing,
    /// Refusals show nobody's write ids: there is nothing to judge by.
    NoJudge,
    /// Refusals show the last writer's id alone.
    LastWriterOnly,
    /// A deleted row is gone at once: no tombstone.
    RowsDeleted,
    /// A lost answer is forgotten when the resend is throttled.
    ThrottlingClears,
}

/// A write that the engine applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Which operation of the history sent it.
    pub op: u64,
    pub time: Instant,
    /// The row right after it.
    pub row: Value,
}

/// What the wires of one history share.
pub struct Network {
    pub engine: Engine,
    pub rates: Rates,
    pub broken: Broken,
    pub applied: Mutex<Vec<Applied>>,
    pub rng: Mutex<fastrand::Rng>,
    pub table: &'static str,
    pub key: String,
}

/// One client's connection to the engine.
#[derive(Clone)]
pub struct Wire {
    network: Arc<Network>,
    /// The operation that the client is working on.
    op: Arc<Mutex<u64>>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Dropped,
    AnswerLost,
    Applied500,
    Refused500,
    Held,
    SecondCopy,
    Throttled,
    TransactionConflict,
    Denied,
}

impl Network {
    pub fn below(&self, bound: u64) -> u64 {
        self.rng.lock().expect("no panic while drawing").u64(0..bound.max(1))
    }

    fn fate(&self, write: bool) -> Fate {
        let rates = &self.rates;
        let fates = [
            (rates.dropped, Fate::Dropped),
            (rates.answer_lost, Fate::AnswerLost),
            (rates.applied_500, Fate::Applied500),
            (rates.refused_500, Fate::Refused500),
            (rates.throttled, Fate::Throttled),
            (rates.denied, Fate::Denied),
            (if write { rates.held } else { 0 }, Fate::Held),
            (if write { rates.second_copy } else { 0 }, Fate::SecondCopy),
            (if write { rates.transaction_conflict } else { 0 }, Fate::TransactionConflict),
        ];
        let mut drawn = u32::try_from(self.below(1000)).expect("below 1000");
        for (rate, fate) in fates {
            if drawn < rate {
                return fate;
            }
            drawn -= rate;
        }
        Fate::Answered
    }

    fn hop(&self) -> Duration {
        Duration::from_micros(1000 + self.below(9000))
    }
}

impl Wire {
    pub fn new(network: &Arc<Network>) -> Self {
        Wire { network: network.clone(), op: Arc::default() }
    }

    /// The real SDK over this wire.
    pub fn client(&self) -> Client {
        client_over(self.clone())
    }

    /// Says which operation the next requests belong to.
    pub fn works_on(&self, op: u64) {
        *self.op.lock().expect("no panic while setting") = op;
    }

    /// Lets the engine do what it was asked, and notes what was applied.
    fn deliver(&self, op: u64, operation: &str, body: &[u8]) -> (u16, String) {
        let network = &self.network;
        let (status, mut answer) = network.engine.answer(operation, body);
        if status == 200 && operation != "GetItem" {
            let row = network.engine.row(network.table, "id", &network.key);
            if network.broken == Broken::RowsDeleted && row.get("_purgeAt").is_some() {
                let request = json!({"TableName": network.table, "Key": {"id": {"S": network.key}}});
                network.engine.raw("DeleteItem", &request);
            }
            network.applied.lock().expect("no panic").push(Applied { op, time: Instant::now(), row });
        }
        if matches!(network.broken, Broken::NoJudge | Broken::LastWriterOnly) {
            answer = without_memory(&answer, network.broken == Broken::LastWriterOnly);
        }
        (status, answer)
    }

    /// One request's way there and back; `None` when the client never hears of it.
    async fn carry(self, op: u64, operation: String, body: Vec<u8>, fate: Fate) -> Option<(u16, String)> {
        let network = self.network.clone();
        let signed = Instant::now();
        sleep(network.hop()).await;
        if fate == Fate::Held {
            sleep(Duration::from_millis(network.below(330_000))).await;
        }
        if signed.elapsed() > SIGNATURE_LIFE {
            return Some((400, error("InvalidSignatureException")));
        }
        let answer = match fate {
            Fate::Dropped => return None,
            Fate::Throttled => (400, error("ThrottlingException")),
            Fate::Denied => (400, error("AccessDeniedException")),
            Fate::TransactionConflict => (400, error("TransactionConflictException")),
            Fate::Refused500 => (500, error("InternalServerError")),
            Fate::Applied500 => {
                self.deliver(op, &operation, &body);
                (500, error("InternalServerError"))
            }
            Fate::Answered | Fate::AnswerLost | Fate::Held | Fate::SecondCopy => self.deliver(op, &operation, &body),
        };
        if fate == Fate::SecondCopy {
            let wire = self.clone();
            tokio::spawn(async move {
                // After the answer is back, and within the life of the signature.
                sleep(Duration::from_millis(20 + wire.network.below(200_000))).await;
                wire.deliver(op, &operation, &body);
            });
        }
        sleep(network.hop()).await;
        let lost = matches!(fate, Fate::AnswerLost | Fate::Held);
        if lost && network.broken == Broken::ThrottlingClears {
            // What the loop would believe had the throttling of a resend wiped out the lost answer.
            return Some((400, error("ThrottlingException")));
        }
        (!lost).then_some(answer)
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = (operation_of(&request), body_of(&request));
        let op = *self.op.lock().expect("no panic while reading");
        let mut fate = self.network.fate(operation != "GetItem");
        if operation == "GetItem" && !String::from_utf8_lossy(&body).contains("\"ConsistentRead\":true") {
            fate = Fate::Dropped; // an eventually consistent read may say anything: none is ever answered
        }
        let (answered, answer) = oneshot::channel();
        let broken_off = self.network.below(2) == 0;
        let carried = self.clone().carry(op, operation, body, fate);
        tokio::spawn(async move {
            match carried.await {
                Some(answer) => drop(answered.send(answer)),
                None if broken_off => drop(answered),
                // Nothing comes, and the connection stays open.
                None => {
                    sleep(Duration::from_hours(1)).await;
                    drop(answered);
                }
            }
        });
        HttpConnectorFuture::new(async move {
            match answer.await {
                Ok((status, body)) => response(status, body),
                Err(_) => Err(ConnectorError::io("connection reset".into())),
            }
        })
    }
}

fn error(code: &str) -> String {
    json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "on purpose"}).to_string()
}

/// A refusal in which the row's memory of its writers is missing, or is that of the last one alone.
fn without_memory(answer: &str, keep_last: bool) -> String {
    let mut answer: Value = serde_json::from_str(answer).expect("answers are JSON");
    let version = answer["Item"]["_version"]["N"].as_str().and_then(|version| version.parse::<u64>().ok());
    if let (Some(version), Some(slots)) = (version, answer["Item"]["_writes"]["M"].as_object_mut()) {
        let last = (version % 16).to_string();
        slots.retain(|slot, _| keep_last && *slot == last);
    }
    answer.to_string()
}

/// A client that stands still now and then: while it does, nothing of it runs, its timers included.
pub struct Freezing<F> {
    inner: Pin<Box<F>>,
    network: Arc<Network>,
    frozen: Option<Pin<Box<Sleep>>>,
}

impl<F> Freezing<F> {
    pub fn new(network: &Arc<Network>, inner: F) -> Self {
        Freezing { inner: Box::pin(inner), network: network.clone(), frozen: None }
    }
}

impl<F: Future> Future for Freezing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.frozen.is_none() && this.network.below(1000) < u64::from(this.network.rates.frozen) {
            let millis = if this.network.below(4) == 0 { 420_000 } else { 2_000 };
            this.frozen = Some(Box::pin(sleep(Duration::from_millis(this.network.below(millis)))));
        }
        if let Some(frozen) = &mut this.frozen {
            if frozen.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.frozen = None;
        }
        this.inner.as_mut().poll(context)
    }
}
