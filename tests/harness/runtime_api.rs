//! Lambda's Runtime API for one process: hands it events and takes its answers.
//!
//! The process runs the real runtime, which polls `…/invocation/next` and posts `…/response` or `…/error`. Source:
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

use super::answers::Answer;
use super::contract::assert_described;
use super::events::Event;
use super::functions::environment_of;
use super::server::{Server, listen, patiently};
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use serde_json::Value;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

/// The time of an invocation in these tests: the most that Lambda allows. Even a slow machine needs far less.
const TIMEOUT: Duration = Duration::from_mins(15);

type Invocation = (Value, oneshot::Sender<Value>);

/// A function in a process of its own.
pub struct FunctionProcess {
    events: mpsc::Sender<Invocation>,
    api: Arc<Api>,
    process: Child,
    log: JoinHandle<Vec<Value>>,
}

/// The trace of every invocation, without its last member.
pub const TRACE: &str = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419";

struct Api {
    /// Whether the traces of the next invocations are sampled.
    sampled: AtomicBool,
    events: Mutex<mpsc::Receiver<Invocation>>,
    answered: Mutex<Option<oneshot::Sender<Value>>>,
}

impl FunctionProcess {
    /// Starts `name` on the tables of this server, with the variables that it declares as template.yaml sets them, and with
    /// more variables beside or instead of them.
    pub async fn start(server: &Server, name: &'static str, more: &[(&str, &str)]) -> Self {
        let (events, receiver) = mpsc::channel(1);
        let api =
            Arc::new(Api { sampled: AtomicBool::new(true), events: Mutex::new(receiver), answered: Mutex::default() });
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(response))
            .with_state(Arc::clone(&api));
        let address = listen(routes).await;
        let function = functions::ALL.iter().find(|function| function.name == name).expect("a function of that name");
        let set = environment_of(name);
        let declared = function.variables.iter().filter_map(|variable| Some((variable.name, set(variable.name)?)));
        let mut process = Command::new(env!("CARGO_BIN_EXE_function"))
            .arg(name)
            .envs([
                ("AWS_LAMBDA_RUNTIME_API", address.as_str()),
                ("AWS_LAMBDA_FUNCTION_NAME", name),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
            ])
            .env("AWS_ENDPOINT_URL_DYNAMODB", server.endpoint())
            .envs(declared)
            .envs(more.iter().copied())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary is built");
        let log = tokio::spawn(lines(process.stdout.take().expect("a pipe")));
        FunctionProcess { events, api, process, log }
    }

    /// Sends one event and waits for the function's answer, or for its report of a failed invocation.
    pub async fn invoke(&self, event: Value) -> Value {
        let (answered, answer) = oneshot::channel();
        self.events.send((event, answered)).await.expect("the API runs");
        patiently("an answer of the function", answer).await.expect("the function answers")
    }

    /// Sends one event of API Gateway and waits for the answer.
    pub async fn answer(&self, event: &Event) -> Answer {
        let answer = self.invoke(event.0.clone()).await;
        let answer = serde_json::from_value::<ApiGatewayV2httpResponse>(answer).expect("a response").into();
        assert_described(event, &answer);
        answer
    }

    /// Samples the traces of the next invocations, or not.
    pub fn sample(&self, sampled: bool) {
        self.api.sampled.store(sampled, Relaxed);
    }

    /// Ends the process and gives its log. Each line is written before the answer that it belongs to.
    pub async fn end(mut self) -> Vec<Value> {
        self.process.kill().await.expect("it was running");
        self.log.await.expect("lines of JSON")
    }
}

/// Reads lines of JSON until all writers have closed.
async fn lines(log: ChildStdout) -> Vec<Value> {
    let (mut log, mut lines) = (BufReader::new(log).lines(), Vec::new());
    while let Some(line) = log.next_line().await.expect("text") {
        lines.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
    }
    lines
}

async fn next(State(api): State<Arc<Api>>) -> (HeaderMap, String) {
    let Some((event, answered)) = api.events.lock().await.recv().await else {
        return std::future::pending().await; // the test has killed the process
    };
    *api.answered.lock().await = Some(answered);
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970") + TIMEOUT;
    let sampled = u8::from(api.sampled.load(Relaxed));
    let headers = [
        ("lambda-runtime-trace-id", format!("{TRACE};Sampled={sampled}")),
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-west-1:123456789012:function:f".to_owned()),
    ];
    let headers = headers.map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
    (headers.into_iter().collect(), event.to_string())
}

async fn response(State(api): State<Arc<Api>>, Path(_id): Path<String>, body: String) {
    let answered = api.answered.lock().await.take().expect("one answer an event");
    drop(answered.send(serde_json::from_str(&body).expect("answers are JSON")));
}
