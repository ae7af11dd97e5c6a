//! One client's connection to the engine, and what becomes of the requests on it.

use super::answers::{self, error};
use super::breaking;
use super::forgetting;
use super::network::{Applied, Broken, Fate, Network, TRANSACTION, Touched};
use crate::harness::engine::{Step, body_of, client_over, is_read, operation_of, response};
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// A request signed longer ago than this is refused unread.
const SIGNATURE_LIFE: Duration = Duration::from_mins(5);

/// One client's connection to the engine.
#[derive(Clone)]
pub struct Wire {
    network: Arc<Network>,
    /// The operation that the client is working on.
    op: Arc<Mutex<u64>>,
}

/// One request under way.
#[derive(Clone, Debug)]
struct Message {
    op: u64,
    operation: String,
    body: Value,
    is_copy_of_refused: bool,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
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

    /// What goes over the wire for a client's request, and whether it is a transaction that was sent before.
    fn take(&self, request: &HttpRequest) -> (Message, bool) {
        let (network, op) = (&self.network, *self.op.lock().expect("no panic while reading"));
        let body: Value = serde_json::from_slice(&body_of(request)).expect("requests are JSON");
        let mut message = Message { op, operation: operation_of(request), body, is_copy_of_refused: false };
        let body = &mut message.body;
        breaking::without_rule(body, network.broken);
        forgetting::without_rule(body, network.broken);
        if message.operation != TRANSACTION {
            match network.broken {
                Broken::NoCondition => breaking::without_condition(body),
                Broken::OnlyEqual => breaking::with_equality(body),
                Broken::FreshIds => forgetting::with_fresh_id(body, network),
                _ => {}
            }
            return (message, false);
        }
        if network.broken == Broken::TokenReused {
            body["ClientRequestToken"] = json!(network.first_token_of(op, &body["ClientRequestToken"]));
        }
        let resent = network.seen_before(op, body);
        if network.broken == Broken::NoIdInTransactions {
            breaking::without_ids(body);
        }
        (message, resent)
    }

    /// Lets the engine do what it was asked, and notes what was applied.
    fn deliver(&self, message: &Message) -> (u16, Value) {
        let (network, Message { operation, body, .. }) = (&self.network, message);
        let replayed = body["ClientRequestToken"].as_str().is_some_and(|token| network.engine.remembers(token));
        let before = self.before(operation, body);
        let (status, answer) = network.engine.answer(operation, body.to_string().as_bytes());
        if status == 200 {
            for (Step { table, id, .. }, before) in &before {
                forgetting::forget(network, table, id, before);
            }
        }
        let mut answer = serde_json::from_str(&answer).expect("answers are JSON");
        if status == 200 && !is_read(operation) && !replayed {
            self.note(message, network.engine.steps_of(operation, body));
        }
        match network.broken {
            Broken::NoJudge => breaking::without_memory(&mut answer, false),
            Broken::LastWriterOnly => breaking::without_memory(&mut answer, true),
            Broken::BurnsIgnored => forgetting::without_burns(&mut answer),
            Broken::GuardBeforeJudge => breaking::without_own_traces(&mut answer, body),
            _ => {}
        }
        (status, answer)
    }

    /// The rows that a write will touch, where a broken rule makes them forget.
    fn before(&self, operation: &str, body: &Value) -> Vec<(Step, Value)> {
        let Network { engine, broken, .. } = &*self.network;
        if is_read(operation) || !matches!(broken, Broken::Forgets { .. } | Broken::RevivedWithoutMemory) {
            return Vec::new();
        }
        let row = |step: &Step| engine.row(&step.table, engine.key_of(&step.table), &step.id);
        engine.steps_of(operation, body).into_iter().map(|step| (step.clone(), row(&step))).collect()
    }

    fn note(&self, message: &Message, steps: Vec<Step>) {
        let engine = &self.network.engine;
        let touched = |step: Step| {
            let row = engine.row(&step.table, engine.key_of(&step.table), &step.id);
            Touched { step, row }
        };
        let rows: Vec<_> = steps.into_iter().map(touched).collect();
        for Touched { step, row } in &rows {
            let gone = match self.network.broken {
                Broken::RowsDeleted => row.get("_purgeAt").is_some(),
                Broken::LeasesDeleted => row.get("token").is_some() && row.get("holder").is_none(),
                _ => false,
            };
            if gone {
                let key = json!({engine.key_of(&step.table): {"S": step.id}});
                engine.raw("DeleteItem", &json!({"TableName": step.table, "Key": key}));
            }
        }
        let Message { op, is_copy_of_refused, .. } = *message;
        let applied = Applied { op, time: Instant::now(), rows, is_copy_of_refused };
        self.network.applied.lock().expect("no panic").push(applied);
    }

    /// Delivers a copy within so many milliseconds; nobody hears its answer.
    fn deliver_later(&self, message: Message, within: u64) {
        let wire = self.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(20 + wire.network.below(within))).await;
            wire.deliver(&message);
        });
    }

    /// One request's way there and back; `None` when the client never hears of it.
    async fn carry(self, message: Message, fate: Fate) -> Option<(u16, Value)> {
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
            Fate::TransactionConflict if message.operation == TRANSACTION => {
                let steps = message.body["TransactItems"].as_array().map_or(0, Vec::len);
                (400, answers::cancelled_by_conflict(&network.some_of(steps)))
            }
            Fate::TransactionConflict => (400, error("TransactionConflictException")),
            Fate::Mismatch => (400, error("IdempotentParameterMismatchException")),
            Fate::Refused500 => (500, error("InternalServerError")),
            Fate::Applied500 => {
                self.deliver(&message);
                (500, error("InternalServerError"))
            }
            Fate::InProgress => {
                self.deliver_later(message, 5_000);
                (400, error("TransactionInProgressException"))
            }
            Fate::TokensForgotten => {
                network.engine.forget_tokens();
                self.deliver(&message)
            }
            Fate::MixedReasons => {
                let (status, mut answer) = self.deliver(&message);
                answers::mix_reasons(&mut answer, |count| network.some_of(count));
                (status, answer)
            }
            Fate::Unprocessed => self.deliver_in_part(message),
            Fate::Answered | Fate::AnswerLost | Fate::Held => self.deliver(&message),
            Fate::SecondCopy => {
                let answer = self.deliver(&message);
                // After the answer is back, and within the life of the signature.
                self.deliver_later(Message { is_copy_of_refused: answer.0 != 200, ..message }, 200_000);
                answer
            }
        };
        sleep(network.hop()).await;
        let lost = matches!(fate, Fate::AnswerLost | Fate::Held);
        if lost && network.broken == Broken::ThrottlingClears {
            // What the loop would believe had the throttling of a resend wiped out the lost answer.
            return Some((400, error("ThrottlingException")));
        }
        (!lost).then_some(answer)
    }

    /// Delivers some of the keys of a batch; the others come back as unprocessed. Where none is left, it is throttled.
    fn deliver_in_part(&self, mut message: Message) -> (u16, Value) {
        let left_out = answers::leave_out(&mut message.body, |count| self.network.some_of(count));
        if message.body["RequestItems"].as_object().is_none_or(serde_json::Map::is_empty) {
            return (400, error("ProvisionedThroughputExceededException"));
        }
        let (status, mut answer) = self.deliver(&message);
        if status == 200 {
            answer["UnprocessedKeys"] = left_out;
        }
        (status, answer)
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (message, resent) = self.take(&request);
        let mut fate = self.network.fate(&message.operation, resent);
        if answers::may_be_stale(&message.operation, &message.body) {
            fate = Fate::Dropped; // an eventually consistent read may say anything: none is ever answered
        }
        let (answered, answer) = oneshot::channel();
        let broken_off = self.network.below(2) == 0;
        let carried = self.clone().carry(message, fate);
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
                Ok((status, body)) => response(status, body.to_string()),
                Err(_) => Err(ConnectorError::io("connection reset".into())),
            }
        })
    }
}
