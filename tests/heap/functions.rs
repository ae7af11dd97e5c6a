//! The functions on canned answers, as Lambda calls them.

use super::engine::Engine;
use allocation_counter::AllocationInfo;
use aws_lambda_events::sqs::SqsEvent;
use axum::Router;
use fencepost::Store;
use fencepost::lambda::{respond, respond_batch};
use fencepost_test::client_over;
use functions::function::{Environment, Event, Queue};
use lambda_runtime::{Context, LambdaEvent};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

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
