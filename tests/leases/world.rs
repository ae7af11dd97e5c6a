//! Both functions on one engine, the clock that the test moves, and the events that they are sent.

use crate::devices::world::{Answer, Event, context};
use crate::harness::engine::{Engine, body_of, client_over, is_read, operation_of, response, store};
use crate::shop::shop::{client_whose, load};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::timestamp::Timestamp;
use fencepost::{Call, Deadline, LeaseTerms, Leases, Store};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

pub const LEASES: &str = "Leases";
pub const CHILDREN: &str = "Children";
/// The tables of both functions, each with its key.
pub const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId")];
/// 10:00 on 7 March 2026.
const OPENED: u64 = 1_772_877_600_000;
pub const SKEW: u64 = 1_000;

/// Time of day that runs with tokio's, which is to be paused, and can be set forward beside it.
#[derive(Clone)]
pub struct Clock {
    start: Instant,
    ahead: Arc<AtomicU64>,
}

impl Clock {
    fn new() -> Self {
        Clock { start: Instant::now(), ahead: Arc::default() }
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        OPENED + millis(self.start.elapsed()) + self.ahead.load(SeqCst)
    }

    /// As a moment in the answers.
    pub fn shows(&self, in_millis: u64) -> String {
        Timestamp::from_epoch_millis(self.now() + in_millis).expect("a moment").to_string()
    }

    /// Sets the time of day forward and leaves the monotonic clock where it is, as if the machine had stood still.
    pub fn set_forward(&self, millis: u64) {
        self.ahead.fetch_add(millis, SeqCst);
    }

    /// A store under this clock.
    pub fn store(&self, client: &Client) -> Store {
        let clock = self.clone();
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.now());
        store(client, now, || fastrand::u64(..))
    }
}

/// Both functions, the engine and the clock. It needs paused time.
pub struct World {
    pub engine: Engine,
    pub clock: Clock,
    /// The same table of leases, for what has no route.
    pub leases: Leases,
    lease: lease::App,
    children: ensure_child::App,
}

impl World {
    /// Nothing is stored; it is 10:00 on 7 March 2026; clocks may be a second apart.
    pub fn new() -> Self {
        Self::on(&Engine::with_tables(TABLES))
    }

    pub fn on(engine: &Engine) -> Self {
        Self::under(engine, &engine.client(), Clock::new())
    }

    /// The same engine and clock, reached by another client.
    pub fn reached_by(&self, client: &Client) -> Self {
        Self::under(&self.engine, client, self.clock.clone())
    }

    fn under(engine: &Engine, client: &Client, clock: Clock) -> Self {
        let store = clock.store(client);
        let leases = store.leases(LEASES);
        World {
            engine: engine.clone(),
            lease: lease::App::new(leases.clone()),
            children: ensure_child::App::new(store.table(CHILDREN), leases.clone()),
            leases,
            clock,
        }
    }

    pub async fn pass(&self, millis: u64) {
        tokio::time::advance(Duration::from_millis(millis)).await;
    }

    pub async fn send(&self, event: &Event) -> Answer {
        let payload: ApiGatewayV2httpRequest = serde_json::from_str(&event.0.to_string()).expect("an event");
        let sent = LambdaEvent::new(payload, context(Duration::from_secs(10)));
        let answer = if event.0["rawPath"].as_str().expect("a path").starts_with("/leases") {
            Box::pin(fencepost::lambda::respond(&self.lease, &lease::handle, sent)).await
        } else {
            Box::pin(fencepost::lambda::respond(&self.children, &ensure_child::handle, sent)).await
        };
        answer.into()
    }

    /// Acquires a lease that is free; gives its token.
    pub async fn acquired(&self, key: &str, holder: &str, seconds: u64) -> u64 {
        token(&self.send(&acquire(key, holder, seconds)).await.shown(201))
    }

    /// The row of a lease as it is stored.
    pub fn row(&self, key: &str) -> Value {
        self.engine.row(LEASES, "leaseKey", key)
    }

    /// Removes the row of a lease, as TTL does.
    pub fn purge(&self, key: &str) {
        self.engine.raw("DeleteItem", &json!({"TableName": LEASES, "Key": {"leaseKey": {"S": key}}}));
    }

    /// Sends an event that is refused as bad input: the answer names the field, and `DynamoDB` was not even asked.
    pub async fn bad_input(&self, event: &Event, code: &str, field: &str) {
        self.engine.take_log();
        let answer = self.send(event).await;
        assert_eq!(answer.says(400, code)["field"], field, "{event:?}");
        answer.check_problem();
        assert_eq!(self.engine.take_counts(), (0, 0), "{event:?}");
    }

    /// Sends an event that is refused with this status and code, and costs so many reads and writes; no row of a lease
    /// or a child is another one afterwards.
    pub async fn refused(&self, event: &Event, status: i64, code: &str, counts: (usize, usize)) -> Value {
        let key = event.0["pathParameters"]["leaseKey"].as_str().unwrap_or("nobody's");
        let before = self.row(key);
        self.engine.take_log();
        let answer = self.send(event).await;
        let problem = answer.says(status, code);
        answer.check_problem();
        assert_eq!((self.engine.take_counts(), self.row(key)), (counts, before), "{event:?}");
        problem
    }
}

pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("small")
}

/// A call that ends in so many seconds.
pub fn call(seconds: u64) -> Call {
    Call::new(Deadline::within(Duration::from_secs(seconds)))
}

/// A lease of so many milliseconds, renewed when half of them are over.
pub fn terms(millis: u64) -> LeaseTerms {
    LeaseTerms::new(Duration::from_millis(millis)).expect("long enough")
}

fn of(mut event: Event, parameter: &str, id: &str) -> Event {
    let before = event.0["pathParameters"][parameter].as_str().expect("a parameter");
    let path = event.0["rawPath"].as_str().expect("a path").replace(before, id);
    event.0["rawPath"] = json!(path);
    event.0["requestContext"]["http"]["path"] = json!(path);
    event.0["pathParameters"][parameter] = json!(id);
    event
}

/// With this query and no other.
pub fn asking(mut event: Event, parameters: &[(&str, &str)]) -> Event {
    let query: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    event.0["rawQueryString"] = json!(query.join("&"));
    event.0["queryStringParameters"] = parameters.iter().map(|(name, value)| (*name, *value)).collect();
    event
}

/// Acquires a lease for so many seconds.
pub fn acquire(key: &str, holder: &str, seconds: u64) -> Event {
    of(load("lease-acquire"), "leaseKey", key).text(&json!({"holder": holder, "ttlSeconds": seconds}).to_string())
}

/// Renews a lease for so many seconds.
pub fn renew(key: &str, token: u64, seconds: u64) -> Event {
    of(load("lease-renew"), "leaseKey", key).text(&json!({"token": token, "ttlSeconds": seconds}).to_string())
}

pub fn release(key: &str, token: u64) -> Event {
    asking(of(load("lease-release"), "leaseKey", key), &[("token", &token.to_string())])
}

pub fn shown_lease(key: &str) -> Event {
    of(load("lease-get"), "leaseKey", key)
}

/// Wants the child of a parent, without a lease.
pub fn ensure(parent: &str, uid: &str, spec: &Value) -> Event {
    let body = json!({"parentUid": uid, "spec": spec});
    of(load("ensure-child-ensure"), "parentId", parent).text(&body.to_string())
}

/// The same under a lease.
pub fn ensure_under(parent: &str, uid: &str, spec: &Value, (key, token): (&str, u64)) -> Event {
    let body = json!({"parentUid": uid, "spec": spec, "lease": {"key": key, "token": token}});
    of(load("ensure-child-ensure"), "parentId", parent).text(&body.to_string())
}

pub fn shown_child(parent: &str, uid: &str) -> Event {
    asking(of(load("ensure-child-get"), "parentId", parent), &[("parentUid", uid)])
}

/// The token of a lease as it is shown.
pub fn token(lease: &Value) -> u64 {
    lease["token"].as_u64().unwrap_or_else(|| panic!("a token that is a number: {lease}"))
}

/// What becomes of a request on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// It is answered after this many milliseconds.
    Answered(u64),
    /// It is applied, and nobody hears its answer.
    AnswerLost,
    /// It never arrives.
    Dropped,
    /// It is not applied, for a transaction holds the row.
    InTransaction,
    /// It is not applied, for it is not allowed.
    Denied,
}

/// A client each of whose requests fares as the test says, which is told how many came before.
pub fn client_that(engine: &Engine, way: impl Fn(usize) -> Way + Send + Sync + 'static) -> Client {
    client_over(Wayward { engine: engine.clone(), requests: AtomicUsize::new(0), way })
}

struct Wayward<F> {
    engine: Engine,
    requests: AtomicUsize,
    way: F,
}

impl<F> std::fmt::Debug for Wayward<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wayward")
    }
}

fn error(code: &str) -> String {
    json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "on purpose"}).to_string()
}

impl<F: Fn(usize) -> Way + Send + Sync> HttpConnector for Wayward<F> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let ask = || self.engine.answer(&operation_of(&request), &body_of(&request));
        match (self.way)(self.requests.fetch_add(1, SeqCst)) {
            Way::Answered(millis) => {
                let (engine, operation, body) = (self.engine.clone(), operation_of(&request), body_of(&request));
                HttpConnectorFuture::new(async move {
                    let half = Duration::from_millis(millis) / 2;
                    tokio::time::sleep(half).await;
                    let (status, body) = engine.answer(&operation, &body);
                    tokio::time::sleep(half).await;
                    response(status, body)
                })
            }
            Way::AnswerLost => {
                ask();
                HttpConnectorFuture::new(std::future::pending())
            }
            Way::Dropped => HttpConnectorFuture::new(std::future::pending()),
            Way::InTransaction => HttpConnectorFuture::ready(response(400, error("TransactionConflictException"))),
            Way::Denied => HttpConnectorFuture::ready(response(400, error("AccessDeniedException"))),
        }
    }
}

/// A client whose requests are answered by the test, which learns how many writes came before, the operation and its body.
pub fn client_whose_writes(
    engine: &Engine,
    answer: impl Fn(&Engine, usize, &str, &[u8]) -> (u16, String) + Send + Sync + 'static,
) -> Client {
    let writes = AtomicUsize::new(0);
    client_whose(engine, move |engine, _, operation, body| {
        let before = writes.fetch_add(usize::from(!is_read(operation)), SeqCst);
        answer(engine, before, operation, body)
    })
}
