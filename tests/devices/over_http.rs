//! The real function over real sockets: lost answers, and many processes.

use super::world::{TABLES, World, start};
use crate::harness::clients::lost;
use crate::harness::engine::{Engine, number};
use crate::harness::events::Event;
use crate::harness::functions::DEVICES;
use crate::harness::server::{Server, config_at, listen};
use crate::harness::world::context;
use aws_sdk_dynamodb::Client;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::task::JoinSet;

fn brightness(engine: &Engine, device: &str) -> i64 {
    let row = engine.row(DEVICES, "deviceId", device);
    row["state"]["M"]["brightness"]["N"].as_str().expect("a number").parse().expect("a whole number")
}

/// A hop in front of an engine's server. It loses every n-th answer to an applied write: by turns, it sends nothing or
/// a 500.
struct LossyHop {
    engine: String,
    client: legacy::Client<HttpConnector, Body>,
    every: usize,
    /// How long each answer takes.
    delay: Duration,
    applied: AtomicUsize,
}

/// As much time as Lambda allows any invocation.
const LONGEST: Duration = Duration::from_mins(15);

async fn lossy_hop(engine: &str, every: usize, delay: Duration) -> (Arc<LossyHop>, String) {
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    let hop = Arc::new(LossyHop { engine: engine.to_owned(), client, every, delay, applied: AtomicUsize::new(0) });
    let address = listen(axum::Router::new().fallback(pass_on).with_state(hop.clone())).await;
    (hop, address)
}

async fn pass_on(State(hop): State<Arc<LossyHop>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.expect("a whole request").to_bytes();
    parts.uri = format!("http://{}/", hop.engine).parse().expect("an address");
    let write = parts.headers["x-amz-target"].to_str().is_ok_and(|target| !target.ends_with("GetItem"));
    // Delivered by a task of its own: it arrives even when the client has given up.
    let delivered = tokio::spawn({
        let hop = hop.clone();
        async move {
            let answer =
                hop.client.request(Request::from_parts(parts, Body::from(body))).await.expect("the engine runs");
            let (parts, body) = answer.into_parts();
            (parts, body.collect().await.expect("a whole answer").to_bytes())
        }
    });
    let (parts, body): (_, Bytes) = delivered.await.expect("delivered");
    tokio::time::sleep(hop.delay).await;
    if !write || parts.status != 200 {
        return Response::from_parts(parts, Body::from(body));
    }
    match hop.applied.fetch_add(1, SeqCst) % (2 * hop.every) {
        0 => std::future::pending().await,
        turn if turn == hop.every => {
            let (status, body) = lost();
            Response::builder().status(status).body(Body::from(body)).expect("a response")
        }
        _ => Response::from_parts(parts, Body::from(body)),
    }
}

/// Makes the lamp brighter by one, without a bound.
fn brighten() -> Event {
    Event::adjust().text(r#"{"attribute":"brightness","by":1}"#)
}

/// Eight clients adjust one lamp 50 times each. Every 20th answer to an applied write is lost, and the others are delayed.
///
/// A row remembers 40 edits, and a client misses an answer after 150 ms. The delay keeps eight clients below 30 commits in this
/// time, even on the fastest machine. The clients' timeouts run in real time: on a slow machine they end early, which is one
/// more kind of lost answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_over_http_apply_no_adjustment_twice_and_leave_hardly_any_unknown() {
    const EVERY: usize = 20;
    let server = Server::start(TABLES).await;
    let (hop, address) = lossy_hop(&server.address, EVERY, Duration::from_millis(45)).await;
    let direct = World::on(&server.engine);
    direct.send(&Event::create()).await.shows(201, 1);
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let config = config_at(&format!("http://{address}"), fencepost::lambda::https_client());
        let world = direct.reached_by(&Client::from_conf(config.build()));
        clients.spawn(async move {
            let (mut acknowledged, mut unknown) = (0, 0);
            for _ in 0..50 {
                match world.send_with(&brighten(), context(LONGEST)).await.status {
                    200 => acknowledged += 1,
                    503 => {}
                    504 => unknown += 1,
                    other => panic!("{other} is no answer to expect here"),
                }
            }
            (acknowledged, unknown)
        });
    }
    let told = clients.join_all().await;
    let acknowledged: i64 = told.iter().map(|(acknowledged, _)| acknowledged).sum();
    let unknown: i64 = told.iter().map(|(_, unknown)| unknown).sum();
    let (held, lost) = (brightness(&server.engine, "lamp-1") - 50, hop.applied.load(SeqCst) / EVERY);
    println!("acknowledged {acknowledged}, held {held}, unknown {unknown}, answers lost {lost}");
    assert!((acknowledged..=acknowledged + unknown).contains(&held), "{acknowledged} <= {held}, {unknown} unknown");
    assert!(lost >= 15, "the network lost too little to show anything: {lost}");
    assert!(unknown <= 2, "{unknown} of 400 are unknown");
}

/// Each process has a store and connections of its own, and knows nothing of the others.
///
/// An edit is refused by its window of 32 only after 32 others were committed. So at most 28 of 60 are refused, each
/// only once: at most 60 reads and 88 writes, or 2.5 requests each. A send that is repeated because of a late answer
/// counts once, because the machine decides about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_processes_that_adjust_or_patch_one_device_at_once_send_less_than_three_requests_each() {
    at_once(|_| brighten()).await;
    at_once(|client| Event::patch_state().json(&json!({format!("m{client}"): 1}))).await;
}

async fn at_once(event: fn(i64) -> Event) {
    const CLIENTS: i64 = 60;
    let server = Server::start(TABLES).await;
    let mut starting = JoinSet::new();
    for _ in 0..CLIENTS {
        let server = server.clone();
        starting.spawn(async move { start(&server, &[]).await });
    }
    let processes = starting.join_all().await;
    let members = (0..CLIENTS).map(|client| (format!("m{client}"), json!(0)));
    let state: Map<_, _> = members.chain([("brightness".to_owned(), json!(0))]).collect();
    World::on(&server.engine).send(&Event::create().json(&json!({"state": state}))).await.shows(201, 1);
    server.engine.take_log();
    let mut clients = JoinSet::new();
    for (client, process) in (0..).zip(processes) {
        let event = event(client);
        clients.spawn(async move {
            let status = process.answer(&event).await.status;
            process.end().await;
            status
        });
    }
    let statuses = clients.join_all().await;
    let log = server.engine.take_log();
    let writes: BTreeSet<_> =
        log.iter().filter(|asked| asked.operation == "UpdateItem").map(|asked| asked.body.to_string()).collect();
    println!("{} requests, {} different writes of {CLIENTS} processes", log.len(), writes.len());
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let row = server.engine.row(DEVICES, "deviceId", "lamp-1");
    let state = row["state"]["M"].as_object().expect("a map").values();
    let sum = state.map(|number| number["N"].as_str().expect("a number").parse::<i64>().expect("whole")).sum::<i64>();
    assert_eq!((sum, number(&row, "_version")), (CLIENTS, 1 + CLIENTS));
    assert!((60..=88).contains(&writes.len()), "{} different writes of {CLIENTS} processes", writes.len());
}
