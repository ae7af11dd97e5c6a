//! The embedded engine, in process: the real SDK talks to it through a connector, without sockets.

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// One engine, and the log of what it was asked.
#[derive(Clone)]
pub struct Engine {
    pub db: Database,
    log: Arc<Mutex<Vec<Asked>>>,
}

/// One request as the engine saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GetItem`, `UpdateItem` …
    pub operation: String,
    pub body: Value,
    pub status: u16,
}

impl Engine {
    /// An empty engine in memory, with one table per name, `(name, partition key)`.
    pub fn with_tables(tables: &[(&str, &str)]) -> Self {
        let db = Database::memory().expect("SQLite in memory");
        for (table, key) in tables {
            let request = json!({
                "TableName": table,
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            });
            db.create_table(serde_json::from_value(request).expect("a table")).expect("a new table");
        }
        Engine { db, log: Arc::default() }
    }

    /// Answers one request the way that the service's HTTP door would: status and body.
    pub fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let (status, answer) = match operation {
            "GetItem" => run(body, |request| self.db.get_item(request)),
            "PutItem" => run(body, |request| self.db.put_item(request)),
            "UpdateItem" => run(body, |request| self.db.update_item(request)),
            "DeleteItem" => run(body, |request| self.db.delete_item(request)),
            other => panic!("the tests do not speak {other} yet"),
        };
        let body = serde_json::from_slice(body).expect("requests are JSON");
        let asked = Asked { operation: operation.to_owned(), body, status };
        self.log.lock().expect("no panic while logging").push(asked);
        (status, answer)
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

    /// A row as it is stored, in DynamoDB's JSON; `Null` where there is none.
    pub fn row(&self, table: &str, key: &str, id: &str) -> Value {
        let request = json!({"TableName": table, "Key": {key: {"S": id}}, "ConsistentRead": true});
        let answer = self.db.get_item(serde_json::from_value(request).expect("a read")).expect("a table");
        serde_json::to_value(&answer).expect("an answer")["Item"].take()
    }

    /// A client of the real SDK whose requests go straight to this engine.
    pub fn client(&self) -> Client {
        client_over(Direct(self.clone()))
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
struct Direct(Engine);

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Direct")
    }
}

impl HttpConnector for Direct {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (status, body) = self.0.answer(&operation_of(&request), &body_of(&request));
        HttpConnectorFuture::ready(response(status, body))
    }
}
