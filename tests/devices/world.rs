//! The device-state function on an engine of its own, the events that it is sent and the answers that it gives.

use crate::harness::engine::{Asked, Engine, is_read, store};
use crate::repository::permissions;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings;
use aws_sdk_dynamodb::Client;
use device_state::App;
use fencepost::Store;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

pub const TABLE: &str = "Devices";
const KEY: &str = "deviceId";
pub const RECORDS: &str = "IdempotencyRecords";
/// The tables of the function, each with its key.
pub const TABLES: &[(&str, &str)] = &[(TABLE, KEY), (RECORDS, "recordId")];

/// The function on these tables of this store; a config may change every 300 s.
pub fn app(store: &Store) -> App {
    App::new(store.table(TABLE), store.idempotency(RECORDS), Duration::from_mins(5))
}

/// One function, one engine, and a clock that only the test moves.
pub struct World {
    pub engine: Engine,
    app: App,
    clock_ms: Arc<AtomicU64>,
}

impl World {
    /// Nothing is stored; it is 10:00 on 7 March 2026; a config may change every 300 s.
    pub fn new() -> Self {
        let engine = Engine::with_tables(TABLES);
        let clock_ms = Arc::new(AtomicU64::new(1_772_877_600_000));
        Self::under(&engine.client(), engine, clock_ms)
    }

    /// The same function, engine and clock, reached by another client.
    pub fn reached_by(&self, client: &Client) -> Self {
        Self::under(client, self.engine.clone(), self.clock_ms.clone())
    }

    fn under(client: &Client, engine: Engine, clock_ms: Arc<AtomicU64>) -> Self {
        let clock = clock_ms.clone();
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.load(SeqCst));
        World { app: app(&store(client, now, || fastrand::u64(..))), engine, clock_ms }
    }

    /// The same with the device `lamp-1` of events/device-state-create.json: online, brightness 50.
    pub async fn with_lamp() -> (Self, Answer) {
        let world = Self::new();
        let created = world.send(&Event::create()).await;
        assert_eq!(created.status, 201, "{created:?}");
        (world, created)
    }

    /// The same with this text as `state` instead.
    pub async fn with_state(state: &str) -> Self {
        let world = Self::new();
        let created = world.send(&Event::create().text(&format!(r#"{{"state":{state}}}"#))).await;
        assert_eq!(created.status, 201, "{created:?}");
        world
    }

    pub fn pass(&self, milliseconds: u64) {
        self.clock_ms.fetch_add(milliseconds, SeqCst);
    }

    /// The row of `lamp-1` as it is stored.
    pub fn row(&self) -> Value {
        self.engine.row(TABLE, KEY, "lamp-1")
    }

    /// Puts a row past the function.
    pub fn plant(&self, item: &Value) {
        let request = json!({"TableName": TABLE, "Item": item});
        self.engine.raw("PutItem", &request);
    }

    pub async fn send(&self, event: &Event) -> Answer {
        self.send_with_deadline(event, context(Duration::from_secs(10)).deadline).await
    }

    /// Sends an event with this deadline, in milliseconds since 1970.
    pub async fn send_with_deadline(&self, event: &Event, deadline: u64) -> Answer {
        let payload: ApiGatewayV2httpRequest = serde_json::from_str(&event.0.to_string()).expect("an event");
        let mut context = Context::default();
        context.deadline = deadline;
        let event = LambdaEvent::new(payload, context);
        let answer = Box::pin(fencepost::lambda::respond(&self.app, &device_state::handle, event)).await;
        permissions::assert_allowed("device-state", &self.engine.uses());
        answer.into()
    }

    /// Sends an event that is refused with this status and code; nothing may have been written.
    pub async fn refused(&self, event: &Event, status: i64, code: &str) -> Answer {
        self.refusal(event, status, code).await.0
    }

    /// The same for bad input: the answer names the field, and `DynamoDB` was not even asked.
    pub async fn bad_input(&self, event: &Event, status: i64, code: &str, field: &str) {
        let (answer, asked) = self.refusal(event, status, code).await;
        assert_eq!(answer.json()["field"], field, "{event:?}\n{answer:?}");
        assert!(asked.is_empty(), "{event:?} asked: {asked:?}");
    }

    async fn refusal(&self, event: &Event, status: i64, code: &str) -> (Answer, Vec<Asked>) {
        let before = self.row();
        self.engine.take_log();
        let answer = self.send(event).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{event:?}\n{answer:?}");
        let asked = self.engine.take_log();
        let wrote = asked.iter().any(|asked| !is_read(&asked.operation) && asked.status == 200);
        assert!(!wrote && self.row() == before, "{event:?} was refused, and written: {asked:?}");
        answer.check_problem();
        (answer, asked)
    }
}

/// An event as API Gateway sends it: a file of events/, varied.
#[derive(Clone)]
pub struct Event(pub Value);

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Value| value.to_string().chars().take(300).collect::<String>();
        let (route, path) = (&self.0["routeKey"], &self.0["rawPath"]);
        write!(f, "{} {} {} {}", text(route), text(path), text(&self.0["headers"]), text(&self.0["body"]))
    }
}

impl Event {
    fn load(name: &str) -> Self {
        let path = dev::workspace().join(format!("events/device-state-{name}.json"));
        let text = std::fs::read_to_string(path).expect("an event of that name");
        Event(serde_json::from_str(&text).expect("JSON"))
    }

    pub fn create() -> Self {
        Self::load("create")
    }

    pub fn get() -> Self {
        Self::load("get")
    }

    /// With the tag in the file's `If-Match` left out.
    pub fn delete() -> Self {
        Self::load("delete").without_header("if-match")
    }

    pub fn patch_state() -> Self {
        Self::load("patch-state")
    }

    pub fn adjust() -> Self {
        Self::load("adjust")
    }

    pub fn set_status() -> Self {
        Self::load("set-status")
    }

    pub fn set_config() -> Self {
        Self::load("set-config")
    }

    /// One event for each route that changes a device which is there, in a form that does change `lamp-1`.
    pub fn changes() -> [Self; 5] {
        let offline = Self::set_status().text(r#"{"status":"offline"}"#);
        [Self::patch_state(), Self::adjust(), offline, Self::set_config(), Self::delete()]
    }

    /// One event for each route that takes a body.
    pub fn with_body() -> [Self; 5] {
        [Self::create(), Self::patch_state(), Self::adjust(), Self::set_status(), Self::set_config()]
    }

    /// One event for each route.
    pub fn all() -> [Self; 7] {
        let [create, patch, adjust, status, config] = Self::with_body();
        [create, patch, adjust, status, config, Self::get(), Self::delete()]
    }

    pub fn method(&self) -> &str {
        self.0["requestContext"]["http"]["method"].as_str().expect("a method")
    }

    /// The same for another device. The gateway decodes parameters, so the raw path may look different.
    pub fn device(mut self, id: &str) -> Self {
        let path = self.0["rawPath"].as_str().expect("a path").replace("lamp-1", id);
        self.0["rawPath"] = json!(path);
        self.0["requestContext"]["http"]["path"] = json!(path);
        self.0["pathParameters"]["deviceId"] = json!(id);
        self
    }

    /// With this idempotency key.
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// As somebody else sends it, whom IAM knows by this ARN.
    pub fn by(mut self, arn: &str) -> Self {
        self.0["requestContext"]["authorizer"]["iam"]["userArn"] = json!(arn);
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0["headers"][name] = json!(value);
        self
    }

    pub fn without_header(mut self, name: &str) -> Self {
        self.0["headers"].as_object_mut().expect("headers").remove(name);
        self
    }

    /// With this body.
    pub fn text(mut self, body: &str) -> Self {
        self.0["body"] = json!(body);
        self
    }

    /// With this body in base64.
    pub fn base64(mut self, body: &str) -> Self {
        self.0["isBase64Encoded"] = json!(true);
        self.text(body)
    }

    /// In the form in which no route of the gateway matched it, with this method and path.
    pub fn unrouted(mut self, method: &str, path: &str) -> Self {
        self.0["routeKey"] = json!("$default");
        self.0["rawPath"] = json!(path);
        self.0["requestContext"]["routeKey"] = json!("$default");
        self.0["requestContext"]["http"]["method"] = json!(method);
        self.0["requestContext"]["http"]["path"] = json!(path);
        self.0.as_object_mut().expect("an event").remove("pathParameters");
        self
    }

    /// In the form in which `cargo lambda watch` sends it.
    pub fn by_cargo_lambda(mut self) -> Self {
        let event = self.0.as_object_mut().expect("an event");
        event.insert("routeKey".to_owned(), json!("$default"));
        event.insert("rawQueryString".to_owned(), Value::Null);
        event.insert("queryStringParameters".to_owned(), json!({}));
        event.insert("httpMethod".to_owned(), json!("GET"));
        event.insert("cookies".to_owned(), json!([]));
        event.insert("stageVariables".to_owned(), json!({}));
        let context = event["requestContext"].as_object_mut().expect("a context");
        context.remove("authorizer");
        context.insert("routeKey".to_owned(), json!("$default"));
        context.insert("timeEpoch".to_owned(), json!(1_772_877_600));
        self
    }
}

/// What a client gets.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: i64,
    pub body: Option<String>,
    headers: Vec<(String, String)>,
}

impl From<ApiGatewayV2httpResponse> for Answer {
    fn from(response: ApiGatewayV2httpResponse) -> Self {
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
        let headers = response.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes())));
        let body = response.body.map(|body| match body {
            encodings::Body::Text(text) => text,
            other => panic!("a body that is no text: {other:?}"),
        });
        Answer { status: response.status_code, headers: headers.collect(), body }
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        let body = self.body.as_deref().unwrap_or_else(|| panic!("a body: {self:?}"));
        serde_json::from_str(body).expect("JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} occurs twice");
        value
    }

    pub fn etag(&self) -> &str {
        self.header("etag").unwrap_or_else(|| panic!("an ETag: {self:?}"))
    }

    /// Asserts that it shows a device with this status and this version; gives the device.
    pub fn shows(&self, status: i64, version: u64) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        let device = self.json();
        assert_eq!(device["version"], version, "{self:?}");
        let tag = self.etag().strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).expect("a strong tag");
        let (number, incarnation) = tag.split_once('.').expect("version and incarnation");
        assert_eq!(number, version.to_string());
        let base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        assert!(!incarnation.is_empty() && incarnation.bytes().all(base64url), "{tag}");
        device
    }

    /// Asserts that it has the form of RFC 9457.
    pub fn check_problem(&self) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        for member in ["type", "title", "detail", "code"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {problem}");
        }
        if let Some(seconds) = self.header("retry-after") {
            assert!(seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 1), "{seconds}");
        }
    }
}

/// What Lambda says of an invocation that may take so long from now on.
pub fn context(time: Duration) -> Context {
    let deadline = (SystemTime::now() + time).duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.as_millis()).expect("small");
    context
}
