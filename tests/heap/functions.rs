//! The functions as Lambda calls them, on canned answers: a table that answers with the same row to every key, and
//! keeps nothing.

use allocation_counter::AllocationInfo;
use aws_lambda_events::sqs::SqsEvent;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use axum::Router;
use fencepost::Store;
use fencepost::lambda::{respond, respond_batch};
use fencepost_test::{body_of, client_over, operation_of, response};
use functions::function::{Environment, Event, Queue};
use lambda_runtime::{Context, LambdaEvent};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Stands in a row for its key.
pub const KEY: &str = "KEY";

/// A name of a table, and its row in `DynamoDB`'s JSON with [`KEY`] as its key. Without a row, no item is there.
pub type Rows = BTreeMap<&'static str, String>;

#[derive(Clone, Debug, Default)]
pub struct Engine(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    rows: Rows,
    /// How many writes are still refused by the row.
    refusals: u32,
    /// The last item that was put.
    put: Option<Value>,
}

impl Engine {
    /// Answers from these rows from now on.
    pub fn hold(&self, rows: Rows, refusals: u32) {
        *self.0.lock().expect("no panic") = State { rows, refusals, put: None };
    }

    /// The last item that was put.
    pub fn put(&self) -> Value {
        self.0.lock().expect("no panic").put.take().expect("an item was put")
    }

    /// The parts of an answer, of which only the last is as large as a row.
    fn answer(&self, operation: &str, request: &Value) -> (u16, String) {
        let mut state = self.0.lock().expect("no panic");
        let table = request["TableName"].as_str().unwrap_or_default();
        // `key` is a key, or an item that is put.
        let row = |state: &State, table: &str, key: &Value| {
            let row = state.rows.get(table)?;
            let (before, _) = row.split_once(&format!(r#"":{{"S":"{KEY}"}}"#))?;
            let (_, name) = before.rsplit_once('"')?;
            Some(row.replacen(KEY, key[name]["S"].as_str().unwrap_or(KEY), 1))
        };
        let key_of = |write: &Value| write.get("Key").or(write.get("Item")).cloned().unwrap_or_default();
        let changes = |step: &Value| step.get("Put").or(step.get("Update")).cloned().unwrap_or_default();
        if let "PutItem" | "UpdateItem" | "TransactWriteItems" = operation {
            let writes = match &request["TransactItems"] {
                Value::Array(steps) => steps.iter().map(changes).collect(),
                _ => vec![request.clone()],
            };
            state.put = writes.iter().find_map(|write| write.get("Item").cloned()).or(state.put.take());
            if state.refusals > 0 {
                state.refusals -= 1;
                let refused_by = |write: &Value| {
                    let row = row(&state, write["TableName"].as_str().unwrap_or_default(), &key_of(write));
                    row.map(|row| format!(r#""Code":"ConditionalCheckFailed","Item":{row}"#))
                };
                let reasons = writes.iter().map(|write| refused_by(write).unwrap_or(r#""Code":"None""#.to_owned()));
                let reasons: Vec<_> = reasons.map(|reason| format!("{{{reason}}}")).collect();
                return match (operation, row(&state, table, &key_of(request))) {
                    ("TransactWriteItems", _) => {
                        let reasons = reasons.join(",");
                        let code = "TransactionCanceledException";
                        (400, format!(r#"{{"__type":"{code}","CancellationReasons":[{reasons}]}}"#))
                    }
                    (_, row) => {
                        let row = row.map(|row| format!(r#","Item":{row}"#)).unwrap_or_default();
                        (400, format!(r#"{{"__type":"ConditionalCheckFailedException"{row}}}"#))
                    }
                };
            }
            return (200, "{}".to_owned());
        }
        let body = match operation {
            "GetItem" => match row(&state, table, &request["Key"]) {
                Some(row) => format!(r#"{{"Item":{row}}}"#),
                None => "{}".to_owned(),
            },
            "BatchGetItem" => {
                let of_table = |(table, asked): (&String, &Value)| {
                    let keys = asked["Keys"].as_array().expect("keys");
                    let rows: Vec<_> = keys.iter().filter_map(|key| row(&state, table, key)).collect();
                    format!(r#""{table}":[{}]"#, rows.join(","))
                };
                let tables: Vec<_> =
                    request["RequestItems"].as_object().expect("tables").iter().map(of_table).collect();
                format!(r#"{{"Responses":{{{}}},"UnprocessedKeys":{{}}}}"#, tables.join(","))
            }
            other => panic!("{other} has no answer"),
        };
        (200, body)
    }
}

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut answer = None;
        // To make the answer is no work of the function, but to hold it is.
        allocation_counter::opt_out(|| {
            let read = serde_json::from_slice(&body_of(&request)).expect("JSON");
            answer = Some(self.answer(&operation_of(&request), &read));
        });
        let (status, body) = answer.expect("an answer");
        let held = body.clone();
        allocation_counter::opt_out(|| drop(body));
        HttpConnectorFuture::ready(response(status, held))
    }
}

/// Each table has the name that the cases call it by.
const ENVIRONMENT: &Environment = &|name| match name.strip_suffix("_TABLE") {
    Some(table) => Some(table[..1].to_owned() + &table[1..].to_lowercase()),
    None => (name == "CONFIG_MIN_INTERVAL_SECONDS").then(|| "0".to_owned()),
};

/// All functions on one engine.
pub struct Functions {
    pub engine: Engine,
    runtime: Runtime,
    /// Those with routes, by their names.
    with_routes: BTreeMap<&'static str, Router>,
    with_queues: BTreeMap<&'static str, Queue>,
}

/// The cost of an invocation, and its answer.
pub struct Took {
    pub heap: AllocationInfo,
    /// The time of the processor, with the work of the canned answers. It is only printed.
    pub time: Duration,
    pub status: i64,
    pub answer: Vec<u8>,
}

impl Functions {
    pub fn new() -> Self {
        let engine = Engine::default();
        let store = Store::new(&client_over(engine.clone()));
        let (mut with_routes, mut with_queues) = (BTreeMap::new(), BTreeMap::new());
        for function in functions::ALL {
            match &function.event {
                Event::Http { start, .. } => {
                    with_routes.insert(function.name, start(&store, ENVIRONMENT).expect("what it reads"));
                }
                Event::Sqs { start, .. } => {
                    with_queues.insert(function.name, start(&store, ENVIRONMENT).expect("what it reads"));
                }
                Event::Schedule { .. } => {}
            }
        }
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        Functions { engine, runtime, with_routes, with_queues }
    }

    /// Answers one event: from the bytes that the runtime receives to the bytes that it sends.
    pub fn answer(&self, function: &str, event: &str) -> Took {
        let mut told = (0, Vec::new());
        let began = processor_time();
        let heap = allocation_counter::measure(|| told = self.runtime.block_on(self.told(function, event)));
        Took { heap, time: processor_time().saturating_sub(began), status: told.0, answer: told.1 }
    }

    async fn told(&self, function: &str, event: &str) -> (i64, Vec<u8>) {
        if let Some(app) = self.with_queues.get(function) {
            let answer = Box::pin(respond_batch(app, &Queue::take, read::<SqsEvent>(event))).await;
            return (200, serde_json::to_vec(&answer.expect("each message has an id")).expect("JSON"));
        }
        let response = Box::pin(respond(&self.with_routes[function], read(event))).await;
        (response.status_code, serde_json::to_vec(&response).expect("JSON"))
    }
}

/// The time that this thread has had a processor. Zero where the system does not say.
fn processor_time() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(said.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

/// Reads an event as the runtime and then `serve` do.
fn read<T: DeserializeOwned>(event: &str) -> LambdaEvent<T> {
    let bytes = event.as_bytes().to_vec();
    let raw: Box<RawValue> = serde_json::from_slice(&bytes).expect("JSON");
    drop(bytes);
    LambdaEvent::new(serde_json::from_str(raw.get()).expect("an event"), Context::default())
}
