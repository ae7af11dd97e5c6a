//! An engine behind HTTP, for functions and clients in processes of their own.
//!
//! The test decides the order of events. It shuts a gate in front of a table, waits until a write stands at the gate,
//! and opens it again. Nothing here sleeps.

use super::clients::{error, lost};
use super::engine::{Engine, embedded_with_indexed_tables, is_read};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region, SharedHttpClient};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header::AUTHORIZATION};
use axum::response::Response;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

/// The time to wait for an event. It only ends a run that hangs: no result depends on it.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for an event that must come.
pub async fn patiently<T>(what: &str, event: impl Future<Output = T>) -> T {
    timeout(PATIENCE, event).await.unwrap_or_else(|_| panic!("{what} did not happen within {PATIENCE:?}"))
}

/// Serves these routes on a free port. Gives the address.
pub async fn listen(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// The configuration of a client of this endpoint over real sockets, without retries of its own.
pub fn config_at(endpoint: &str, http_client: SharedHttpClient) -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(http_client)
}

/// An engine that answers over HTTP.
#[derive(Clone)]
pub struct Server {
    pub engine: Engine,
    pub address: String,
    traffic: Arc<watch::Sender<Traffic>>,
    faults: Arc<Mutex<VecDeque<Fault>>>,
}

/// The fault of a write.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It is not applied, because its key is hot.
    Throttled,
    /// It is applied. The answer proves nothing.
    AnswerLost,
    /// It is not applied, and repeating it is useless.
    Denied,
}

/// The requests at a server: its gate, counts and credentials.
#[derive(Default, Debug)]
pub struct Traffic {
    /// Writes to this table wait.
    shut: Option<String>,
    /// How many writes have ever waited.
    pub waited: usize,
    /// How many requests were answered.
    pub answered: usize,
    /// The `Authorization` header of each request.
    authorizations: Vec<String>,
}

impl Server {
    /// An embedded engine with these tables, `(name, partition key)`. Its gate is open.
    pub async fn start(tables: &[(&str, &str)]) -> Self {
        let mut server = Server {
            engine: embedded_with_indexed_tables(tables),
            address: String::new(),
            traffic: Arc::default(),
            faults: Arc::default(),
        };
        server.address = listen(Router::new().fallback(answer).with_state(server.clone())).await;
        server
    }

    /// The endpoint for an SDK.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets every write to this table wait from now on.
    pub fn shut(&self, table: &str) {
        self.traffic.send_modify(|traffic| traffic.shut = Some(table.to_owned()));
    }

    /// Lets the next writes fail like this.
    pub fn fail_writes(&self, faults: &[Fault]) {
        self.faults.lock().expect("no panic").extend(faults);
    }

    /// How many writes have ever waited.
    pub fn waited(&self) -> usize {
        self.traffic.borrow().waited
    }

    /// Lets everything through again.
    pub fn open(&self) {
        self.traffic.send_modify(|traffic| traffic.shut = None);
    }

    /// How many requests were answered so far.
    pub fn answered(&self) -> usize {
        self.traffic.borrow().answered
    }

    /// The `Authorization` header of each request so far.
    pub fn authorizations(&self) -> Vec<String> {
        self.traffic.borrow().authorizations.clone()
    }

    /// Waits until this is so. It is looked at after each request.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Traffic) -> bool) {
        let mut traffic = self.traffic.subscribe();
        patiently(what, traffic.wait_for(|traffic| is_so(traffic))).await.expect("the server is there");
    }

    /// Waits while the gate is shut to this write.
    async fn pass(&self, table_of: impl Fn(&str) -> bool) {
        let mut traffic = self.traffic.subscribe();
        let is_open = |traffic: &Traffic| !traffic.shut.as_ref().is_some_and(|table| table_of(table));
        if !is_open(&traffic.borrow_and_update()) {
            self.traffic.send_modify(|traffic| traffic.waited += 1);
            traffic.wait_for(is_open).await.expect("the server is there");
        }
    }
}

fn hot_key() -> (u16, String) {
    let mut answer = fencepost_test::error(400, "ThrottlingException");
    answer.body["throttlingReasons"] = json!([{"reason": "TableWriteKeyRangeThroughputExceeded"}]);
    (answer.status, answer.body.to_string())
}

async fn answer(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    let text = |value: &axum::http::HeaderValue| value.to_str().expect("text").to_owned();
    let operation = text(&headers["x-amz-target"]).rsplit('.').next().expect("a name").to_owned();
    if !is_read(&operation) {
        let request = String::from_utf8_lossy(&body);
        server.pass(|table| request.contains(&format!("\"{table}\""))).await;
    }
    let fault = if is_read(&operation) { None } else { server.faults.lock().expect("no panic").pop_front() };
    let (status, answer) = match fault {
        None => server.engine.answer(&operation, &body),
        Some(Fault::Throttled) => hot_key(),
        Some(Fault::Denied) => error(400, "AccessDeniedException"),
        Some(Fault::AnswerLost) => {
            server.engine.answer(&operation, &body);
            lost()
        }
    };
    server.traffic.send_modify(|traffic| {
        traffic.answered += 1;
        traffic.authorizations.extend(headers.get(AUTHORIZATION).map(text));
    });
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    response.body(Body::from(answer)).expect("a response")
}
