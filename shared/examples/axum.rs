//! A service of axum with routes of its own: items that are changed exactly once, with `ETag`s, conditions, idempotency
//! keys and RFC 9457 problems. Run it on the tables of `cargo dev --dynamodb-only`:
//!
//! ```sh
//! export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1
//! export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
//! cargo run -p fencepost --example axum --features axum
//! curl -i -X PUT  http://127.0.0.1:3000/visits/lobby
//! curl -i -X POST http://127.0.0.1:3000/visits/lobby -H 'idempotency-key: visit-1'    # twice: one visit
//! curl -i -X POST http://127.0.0.1:3000/visits/nowhere    # 404 application/problem+json
//! ```
//!
//! A service also ends well on SIGTERM: `functions/examples/container.rs` in the repository shows that.
#![allow(clippy::print_stderr, reason = "a service says where it listens")]

use aws_config::BehaviorVersion;
use axum::Router;
use axum::extract::State;
use axum::middleware::map_request;
use axum::routing::put;
use fencepost::http::{Id, Invocation, Items, Preconditions, Problem, Request, Resource, Response};
use fencepost::{Deadline, ItemVersion, Record, Source, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// How long a request may take.
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

async fn open(State(visits): State<Items<Visits>>, told: Invocation, request: Request) -> Result<Response, Problem> {
    let create = request.create_request(&json!({}))?;
    visits.in_call(told.call()).create(&request.id("room")?, &Visits { count: 0 }, &create).await
}

async fn show(
    State(visits): State<Items<Visits>>,
    told: Invocation,
    room: Id,
    preconditions: Preconditions,
) -> Result<Response, Problem> {
    visits.in_call(told.call()).get(&room, &preconditions).await
}

async fn visit(State(visits): State<Items<Visits>>, told: Invocation, request: Request) -> Result<Response, Problem> {
    let change = request.change_request(&json!({}))?;
    // Pure: after a conflict it runs again on the other caller's result.
    let decide = |visits: &Visits| -> Result<_, Problem> { Ok(Some(Visits { count: visits.count + 1 })) };
    visits.in_call(told.call()).change(&request.id("room")?, &change, decide).await
}

async fn close(State(visits): State<Items<Visits>>, told: Invocation, request: Request) -> Result<Response, Problem> {
    visits.in_call(told.call()).delete(&request.id("room")?, request.delete_request()?).await
}

/// A router like any other, which `fencepost::lambda::serve` would serve as well.
fn router(visits: Items<Visits>) -> Router {
    Router::new()
        .route("/visits/{room}", put(open).get(show).post(visit).delete(close))
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::method_not_allowed("PUT, GET, POST, DELETE".to_owned()))
        .with_state(visits)
        .layer(map_request(async |mut request: axum::extract::Request| {
            // Your authentication says who the caller is. Without one, all callers share their idempotency keys.
            let told = Invocation::new("anonymous", "", Deadline::within(ANSWER_WITHIN));
            request.extensions_mut().insert(told);
            request
        }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let store = Store::new(&aws_sdk_dynamodb::Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await));
    let visits = Items::with_idempotency(store.table("Devices"), store.idempotency("IdempotencyRecords"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    eprintln!("listening on {}", listener.local_addr()?);
    Ok(axum::serve(listener, router(visits)).await?)
}

#[cfg(test)]
mod tests {
    use super::{Items, Store, router};
    use fencepost_test::Engine;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_visit_that_comes_twice_under_one_key_counts_once() {
        let engine = Engine::embedded(&[("Devices", "deviceId"), ("IdempotencyRecords", "recordId")]);
        let store = Store::new(&engine.client());
        let visits = Items::with_idempotency(store.table("Devices"), store.idempotency("IdempotencyRecords"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, router(visits)).await });
        engine.take_counts();
        for (request, status, reads, writes) in [
            ("PUT /visits/lobby", 201, 0, 1),
            ("POST /visits/lobby", 200, 1, 1),
            ("POST /visits/lobby", 200, 1, 0),
            ("POST /visits/nowhere", 404, 2, 0),
        ] {
            let head = format!("{request} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-length: 0\r\n");
            let key = format!("idempotency-key: of-{}\r\n", request.rsplit('/').next().unwrap_or_default());
            let key = if request.starts_with("POST") { &*key } else { "" };
            let mut stream = tokio::net::TcpStream::connect(at).await.expect("it listens");
            stream.write_all(format!("{head}{key}\r\n").as_bytes()).await.expect("it is sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
            assert_eq!(engine.take_counts(), (reads, writes), "{request}");
        }
    }
}
