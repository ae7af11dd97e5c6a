//! The measured processes: the engine and a function on a Runtime API of its own.
//!
//! The API: <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>
#![expect(clippy::disallowed_methods, reason = "measures on the wall clock")]

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use crowds::table;
use dynoxide::Database;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, mpsc, oneshot};

struct Api {
    first: Mutex<Option<oneshot::Sender<Instant>>>,
    events: Mutex<mpsc::Receiver<Value>>,
    answers: mpsc::Sender<String>,
}

/// A function waiting for its first event.
pub struct Function {
    /// The time from just before the process was created until it asked for its first event.
    pub start: Duration,
    child: Child,
    events: mpsc::Sender<Value>,
    answers: mpsc::Receiver<String>,
}

impl Function {
    /// Starts the program. Its environment has only the variables set by Lambda and `environment`.
    ///
    /// # Errors
    /// The program does not start, or ends before it asks for an event.
    pub async fn start(program: &Path, environment: &[(&str, &str)]) -> io::Result<Self> {
        let (first, started) = oneshot::channel();
        let (events, receiver) = mpsc::channel(1);
        let (sender, answers) = mpsc::channel(1);
        let api = Api { first: Mutex::new(Some(first)), events: Mutex::new(receiver), answers: sender };
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(answered))
            .with_state(Arc::new(api));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let mut command = Command::new(program);
        command.env_clear().envs([
            ("AWS_LAMBDA_RUNTIME_API", address.as_str()),
            ("AWS_LAMBDA_FUNCTION_NAME", "measured"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "bench"),
            ("AWS_SECRET_ACCESS_KEY", "bench"),
        ]);
        command.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let begun = Instant::now();
        let mut child = command.spawn()?;
        tokio::select! {
            at = started => match at {
                Ok(at) => Ok(Function { start: at - begun, child, events, answers }),
                Err(_) => Err(io::Error::other("its Runtime API has ended")),
            },
            status = child.wait() => Err(io::Error::other(format!("{} has ended: {}", program.display(), status?))),
        }
    }

    /// Sends one event and waits for the answer.
    ///
    /// # Errors
    /// The process or its API has ended.
    pub async fn invoke(&mut self, event: Value) -> io::Result<String> {
        self.events.send(event).await.map_err(io::Error::other)?;
        self.answers.recv().await.ok_or_else(|| io::Error::other("no answer"))
    }

    /// The peak resident memory of the process so far, in KiB (`VmHWM`).
    ///
    /// # Errors
    /// There is no `/proc` or no such process any more.
    pub fn peak_memory(&self) -> io::Result<u64> {
        let id = self.child.id().ok_or_else(|| io::Error::other("the process has ended"))?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| io::Error::other("no VmHWM"))
    }

    /// Ends the process.
    ///
    /// # Errors
    /// The process cannot be ended.
    pub async fn stop(mut self) -> io::Result<()> {
        self.child.kill().await
    }
}

async fn next(State(api): State<Arc<Api>>) -> (HeaderMap, String) {
    let now = Instant::now();
    if let Some(first) = api.first.lock().await.take() {
        let _ = first.send(now);
    }
    let Some(event) = api.events.lock().await.recv().await else { return std::future::pending().await };
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + Duration::from_secs(10);
    let headers = [
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-west-1:123456789012:function:f".to_owned()),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
    (headers.collect(), event.to_string())
}

async fn answered(State(api): State<Arc<Api>>, body: String) -> axum::http::StatusCode {
    let _ = api.answers.send(body).await;
    axum::http::StatusCode::ACCEPTED
}

/// The event that API Gateway sends to `/devices/lamp-1`, or to a sub-resource of it.
pub fn event(method: &str, sub: &str, body: &Value) -> Value {
    let path = format!("/devices/lamp-1{sub}");
    json!({
        "version": "2.0",
        "routeKey": format!("{method} /devices/{{deviceId}}{sub}"),
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"stage": "$default", "http": {"method": method, "path": path}},
        "pathParameters": {"deviceId": "lamp-1"},
        "body": body.to_string(),
        "isBase64Encoded": false,
    })
}

/// A runtime on this thread.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts the engine in a process of its own, so that it takes no time from the measurement. Returns it with its
/// endpoint.
///
/// # Errors
/// The process does not start, or does not say where it answers.
pub async fn start_engine() -> io::Result<(Child, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut engine = command.arg("engine").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut port = String::new();
    let stdout = engine.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    BufReader::new(stdout).read_line(&mut port).await?;
    match port.trim() {
        "" => Err(io::Error::other("the engine has ended")),
        port => Ok((engine, format!("http://127.0.0.1:{port}"))),
    }
}

/// Serves the engine until the process that started this one ends, however it ends. Prints its port as the first line.
///
/// # Errors
/// There is no free port or the output is closed.
pub async fn serve_engine() -> io::Result<()> {
    let db = Database::memory().map_err(io::Error::other)?;
    for (name, key) in table::TABLES {
        let request = json!({
            "TableName": name,
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        db.create_table(serde_json::from_value(request)?).map_err(io::Error::other)?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = format!("{}\n", listener.local_addr()?.port());
    tokio::io::stdout().write_all(port.as_bytes()).await?;
    tokio::io::stdout().flush().await?;
    let mut nothing = Vec::new();
    tokio::select! {
        () = dynoxide::server::serve_on(listener, db) => Ok(()),
        ended = async { tokio::io::stdin().read_to_end(&mut nothing).await } => ended.map(|_| ()),
    }
}
