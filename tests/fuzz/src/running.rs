//! The functions in an invocation without time: every parsed request reaches the table, which is not there.

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::encodings;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use axum::Router;
use fencepost::{Call, Clock, Deadline, Store};
use functions::function::{Environment, Event, Queue};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// 2026-03-07T10:00:00Z, in seconds since 1970.
const NOW: u64 = 1_772_877_600;

/// The clock of the functions.
pub fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)
}

/// A call after its deadline.
pub fn over() -> Call {
    Call::new(Deadline::within(Duration::ZERO))
}

/// The context of an invocation that had to end long ago.
pub fn context() -> Context {
    let mut context = Context::default();
    context.deadline = NOW;
    context
}

pub struct Functions {
    pub deletes: Queue,
    /// Those with routes, by their names.
    with_routes: Vec<(&'static str, Router)>,
    runtime: tokio::runtime::Runtime,
}

/// An answer of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub status: i64,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Functions {
    pub fn new() -> Self {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            // Nothing listens there. No name has to be looked up.
            .endpoint_url("http://127.0.0.1:1")
            .credentials_provider(Credentials::new("fuzz", "fuzz", None, None, "fuzz"))
            .build();
        let store = Store::new(&aws_sdk_dynamodb::Client::from_conf(config)).with_clock(Clock::new(now));
        let tables: &Environment = &|name| name.strip_suffix("_TABLE").map(str::to_owned);
        let (mut with_routes, mut deletes) = (Vec::new(), None);
        for function in functions::ALL {
            match &function.event {
                Event::Http { start, .. } => with_routes.push((function.name, start(&store, tables).expect("tables"))),
                Event::Sqs { start, .. } => deletes = Some(start(&store, tables).expect("tables")),
                Event::Schedule { .. } => {} // It reads nothing of its event.
            }
        }
        Functions {
            deletes: deletes.expect("a function with a queue"),
            with_routes,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
        }
    }

    pub fn wait<R>(&self, work: impl Future<Output = R>) -> R {
        self.runtime.block_on(work)
    }

    /// The answer of each function with routes to the event.
    pub fn answers(&self, event: &ApiGatewayV2httpRequest) -> Vec<(&'static str, Answer)> {
        let answer = |router: &Router| {
            let event = LambdaEvent::new(event.clone(), context());
            let answer = self.wait(Box::pin(fencepost::lambda::respond(router, event)));
            let text = |value: &aws_lambda_events::http::HeaderValue| value.to_str().expect("text").to_owned();
            let body = match &answer.body {
                Some(encodings::Body::Text(text)) => serde_json::from_str(text).expect("a body is JSON"),
                _ => Value::Null,
            };
            Answer {
                status: answer.status_code,
                headers: answer.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
                body,
            }
        };
        self.with_routes.iter().map(|(name, router)| (*name, answer(router))).collect()
    }
}

thread_local! {
    static FUNCTIONS: Functions = Functions::new();
}

/// The functions of this thread. They keep nothing from one input to the next, because nothing is ever answered to them.
pub fn with_functions<R>(work: impl FnOnce(&Functions) -> R) -> R {
    FUNCTIONS.with(work)
}
