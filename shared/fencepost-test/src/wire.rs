//! One client's connection to the engine and the fate of its requests.

use crate::answers::{self, error};
use crate::capacity::{Answered, Throttled};
use crate::connection::{Answer, Request, TRANSACTION, client_over, config, http_client};
use crate::engine::is_read;
use crate::fault::{Fault, Rival};
use crate::garbling::Garbled;
use crate::log::Outcome;
use crate::network::{Applied, Network, Touched};
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// How long a connection stays open on which nothing comes.
const OPEN: Duration = Duration::from_hours(1);

/// One client's connection to the engine. It is the HTTP connector of a client of the real SDK.
///
/// A request is delivered in a task of its own: it may still arrive after its client has given up.
#[derive(Clone)]
pub struct Wire {
    network: Arc<Network>,
    /// The operation that the client is working on.
    op: Arc<Mutex<u64>>,
    /// By how many milliseconds the client's clock is ahead now.
    ahead: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// The response to a client.
enum Came {
    Answer(Answer),
    Garbled(Garbled),
}

/// One request under way.
#[derive(Clone)]
struct Message {
    request: Request,
    signature: Signature,
    /// Its number in the log.
    number: usize,
    is_copy_of_refused: bool,
    rival: Option<Rival>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// A connection of a client of its own.
    pub fn new(network: &Arc<Network>) -> Self {
        Wire { network: network.clone(), op: Arc::default(), ahead: Arc::new(|| 0) }
    }

    /// The same for a client with a wrong clock, which is ahead by so many milliseconds, or behind if they are
    /// negative.
    ///
    /// A request is signed by that clock. It is refused if the service's clock differs from its date by more than five
    /// minutes when it arrives. So a clock that is ahead lets a request live longer.
    #[must_use]
    pub fn with_clock_ahead(mut self, millis: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        self.ahead = Arc::new(millis);
        self
    }

    /// The real SDK over this wire, with its retries switched off.
    pub fn client(&self) -> Client {
        client_over(self.clone())
    }

    /// The real SDK over this wire, with the retries that it has by default.
    pub fn retrying_client(&self) -> Client {
        Client::from_conf(config().http_client(http_client(self.clone())).build())
    }

    /// Says which operation of the test the next requests belong to.
    pub fn works_on(&self, op: u64) {
        *self.op.lock().expect("no panic while setting") = op;
    }

    /// The message for a client's request, its fault, and whether its client waits for ever without an answer.
    fn take(&self, request: &HttpRequest) -> (Message, Option<Fault>, bool) {
        let network = &self.network;
        let op = *self.op.lock().expect("no panic while reading");
        let mut request = Request { op, ..Request::read(request) };
        network.seam.leaves(network, &mut request);
        let resent = request.operation == TRANSACTION && network.came_before(&request);
        let steps = network.engine.steps_of(&request.operation, &request.body);
        let rule = network.planned(&request, &steps);
        let fault = match &rule {
            Some(rule) => Some(rule.fault),
            None => network.drawn(&request.operation, resent),
        };
        let fault = network.seam.fault(network, &request).or(fault).map(|fault| network.formed(fault));
        let is_silent = network.below(2) != 0;
        let is_silent = rule.as_ref().map_or(is_silent, |rule| rule.silent);
        let number = network.log_sent(&request, steps, fault);
        let rival = rule.and_then(|rule| rule.rival.clone());
        let signature = Signature::now((self.ahead)());
        (Message { request, signature, number, is_copy_of_refused: false, rival }, fault, is_silent)
    }

    /// Lets the engine execute the request, if its capacity and the transactions in flight let it, and notes the
    /// applied write.
    fn deliver(&self, message: &Message) -> Answer {
        let (network, Message { request, number, .. }) = (&self.network, message);
        let steps = network.engine.steps_of(&request.operation, &request.body);
        let throttled = network.capacities.throttled(request, &steps);
        if throttled.iter().any(Option::is_some) {
            return self.throttle(message, &throttled);
        }
        let before = network.capacities.sizes(&network.engine, &steps);
        let refused = network.holds.refuse(request, &steps);
        let replayed = request.token().is_some_and(|token| network.engine.remembers(token));
        let (answer, named) = refused.map_or_else(|| self.execute(request), |refused| (refused, 0.0));
        let is_replay = replayed || answer.code() == Some("TransactionInProgressException");
        let answered = Answered { request, answer: &answer, before, is_replay, named };
        let units = network.capacities.take(&network.engine, &steps, &answered);
        network.log_arrival(*number, Outcome::of(&answer), units);
        if answer.is_success() && !is_read(&request.operation) && !replayed {
            network.holds.hold(request, &steps);
            self.note(message);
        }
        answer
    }

    /// The answer to a request whose steps met these exhausted capacities. A batch is delivered without them.
    fn throttle(&self, message: &Message, met: &[Option<Throttled>]) -> Answer {
        let operation = &*message.request.operation;
        if operation.starts_with("Batch") && met.iter().any(Option::is_none) {
            return self.deliver_in_part(message.clone(), |_| met.iter().map(Option::is_some).collect());
        }
        let answer = if operation.starts_with("Transact") {
            answers::cancelled_by_throttling(met)
        } else {
            answers::throttled(&met.iter().flatten().cloned().collect::<Vec<_>>())
        };
        self.network.log_arrival(message.number, Outcome::of(&answer), BTreeMap::new());
        answer
    }

    /// The answer of the engine, and the units that it names for a `Query` or a `Scan`.
    fn execute(&self, request: &Request) -> (Answer, f64) {
        let (network, name) = (&self.network, "ReturnConsumedCapacity");
        let mut asked = Cow::Borrowed(request);
        let is_own = network.capacities.counts()
            && ["Query", "Scan"].contains(&&*request.operation)
            && request.body.get(name).is_none();
        if is_own {
            asked.to_mut().body[name] = json!("TOTAL");
        }
        let mut answer = network.seam.arrives(network, &asked);
        let named = answer.body["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or_default();
        if is_own && let Some(body) = answer.body.as_object_mut() {
            body.remove("ConsumedCapacity");
        }
        (answer, named)
    }

    fn note(&self, message: &Message) {
        let (network, Message { request, is_copy_of_refused, .. }) = (&self.network, message);
        let steps = network.engine.steps_of(&request.operation, &request.body).into_iter();
        let rows = steps.filter(|step| step.key != Value::Null).map(|step| {
            let row = network.engine.row_at(&step.table, &step.key);
            Touched { step, row }
        });
        let (op, is_copy_of_refused) = (request.op, *is_copy_of_refused);
        let applied = Applied { op, time: Instant::now(), rows: rows.collect(), is_copy_of_refused };
        network.seam.applied(network, &applied);
        network.applied().push(applied);
    }

    /// Delivers a copy after this time, if its signature lives as long. Its answer is lost.
    fn deliver_after(&self, message: Message, time: impl FnOnce(&Network) -> Duration + Send + 'static) {
        let (wire, under_way) = (self.clone(), self.network.under_way());
        tokio::spawn(async move {
            sleep(time(&wire.network)).await;
            if message.signature.is_valid() {
                wire.deliver(&message);
            }
            drop(under_way);
        });
    }

    /// One request's way there and back; `None` when the client never hears of it.
    async fn carry(self, message: Message, fault: Option<Fault>) -> Option<Came> {
        let network = self.network.clone();
        let signature = message.signature;
        sleep(network.hop()).await;
        match fault {
            Some(Fault::Held) => {
                sleep(Duration::from_millis(network.below(330_000 + signature.lives_longer()))).await;
            }
            Some(Fault::Delayed(time)) => sleep(time).await,
            _ => {}
        }
        if !signature.is_valid() {
            return Some(Came::Answer(error(400, "InvalidSignatureException")));
        }
        let time = network.holds.time_of(&message.request);
        let lost = network.seam.lost(&message.request);
        let answer = self.arrive(message, fault)?;
        sleep(time).await;
        sleep(network.hop()).await;
        match fault {
            Some(Fault::AnswerLost | Fault::Held) => lost.map(Came::Answer),
            Some(Fault::GarbledAs { form, .. }) => {
                let seed = network.below(u64::MAX);
                Some(Came::Garbled(Garbled::of(answer.status, answer.body.to_string(), form, seed)))
            }
            _ => Some(Came::Answer(answer)),
        }
    }

    /// The answer to a request that has reached the service; `None` if it has not.
    fn arrive(&self, message: Message, fault: Option<Fault>) -> Option<Answer> {
        let network = &self.network;
        if let Some(rival) = &message.rival {
            rival(&network.engine);
        }
        Some(match fault {
            Some(Fault::Dropped) => return None,
            Some(Fault::Throttled) => self.throttled(&message.request),
            Some(Fault::Denied) => error(400, "AccessDeniedException"),
            Some(Fault::TransactionConflict) => self.meet_transactions(&message.request),
            Some(Fault::Conflict) => self.lose_race(&message),
            Some(Fault::Mismatch) => error(400, "IdempotentParameterMismatchException"),
            Some(Fault::Refused500) => error(500, "InternalServerError"),
            Some(Fault::Applied500) => {
                self.deliver(&message);
                error(500, "InternalServerError")
            }
            Some(Fault::InProgress) => {
                let longer = message.signature.lives_longer();
                self.deliver_after(message, move |network| Duration::from_millis(20 + network.below(5_000 + longer)));
                error(400, "TransactionInProgressException")
            }
            Some(Fault::TokensForgotten) => {
                network.engine.forget_tokens();
                self.deliver(&message)
            }
            Some(Fault::MixedReasons) => {
                let mut answer = self.deliver(&message);
                answers::mix_reasons(&mut answer.body, |count| network.some_of(count));
                answer
            }
            Some(Fault::Unprocessed) => self.deliver_in_part(message, |count| network.some_of(count)),
            Some(Fault::SecondCopy | Fault::CopiedAfter(_)) => {
                let answer = self.deliver(&message);
                let copy = Message { is_copy_of_refused: !answer.is_success(), ..message };
                let left = copy.signature.left();
                self.deliver_after(copy, move |network| match fault {
                    Some(Fault::CopiedAfter(time)) => time,
                    _ => network.copied_after(left),
                });
                answer
            }
            Some(Fault::GarbledAs { executed: false, .. }) => Answer { status: 200, body: json!({}) },
            None
            | Some(
                Fault::AnswerLost
                | Fault::Held
                | Fault::Delayed(_)
                | Fault::Frozen(_)
                | Fault::Garbled
                | Fault::GarbledAs { executed: true, .. },
            ) => self.deliver(&message),
        })
    }

    fn throttled(&self, request: &Request) -> Answer {
        let steps = self.network.engine.steps_of(&request.operation, &request.body);
        answers::throttled(&steps.iter().map(|step| Throttled::by_partition(request, step)).collect::<Vec<_>>())
    }

    fn meet_transactions(&self, request: &Request) -> Answer {
        if request.operation != TRANSACTION {
            return error(400, "TransactionConflictException");
        }
        let steps = request.body["TransactItems"].as_array().map_or(0, Vec::len);
        answers::cancelled_by_conflict(&self.network.some_of(steps))
    }

    /// If another writer was really first, the engine judges the condition. Else the condition is said to fail.
    fn lose_race(&self, message: &Message) -> Answer {
        let engine = &self.network.engine;
        if message.rival.is_some() {
            return self.deliver(message);
        }
        let steps = engine.steps_of(&message.request.operation, &message.request.body);
        let refused = answers::refused(&message.request, |step| engine.row_at(&steps[step].table, &steps[step].key));
        self.network.log_arrival(message.number, Outcome::of(&refused), BTreeMap::new());
        refused
    }

    /// Delivers a batch without some of its members, which come back as unprocessed. Where none is left, it is
    /// throttled.
    fn deliver_in_part(&self, mut message: Message, some_of: impl Fn(usize) -> Vec<bool>) -> Answer {
        let unprocessed = if is_read(&message.request.operation) { "UnprocessedKeys" } else { "UnprocessedItems" };
        let left_out = answers::leave_out(&mut message.request.body, some_of);
        if message.request.body["RequestItems"].as_object().is_none_or(serde_json::Map::is_empty) {
            return error(400, "ProvisionedThroughputExceededException");
        }
        let mut answer = self.deliver(&message);
        if answer.is_success() {
            answer.body[unprocessed] = left_out;
        }
        answer
    }
}

impl Came {
    fn outcome(&self) -> Outcome {
        match self {
            Came::Answer(answer) => Outcome::of(answer),
            Came::Garbled(garbled) => Outcome::Garbled(garbled.form),
        }
    }

    fn into_response(self) -> Result<HttpResponse, ConnectorError> {
        match self {
            Came::Answer(answer) => answer.into_response(),
            Came::Garbled(garbled) => garbled.into_response(),
        }
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (message, fault, is_silent) = self.take(&request);
        if let Some(Fault::Frozen(time)) = fault {
            self.network.freeze(time);
        }
        let (answered, answer) = oneshot::channel();
        let (network, number) = (self.network.clone(), message.number);
        let (carried, under_way) = (self.clone().carry(message, fault), self.network.under_way());
        tokio::spawn(async move {
            let carried = carried.await;
            drop(under_way);
            if let Some(came) = carried {
                let outcome = came.outcome();
                if answered.send(came).is_ok() {
                    network.log_heard(number, outcome);
                }
                return;
            }
            if is_silent {
                sleep(OPEN).await; // nothing comes
            }
            if !answered.is_closed() {
                network.log_heard(number, Outcome::Reset);
            }
        });
        HttpConnectorFuture::new(async move {
            match answer.await {
                Ok(answer) => answer.into_response(),
                Err(_) => Err(ConnectorError::io("connection reset".into())),
            }
        })
    }
}

/// A request is refused unread if its date differs from the service's clock by more than this.
const LIFE: Duration = Duration::from_mins(5);

/// The date that a request was signed with, by the clock of its client.
#[derive(Clone, Copy, Debug)]
struct Signature {
    signed: Instant,
    /// By how many milliseconds the client's clock was ahead then.
    ahead: i64,
}

impl Signature {
    fn now(ahead: i64) -> Self {
        Signature { signed: Instant::now(), ahead }
    }

    /// Whether it is accepted now.
    fn is_valid(self) -> bool {
        let age = i128::try_from(self.signed.elapsed().as_micros()).expect("small") - i128::from(self.ahead) * 1000;
        age.unsigned_abs() <= LIFE.as_micros()
    }

    /// For how many milliseconds it is still accepted.
    fn left(self) -> u64 {
        let life = i128::try_from(LIFE.as_millis()).expect("small") + i128::from(self.ahead);
        let left = life - i128::try_from(self.signed.elapsed().as_millis()).expect("small");
        u64::try_from(left).unwrap_or_default()
    }

    /// For how many milliseconds more it lives than one that was dated right.
    fn lives_longer(self) -> u64 {
        u64::try_from(self.ahead).unwrap_or_default()
    }
}
