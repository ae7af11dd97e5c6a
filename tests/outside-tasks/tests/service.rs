//! A service of axum that counts visits once per request, and a consumer of a queue that may deliver twice.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::middleware::map_request;
use axum::routing::put;
use fencepost::http::{Invocation, Items, Problem, Request, Resource, Response};
use fencepost::{Answer, Deadline, IdempotencyClaim, IdempotencyError, ItemVersion, Reads, Record, Store, Table};
use fencepost_test::Engine;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tower::ServiceExt;

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "room")]
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

async fn visit(State(visits): State<Items<Visits>>, told: Invocation, request: Request) -> Result<Response, Problem> {
    let change = request.change_request(&json!({}))?;
    let decide = |now: &Visits| -> Result<_, Problem> { Ok(Some(Visits { count: now.count + 1 })) };
    visits.in_call(told.call()).change(&request.id("room")?, &change, decide).await
}

fn service(store: &Store) -> Router {
    let visits = Items::with_idempotency(store.table("Rooms"), store.idempotency("Requests"));
    Router::new().route("/visits/{room}", put(open).post(visit)).with_state(visits).layer(map_request(
        async |mut request: HttpRequest| {
            let told = Invocation::new("anonymous", "", Deadline::within(Duration::from_secs(5)));
            request.extensions_mut().insert(told);
            request
        },
    ))
}

/// Counts the visit of a message once, however often it comes. An `Err` asks the queue for it again.
async fn consume(store: &Store, message: &str, room: &str) -> Result<Answer<u64>, IdempotencyError> {
    let rooms: Table<Visits> = store.table("Rooms");
    let mut reads = Reads::new();
    let item = reads.item("the room", &rooms, room);
    let claim = IdempotencyClaim::new(&["visit", message], &[room])?;
    let requests = store.idempotency("Requests");
    let counting = requests.change(&claim, reads, |attempt| {
        let Some(now) = attempt.get(item)? else { return Ok(0) };
        let count = now.count + 1;
        attempt.update_at(item, &Visits { count })?;
        Ok(count)
    });
    counting.await
}

#[tokio::test]
async fn requests_and_messages_that_come_twice_count_once() {
    let engine = Engine::embedded(&[("Rooms", "room"), ("Requests", "recordId")]);
    let store = Store::new(&engine.client());
    let ask = async |method: &str, key: Option<&str>| {
        let request = HttpRequest::builder().method(method).uri("/visits/lobby");
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        let answer = service(&store).oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
        answer.status()
    };
    assert_eq!(ask("PUT", None).await, StatusCode::CREATED);
    engine.take_counts();
    assert_eq!(ask("POST", Some("visit-1")).await, StatusCode::OK);
    assert_eq!(engine.take_counts(), (1, 1));
    assert_eq!(ask("POST", Some("visit-1")).await, StatusCode::OK);
    assert_eq!(engine.take_counts(), (1, 0));
    assert_eq!(consume(&store, "m-1", "lobby").await.expect("counted"), Answer::New(2));
    assert_eq!(consume(&store, "m-1", "lobby").await.expect("counted"), Answer::Replayed(2));
    assert_eq!(engine.take_counts(), (2, 1));
}
