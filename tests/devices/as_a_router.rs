//! The function as a router without events, as in a container and in a test of a user.

use crate::harness::clock::{Clock, TEN_O_CLOCK};
use crate::harness::engine::with_indexed_tables;
use crate::harness::functions::{Devices, Functions, environment_of};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use fencepost::http::Invocation;
use fencepost::{Deadline, Store};
use functions::function::Event;
use serde_json::Value;
use std::time::Duration;
use tower_service::Service;

fn router() -> Router {
    let engine = with_indexed_tables(Devices::TABLES);
    let store: Store = Clock::standing(TEN_O_CLOCK).store(&engine.client());
    let Event::Http { start, .. } = functions::device_state::FUNCTION.event else { panic!("it has routes") };
    start(&store, &environment_of("device-state")).expect("a router")
}

async fn send(router: &Router, request: Request<Body>) -> (Response<()>, Value) {
    let Ok(answer) = router.clone().call(request).await;
    let (parts, body) = answer.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    (Response::from_parts(parts, ()), serde_json::from_slice(&body).unwrap_or_default())
}

fn request(method: &str, path: &str, body: &'static str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).body(Body::from(body)).expect("a request");
    let told = Invocation::new("ann", "r-1", Deadline::within(Duration::from_mins(1)));
    request.extensions_mut().insert(told);
    request
}

/// Compiles only for a type that axum, tower and a concurrent runtime may move between threads.
fn is_shared(router: Router) -> impl Clone + Send + Sync + 'static {
    router
}

#[tokio::test]
async fn a_router_answers_without_an_event() {
    let router = router();
    let _ = is_shared(router.clone());
    let (created, lamp) = send(&router, request("PUT", "/devices/lamp-1", r#"{"state":{"n":1}}"#)).await;
    assert_eq!(
        (created.status().as_u16(), &created.headers()["location"]),
        (201, &"/devices/lamp-1".parse().expect("text"))
    );
    let mut again = request("GET", "/devices/lamp%2D1?unread=a%20b", "");
    let (shown, same) = send(&router, again).await;
    assert_eq!((shown.status().as_u16(), same), (200, lamp));
    again = request("GET", "/devices/lamp-1", "");
    again.headers_mut().insert("if-none-match", shown.headers()["etag"].clone());
    assert_eq!(send(&router, again).await.0.status().as_u16(), 304);
    for (method, path, status, code) in [
        ("GET", "/devices/a%2Fb", 400, "invalid_id"),
        ("GET", "/devices/%FF", 400, "invalid_id"),
        ("GET", "/devices", 404, "no_such_route"),
        ("POST", "/devices/lamp-1", 405, "method_not_allowed"),
    ] {
        let (refused, problem) = send(&router, request(method, path, "")).await;
        assert_eq!((refused.status().as_u16(), problem["code"].as_str()), (status, Some(code)), "{method} {path}");
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
    }
}
