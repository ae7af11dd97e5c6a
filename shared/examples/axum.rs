//! A service of axum, for a container: items that are changed exactly once, with `ETag`s, conditions, idempotency keys
//! and RFC 9457 problems.
//!
//! It needs a `DynamoDB` that has its two tables, such as that of `cargo dev --dynamodb-only`:
//!
//! ```sh
//! export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1
//! export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
//! cargo run -p fencepost --example axum --features lambda
//! curl -i -X PUT  http://127.0.0.1:3000/visits/lobby
//! curl -i -X POST http://127.0.0.1:3000/visits/lobby -H 'idempotency-key: visit-1'    # twice: one visit
//! curl -i -X POST http://127.0.0.1:3000/visits/nowhere    # 404 application/problem+json
//! ```
//!
//! All settings come from the environment. `axum.Dockerfile` beside this file makes an image of it.
//!
//! | variable | meaning |
//! |---|---|
//! | `LISTEN` | where it listens: `127.0.0.1:3000` by default, `0.0.0.0:3000` in a container |
//! | `VISITS_TABLE`, `IDEMPOTENCY_RECORDS_TABLE` | the tables: `Devices` and `IdempotencyRecords` by default |
//! | `AWS_REGION`, `AWS_ENDPOINT_URL_DYNAMODB` | the region, and another endpoint than that of the region |
//! | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` | set by ECS for a task with a role |
//! | `AWS_CONTAINER_CREDENTIALS_FULL_URI` | set by EKS Pod Identity and others, with a token beside it |
//!
//! The default chain of `aws_config` reads all `AWS_` variables. No feature of `aws_config` is needed for the
//! credentials of a container, because their endpoint is plain HTTP.
//! `https_client` is that of the crate; `aws_config::load_defaults` has one with the feature `default-https-client`.
#![allow(clippy::print_stderr, reason = "a service says where it listens")]

use aws_config::BehaviorVersion;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::routing::get;
use fencepost::http::{Items, MAX_BODY, Problem, Resource, Response, Routes};
use fencepost::lambda::https_client;
use fencepost::{Call, Deadline, Decision, ItemVersion, Record, Source, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::env;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a request may take. ECS waits 30 s between SIGTERM and SIGKILL, so a request that is being answered ends in
/// time.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How often a room was visited.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "deviceId")]
struct Visits {
    count: u64,
}

impl Resource for Visits {
    const NOT_FOUND: (&'static str, &'static str) = ("room_not_found", "there is no room with this name");
    const EXISTS: (&'static str, &'static str) = ("room_exists", "there is a room with this name");

    fn location(&self, id: &str) -> String {
        format!("/visits/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> impl Serialize {
        json!({ "room": id, "count": self.count, "version": at.version.get() })
    }
}

#[derive(Clone, Copy)]
enum Route {
    Open,
    Show,
    Visit,
    Close,
}

const ROUTES: &Routes<Route> = &[
    ("PUT /visits/{room}", Route::Open),
    ("GET /visits/{room}", Route::Show),
    ("POST /visits/{room}", Route::Visit),
    ("DELETE /visits/{room}", Route::Close),
];

/// Answers a request that is read completely. No type of axum is here, so this could be a function on Lambda too.
async fn handle(visits: &Items<Visits>, request: &fencepost::http::Request) -> Result<Response, Problem> {
    let (route, matched) = request.route(ROUTES)?;
    let room = matched.id("room")?;
    let call = Call::new(Deadline::within(ANSWER_WITHIN));
    match route {
        Route::Open => {
            let create = request.create_request(&matched, &json!({}))?;
            visits.create(&room, &Visits { count: 0 }, &create, &call).await
        }
        Route::Show => visits.get(&room, &request.read_preconditions()?, &call).await,
        Route::Visit => {
            let change = request.change_request(&matched, &json!({}))?;
            // Pure: after a conflict it runs again on the other caller's result.
            let decide = |visits: &Visits| Decision::<_, Problem>::Put(Visits { count: visits.count + 1 });
            visits.change(&room, &change, &call, decide).await
        }
        Route::Close => visits.delete(&room, request.delete_request()?, &call).await,
    }
}

/// Answers one request of axum. Responses and problems both convert to what axum sends.
async fn answer(State(visits): State<Items<Visits>>, request: Request) -> http::Response<String> {
    let (parts, body) = request.into_parts();
    let answered = async {
        // Your authentication says who the caller is. Without one, all callers share their idempotency keys.
        let caller = "anonymous";
        let request = fencepost::http::Request::from_http(&parts, &read(body).await?, caller);
        handle(&visits, &request).await
    };
    answered.await.map_or_else(Into::into, Into::into)
}

/// Reads the whole body, and no more than a body may have.
async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    match to_bytes(body, MAX_BODY).await {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) => Err(Problem::too_large(format!("a body may have {MAX_BODY} bytes"))),
    }
}

/// `/health` says that the process answers. It does not ask `DynamoDB`: if that is slow, new containers do not help.
fn router(visits: Items<Visits>) -> Router {
    Router::new().route("/health", get(async || "ok\n")).fallback(answer).with_state(visits)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let setting = |name, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    // Sends nothing yet: the first request asks for credentials, and the client asks again before they expire.
    let store = Store::new(&aws_sdk_dynamodb::Client::new(
        &aws_config::defaults(BehaviorVersion::latest()).http_client(https_client()).load().await,
    ));
    let visits = Items::with_idempotency(
        store.table(setting("VISITS_TABLE", "Devices")),
        store.idempotency(setting("IDEMPOTENCY_RECORDS_TABLE", "IdempotencyRecords")),
    );
    let listener = tokio::net::TcpListener::bind(setting("LISTEN", "127.0.0.1:3000")).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    eprintln!("listening on {}", listener.local_addr()?);
    let asked_to_stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    // No connection is accepted any more, and requests that are being answered get their answers.
    Ok(axum::serve(listener, router(visits)).with_graceful_shutdown(asked_to_stop).await?)
}

#[cfg(test)]
#[path = "axum/tests.rs"]
mod tests;
