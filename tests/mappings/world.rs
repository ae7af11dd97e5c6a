//! Both functions on one engine, the events and batches that they are sent, and what they leave behind.

use crate::devices::world::{Answer, Event, context};
use crate::harness::engine::{Engine, store};
use crate::shop::shop::{client_whose, load};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::sqs::SqsEvent;
use aws_sdk_dynamodb::Client;
use fencepost::lambda::{Error, respond, respond_batch};
use fencepost::{Call, Deadline};
use lambda_runtime::LambdaEvent;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

pub const MAPPINGS: &str = "HostToCellMapping";
pub const KEY: &str = "hostIp";
/// The table of both functions, with its key.
pub const TABLES: &[(&str, &str)] = &[(MAPPINGS, KEY)];

/// The address that most tests are about.
pub const IP: &str = "192.0.2.10";
/// Moments at which instances are created, the oldest first.
pub const T1: &str = "2026-03-07T10:00:00.000Z";
pub const T2: &str = "2026-03-07T10:30:00.000Z";
pub const T3: &str = "2026-03-07T10:45:00.000Z";
/// The first two of them, in milliseconds since 1970.
pub const T1_MS: u64 = 1_772_877_600_000;
pub const T2_MS: u64 = 1_772_879_400_000;
/// When the functions start: 11:00 on 7 March 2026, in milliseconds since 1970.
pub const START_MS: u64 = 1_772_881_200_000;
pub const DAY_MS: u64 = 24 * 3_600_000;
/// What Lambda allows an invocation.
const ALLOWED: Duration = Duration::from_secs(10);

/// Both functions, one engine, and a clock that only the test moves.
pub struct World {
    pub engine: Engine,
    hosts: host_mapping::App,
    deletes: delete_mapping::App,
    clock_ms: Arc<AtomicU64>,
}

impl World {
    /// Nothing is stored.
    pub fn new() -> Self {
        Self::on(&Engine::with_tables(TABLES))
    }

    /// Newly started on this engine.
    pub fn on(engine: &Engine) -> Self {
        Self::under(&engine.client(), engine.clone(), Arc::new(AtomicU64::new(START_MS)))
    }

    /// The same functions, engine and clock, reached by another client.
    pub fn reached_by(&self, client: &Client) -> Self {
        Self::under(client, self.engine.clone(), self.clock_ms.clone())
    }

    fn under(client: &Client, engine: Engine, clock_ms: Arc<AtomicU64>) -> Self {
        let clock = clock_ms.clone();
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.load(SeqCst));
        let store = store(client, now, || fastrand::u64(..));
        let hosts = host_mapping::App::new(store.lww_table(MAPPINGS));
        let deletes = delete_mapping::App::new(store.lww_table(MAPPINGS));
        World { engine, hosts, deletes, clock_ms }
    }

    pub fn pass(&self, milliseconds: u64) {
        self.clock_ms.fetch_add(milliseconds, SeqCst);
    }

    pub async fn send(&self, event: &Event) -> Answer {
        let payload: ApiGatewayV2httpRequest = serde_json::from_str(&event.0.to_string()).expect("an event");
        let event = LambdaEvent::new(payload, context(ALLOWED));
        Box::pin(respond(&self.hosts, &host_mapping::handle, event)).await.into()
    }

    pub async fn register(&self, ip: &str, instance: &str, at: &str) -> Answer {
        self.send(&registration(ip, instance, at)).await
    }

    /// Registers what must be new.
    pub async fn stands(&self, ip: &str, instance: &str, at: &str) {
        self.register(ip, instance, at).await.shown(201);
    }

    pub async fn get(&self, ip: &str) -> Answer {
        self.send(&look_up(ip)).await
    }

    /// The instance behind an address as it is shown; `None` where none is.
    pub async fn instance(&self, ip: &str) -> Option<String> {
        let answer = self.get(ip).await;
        if answer.status == 404 {
            answer.says(404, "mapping_not_found");
            return None;
        }
        Some(answer.shown(200)["instanceId"].as_str().expect("an instance").to_owned())
    }

    pub async fn remove(&self, ip: &str, at: &str, instance: Option<&str>) -> Answer {
        self.send(&deletion(ip, at, instance)).await
    }

    /// Deletes by HTTP, which must not fail, and gives the outcome.
    pub async fn delete(&self, ip: &str, at: &str, instance: Option<&str>) -> String {
        self.remove(ip, at, instance).await.outcome()
    }

    /// Sends a batch and gives the ids of those of its messages that shall come again, each of which is in it.
    pub async fn batch(&self, batch: &Value) -> Vec<String> {
        self.batch_within(ALLOWED, batch).await
    }

    /// The same where Lambda allows the invocation so much time.
    pub async fn batch_within(&self, time: Duration, batch: &Value) -> Vec<String> {
        let answer = self.invoke(time, batch).await.expect("an answer to the batch");
        assert_eq!(answer.as_object().map(Map::len), Some(1), "{answer}");
        let id = |failure: &Value| {
            assert_eq!(failure.as_object().map(Map::len), Some(1), "{answer}");
            failure["itemIdentifier"].as_str().expect("an id").to_owned()
        };
        let failed: Vec<_> = answer["batchItemFailures"].as_array().expect("a list").iter().map(id).collect();
        let sent = ids_of(batch);
        let distinct: BTreeSet<_> = failed.iter().cloned().collect();
        assert!(distinct.is_subset(&sent), "{failed:?} of {sent:?}");
        assert_eq!(distinct.len(), failed.len(), "each is reported once: {failed:?}");
        failed
    }

    /// What Lambda is answered for a batch.
    pub async fn invoke(&self, time: Duration, batch: &Value) -> Result<Value, Error> {
        let payload: SqsEvent = serde_json::from_str(&batch.to_string()).expect("a batch");
        let event = LambdaEvent::new(payload, context(time));
        let answer = Box::pin(respond_batch(&self.deletes, &delete_mapping::handle, event)).await?;
        Ok(serde_json::to_value(answer).expect("JSON"))
    }

    /// Hands messages to the function itself, and gives for each its outcome, or the code and the field of its problem.
    pub async fn outcomes(&self, bodies: &[&str]) -> Vec<Result<&'static str, (&'static str, String)>> {
        self.outcomes_within(ALLOWED, bodies).await
    }

    /// The same in a call that may take so long. No wall clock has a say in it.
    pub async fn outcomes_within(
        &self,
        time: Duration,
        bodies: &[&str],
    ) -> Vec<Result<&'static str, (&'static str, String)>> {
        let call = Call::new(Deadline::within(time));
        let outcomes = delete_mapping::handle(&self.deletes, bodies, &call).await;
        let told = |problem: fencepost::http::Problem| (problem.code(), problem.field().unwrap_or_default().to_owned());
        outcomes.into_iter().map(|outcome| outcome.map(|done| done.outcome).map_err(told)).collect()
    }

    /// A row as it is stored; `Null` where there is none.
    pub fn row(&self, ip: &str) -> Value {
        self.engine.row(MAPPINGS, KEY, ip)
    }

    /// Puts a row past the functions.
    pub fn plant(&self, item: &Value) {
        self.engine.raw("PutItem", &json!({"TableName": MAPPINGS, "Item": item}));
    }

    /// Sends an event that is refused as bad input: the answer names the field, and `DynamoDB` was not even asked.
    pub async fn bad_input(&self, event: &Event, status: i64, code: &str, field: &str) {
        self.engine.take_log();
        let answer = self.send(event).await;
        assert_eq!(answer.says(status, code)["field"], field, "{event:?}");
        answer.check_problem();
        assert_eq!(self.engine.take_counts(), (0, 0), "{event:?}");
    }
}

/// The ids of the messages of a batch.
fn ids_of(batch: &Value) -> BTreeSet<String> {
    let records = batch["Records"].as_array().expect("records").iter();
    records.filter_map(|record| Some(record["messageId"].as_str()?.to_owned())).collect()
}

/// The same for another address.
pub fn on(mut event: Event, ip: &str) -> Event {
    let path = format!("/mappings/{ip}");
    event.0["rawPath"] = json!(path);
    event.0["requestContext"]["http"]["path"] = json!(path);
    event.0["pathParameters"][KEY] = json!(ip);
    event
}

/// Registers an instance of `cell-1`.
pub fn registration(ip: &str, instance: &str, at: &str) -> Event {
    let body = json!({"cellId": "cell-1", "instanceId": instance, "creationTimestamp": at});
    on(load("host-mapping-register"), ip).text(&body.to_string())
}

pub fn look_up(ip: &str) -> Event {
    on(load("host-mapping-get"), ip)
}

/// Deletes an instance, or without its id all of that moment.
pub fn deletion(ip: &str, at: &str, instance: Option<&str>) -> Event {
    let instance = instance.map(|instance| ("instanceId", instance));
    asking(on(load("host-mapping-delete"), ip), [("creationTimestamp", at)].into_iter().chain(instance))
}

/// The same with these parameters after its `?`.
pub fn asking<'a>(mut event: Event, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> Event {
    let parameters: Map<_, _> = query.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let text = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
    event.0["rawQueryString"] = json!(parameters.iter().map(text).collect::<Vec<_>>().join("&"));
    event.0["queryStringParameters"] = Value::Object(parameters);
    event
}

/// A message as the queue hands it over.
pub fn message(id: &str, body: &str) -> Value {
    let mut message = load("delete-mapping-deleted").0["Records"][0].take();
    message["messageId"] = json!(id);
    message["body"] = json!(body);
    message
}

/// What a message says that asks to delete an instance, or all of that moment.
pub fn task(ip: &str, at: &str, instance: Option<&str>) -> String {
    let mut task = json!({"hostIp": ip, "creationTimestamp": at});
    if let Some(instance) = instance {
        task["instanceId"] = json!(instance);
    }
    task.to_string()
}

/// A batch of these messages, `(id, body)`.
pub fn batch_of<I: AsRef<str>, B: AsRef<str>>(messages: &[(I, B)]) -> Value {
    let records: Vec<_> = messages.iter().map(|(id, body)| message(id.as_ref(), body.as_ref())).collect();
    json!({"Records": records})
}

impl Answer {
    /// What became of a deletion, which has no body.
    pub fn outcome(&self) -> String {
        assert_eq!((self.status, &self.body), (204, &None), "{self:?}");
        self.header("fencepost-outcome").unwrap_or_else(|| panic!("an outcome: {self:?}")).to_owned()
    }

    /// Asserts that it is refused because of this moment, and of this instance where one is meant.
    pub fn superseded_by(&self, at: &str, instance: Option<&str>) {
        let problem = self.says(409, "superseded");
        self.check_problem();
        assert_eq!((problem["creationTimestamp"].as_str(), problem["instanceId"].as_str()), (Some(at), instance));
        assert_eq!(problem.get("instanceId").is_some(), instance.is_some(), "no name is no member: {problem}");
    }
}

/// What becomes of a write, instead of being answered as the engine answers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It is not applied, and throttled.
    Throttled,
    /// It is not applied, and answered 500: who sent it cannot know.
    Lost,
    /// It is applied, and answered 500.
    AnswerLost,
}

/// A client whose writes get into this trouble, by how many came before them and the address that they are about.
pub fn client_in_trouble(
    engine: &Engine,
    trouble: impl Fn(usize, &str) -> Option<Trouble> + Send + Sync + 'static,
) -> Client {
    let writes = AtomicUsize::new(0);
    client_whose(engine, move |engine, _, operation, body| {
        if operation != "PutItem" {
            return engine.answer(operation, body);
        }
        let request: Value = serde_json::from_slice(body).expect("requests are JSON");
        let ip = request["Item"][KEY]["S"].as_str().expect("an address");
        let error = |code: &str| json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}")}).to_string();
        match trouble(writes.fetch_add(1, SeqCst), ip) {
            None => engine.answer(operation, body),
            Some(Trouble::Throttled) => (400, error("ThrottlingException")),
            Some(Trouble::Lost) => (500, error("InternalServerError")),
            Some(Trouble::AnswerLost) => {
                engine.answer(operation, body);
                (500, error("InternalServerError"))
            }
        }
    })
}
