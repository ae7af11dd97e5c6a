//! The engine that a test asks: the embedded one in process, or the one that `DYNAMODB_ENDPOINT` names.
//!
//! The real SDK talks to it through a connector. Both kinds of engine stand behind the same door, which is sync: no
//! timer and no other task of the test runs while it answers, so paused time stays paused on both.

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::SystemTime;

/// Names an engine of its own for the scenarios, the budgets and the properties, such as `http://127.0.0.1:8000`.
const ENDPOINT: &str = "DYNAMODB_ENDPOINT";

/// One engine with tables of its own, and the log of what it was asked.
#[derive(Clone)]
pub struct Engine {
    door: Door,
    log: Arc<Mutex<Vec<Asked>>>,
    uses: Arc<Mutex<BTreeSet<Use>>>,
}

/// One request as the engine saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GetItem`, `UpdateItem` …
    pub operation: String,
    pub body: Value,
    pub status: u16,
}

/// One operation on one table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub operation: String,
    pub table: String,
}

/// A connector must be Debug; the engine has nothing to show.
impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    /// Empty tables, `(name, partition key)`, on the engine that `DYNAMODB_ENDPOINT` names, else on the embedded one.
    pub fn with_tables(tables: &[(&str, &str)]) -> Self {
        match std::env::var(ENDPOINT) {
            Ok(endpoint) => Self::behind(Door::Endpoint(Endpoint::new(&endpoint)), tables),
            Err(_) => Self::embedded(tables),
        }
    }

    /// Empty tables on the embedded engine whatever the environment says, for what needs its speed or its database.
    pub fn embedded(tables: &[(&str, &str)]) -> Self {
        Self::on(Database::memory().expect("SQLite in memory"), tables)
    }

    /// Empty tables in this database.
    pub fn on(database: Database, tables: &[(&str, &str)]) -> Self {
        Self::behind(Door::Embedded(database), tables)
    }

    fn behind(door: Door, tables: &[(&str, &str)]) -> Self {
        let engine = Engine { door, log: Arc::default(), uses: Arc::default() };
        for (table, key) in tables {
            let request = json!({
                "TableName": table,
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            });
            engine.raw("CreateTable", &request);
        }
        engine
    }

    /// Answers one request the way that the service's HTTP door would: status and body.
    pub fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let (status, answer) = self.door.ask(operation, body);
        let body: Value = serde_json::from_slice(body).expect("requests are JSON");
        let table = body["TableName"].as_str().expect("a table").to_owned();
        self.uses.lock().expect("no panic while noting").insert(Use { operation: operation.to_owned(), table });
        let asked = Asked { operation: operation.to_owned(), body, status };
        self.log.lock().expect("no panic while logging").push(asked);
        (status, answer)
    }

    /// Does what no client of the test does: it must succeed, and neither the log nor the counts show it.
    pub fn raw(&self, operation: &str, request: &Value) -> Value {
        let (status, answer) = self.door.ask(operation, request.to_string().as_bytes());
        assert_eq!(status, 200, "{operation} {request}: {answer}");
        serde_json::from_str(&answer).expect("answers are JSON")
    }

    /// What was asked since the last time, oldest first.
    pub fn take_log(&self) -> Vec<Asked> {
        std::mem::take(&mut self.log.lock().expect("no panic while logging"))
    }

    /// Reads and writes since the last time.
    pub fn take_counts(&self) -> (usize, usize) {
        let log = self.take_log();
        let reads = log.iter().filter(|asked| asked.operation == "GetItem").count();
        (reads, log.len() - reads)
    }

    /// Which operations on which tables were ever asked for.
    pub fn uses(&self) -> BTreeSet<Use> {
        self.uses.lock().expect("no panic while noting").clone()
    }

    /// A row as it is stored, in DynamoDB's JSON; `Null` where there is none.
    pub fn row(&self, table: &str, key: &str, id: &str) -> Value {
        let request = json!({"TableName": table, "Key": {key: {"S": id}}, "ConsistentRead": true});
        self.raw("GetItem", &request)["Item"].take()
    }

    /// A client of the real SDK whose requests go straight to this engine.
    pub fn client(&self) -> Client {
        client_over(Direct(self.clone()))
    }
}

/// What takes a request of the service's JSON protocol and answers it.
#[derive(Clone)]
enum Door {
    Embedded(Database),
    Endpoint(Endpoint),
}

impl Door {
    fn ask(&self, operation: &str, body: &[u8]) -> (u16, String) {
        match self {
            Door::Embedded(db) => match operation {
                "GetItem" => run(body, |request| db.get_item(request)),
                "PutItem" => run(body, |request| db.put_item(request)),
                "UpdateItem" => run(body, |request| db.update_item(request)),
                "DeleteItem" => run(body, |request| db.delete_item(request)),
                "CreateTable" => run(body, |request| db.create_table(request)),
                "DeleteTable" => run(body, |request| db.delete_table(request)),
                other => panic!("the tests do not speak {other} yet"),
            },
            Door::Endpoint(endpoint) => endpoint.ask(operation, body),
        }
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> Result<A, dynoxide::DynoxideError>,
) -> (u16, String) {
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => {
            let problem =
                json!({"__type": "com.amazon.coral.validate#ValidationException", "message": error.to_string()});
            return (400, problem.to_string());
        }
    };
    match operation(request) {
        Ok(answer) => (200, serde_json::to_string(&answer).expect("an answer")),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

/// A server that many tests share. Each engine has a prefix for its tables; they are left behind when it is done.
#[derive(Clone)]
struct Endpoint {
    address: String,
    prefix: String,
}

impl Endpoint {
    fn new(url: &str) -> Self {
        static RUN: LazyLock<u128> =
            LazyLock::new(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos());
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let address = url.strip_prefix("http://").expect("an endpoint on plain http").trim_end_matches('/').to_owned();
        Endpoint { address, prefix: format!("{:x}-{}-", *RUN, NEXT.fetch_add(1, Relaxed)) }
    }

    fn ask(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let mut body: Value = serde_json::from_slice(body).expect("requests are JSON");
        let table = body["TableName"].as_str().expect("a table");
        body["TableName"] = json!(format!("{}{table}", self.prefix));
        self.post(operation, &body.to_string()).unwrap_or_else(|error| panic!("{ENDPOINT}={}: {error}", self.address))
    }

    /// One request in HTTP/1.0, whose answer ends where the connection does. The engine wants a signature but does not
    /// check it.
    fn post(&self, operation: &str, body: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "POST / HTTP/1.0\r\n\
             Host: {}\r\n\
             Content-Type: application/x-amz-json-1.0\r\n\
             X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
             X-Amz-Date: 20260307T100000Z\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260307/eu-west-1/dynamodb/aws4_request, \
             SignedHeaders=host;x-amz-date;x-amz-target, Signature=0\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = status.ok_or_else(|| io::Error::other(format!("no answer in HTTP: {answer}")))?;
        Ok((status, body.to_owned()))
    }
}

/// A client of the real SDK over any connector; its own retries are off, as in production.
pub fn client_over(connector: impl HttpConnector + 'static) -> Client {
    let connector = SharedHttpConnector::new(connector);
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url("http://engine.invalid")
        .retry_config(RetryConfig::disabled())
        .http_client(http_client_fn(move |_, _| connector.clone()))
        .build();
    Client::from_conf(config)
}

/// The operation that a request names, without the service's prefix.
pub fn operation_of(request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target").expect("the SDK names its target");
    target.rsplit('.').next().expect("a name").to_owned()
}

/// The bytes of a request.
pub fn body_of(request: &HttpRequest) -> Vec<u8> {
    request.body().bytes().expect("requests are buffered").to_vec()
}

/// An answer in the service's clothes, as a connector gives it.
#[expect(clippy::unnecessary_wraps, reason = "a connector's answer is a Result")]
pub fn response(status: u16, body: impl Into<String>) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body.into()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

/// Answers at once and never fails.
#[derive(Debug)]
struct Direct(Engine);

impl HttpConnector for Direct {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (status, body) = self.0.answer(&operation_of(&request), &body_of(&request));
        HttpConnectorFuture::ready(response(status, body))
    }
}
