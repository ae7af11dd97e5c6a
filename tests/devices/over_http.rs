//! The real function over real sockets: processes that race, and a network that loses answers.

use crate::devices::world::{RECORDS, TABLE, TABLES, app, context};
use crate::harness::engine::Engine;
use crate::harness::runtime_api::FunctionProcess;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use device_state::App;
use dynoxide::Database;
use fencepost::Store;
use http_body_util::BodyExt;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use tokio::net::TcpListener;

/// The engine with these tables behind its own HTTP server; its address.
pub async fn engine_over_http(tables: &[(&str, &str)]) -> (Engine, String) {
    let database = Database::memory().expect("SQLite in memory");
    let engine = Engine::on(database.clone(), tables);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(dynoxide::server::serve_on(listener, database));
    (engine, address)
}

/// An event as API Gateway sends it, for a device's sub-resource (`""` for the device itself).
fn event(method: &str, device: &str, sub: &str, body: &Value) -> Value {
    json!({
        "version": "2.0",
        "routeKey": format!("{method} /devices/{{deviceId}}{sub}"),
        "rawPath": format!("/devices/{device}{sub}"),
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"stage": "$default", "http": {"method": method, "path": format!("/devices/{device}{sub}")}},
        "pathParameters": {"deviceId": device},
        "body": body.to_string(),
        "isBase64Encoded": false,
    })
}

fn create(device: &str) -> Value {
    event("PUT", device, "", &json!({"state": {"brightness": 50}}))
}

fn one_brighter(device: &str) -> Value {
    event("POST", device, "/adjustments", &json!({"attribute": "brightness", "by": 1}))
}

fn brightness(engine: &Engine, device: &str) -> i64 {
    let row = engine.row(TABLE, "deviceId", device);
    row["state"]["M"]["brightness"]["N"].as_str().expect("a number").parse().expect("a whole number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_processes_that_race_lose_no_adjustment_and_apply_none_twice() {
    const CLIENTS: i64 = 5;
    const ADJUSTMENTS: i64 = 10;
    let (engine, address) = engine_over_http(TABLES).await;
    let endpoint = format!("http://{address}");
    let environment = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("DEVICES_TABLE", TABLE),
        ("IDEMPOTENCY_RECORDS_TABLE", RECORDS),
    ];
    let mut processes = Vec::new();
    for _ in 0..CLIENTS {
        processes.push(FunctionProcess::start("device-state", &environment).await);
    }
    assert_eq!(processes[0].invoke(create("lamp-1")).await["statusCode"], 201);

    let acknowledged = Arc::new(AtomicI64::new(0));
    let begun = Arc::new(AtomicI64::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for process in processes {
        let (acknowledged, begun) = (acknowledged.clone(), begun.clone());
        clients.spawn(async move {
            for _ in 0..ADJUSTMENTS {
                begun.fetch_add(1, SeqCst);
                loop {
                    let answer = process.invoke(one_brighter("lamp-1")).await;
                    match answer["statusCode"].as_u64() {
                        Some(200) => break,
                        Some(503) => {} // nothing was applied: the same request may win
                        _ => panic!("neither done nor safe to repeat: {answer}"),
                    }
                }
                acknowledged.fetch_add(1, SeqCst);
            }
        });
    }
    let watching = tokio::spawn({
        let (engine, acknowledged, begun) = (engine.clone(), acknowledged.clone(), begun.clone());
        async move {
            while acknowledged.load(SeqCst) < CLIENTS * ADJUSTMENTS {
                let at_least = 50 + acknowledged.load(SeqCst);
                let now = brightness(&engine, "lamp-1");
                let at_most = 50 + begun.load(SeqCst);
                assert!((at_least..=at_most).contains(&now), "{at_least} <= {now} <= {at_most}");
                tokio::task::yield_now().await;
            }
        }
    });
    clients.join_all().await;
    watching.await.expect("brightness was 50 + acknowledged at any time");
    assert_eq!(brightness(&engine, "lamp-1"), 100);
}

/// A hop in front of an engine's HTTP server that takes 5 ms each way and loses answers of applied writes.
struct LossyHop {
    engine: String,
    client: legacy::Client<HttpConnector, Body>,
    rng: Mutex<fastrand::Rng>,
    lost: AtomicU32,
}

const HOP: Duration = Duration::from_millis(5);

async fn lossy_hop(engine: String, seed: u64) -> (Arc<LossyHop>, String) {
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    let rng = Mutex::new(fastrand::Rng::with_seed(seed));
    let hop = Arc::new(LossyHop { engine, client, rng, lost: AtomicU32::new(0) });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let routes = axum::Router::new().fallback(pass_on).with_state(hop.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (hop, address)
}

async fn pass_on(State(hop): State<Arc<LossyHop>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.expect("a whole request").to_bytes();
    parts.uri = format!("http://{}/", hop.engine).parse().expect("an address");
    let write = parts.headers["x-amz-target"].to_str().is_ok_and(|target| !target.ends_with("GetItem"));
    tokio::time::sleep(HOP).await;
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
    tokio::time::sleep(HOP).await;
    if write && parts.status == 200 && hop.rng.lock().expect("no panic").u32(0..100) < 5 {
        let lost = hop.lost.fetch_add(1, SeqCst);
        if lost.is_multiple_of(2) {
            std::future::pending::<()>().await;
        }
        let error = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "on purpose"});
        return Response::builder().status(500).body(Body::from(error.to_string())).expect("a response");
    }
    Response::from_parts(parts, Body::from(body))
}

/// The real SDK over real sockets, plain HTTP: no TLS roots to load.
fn client_at(address: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(format!("http://{address}"))
        .retry_config(RetryConfig::disabled())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}

/// What the real handler answers to an event; Lambda's deadline is 10 s away.
async fn answer(app: &App, event: Value) -> i64 {
    let context = context(Duration::from_secs(10));
    let event = LambdaEvent::new(serde_json::from_value(event).expect("an event"), context);
    Box::pin(fencepost::lambda::respond(app, &device_state::handle, event)).await.status_code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_over_http_apply_no_adjustment_twice() {
    const WRITERS: usize = 8;
    const DEVICES: usize = 8;
    const INCREMENTS: usize = 50;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (engine, address) = engine_over_http(TABLES).await;
    let (hop, address) = lossy_hop(address, seed).await;
    let app_at = |address: &str| app(&Store::new(&client_at(address)));
    let app = app_at(&address);
    for device in 0..DEVICES {
        assert_eq!(answer(&app, create(&format!("lamp-{device}"))).await, 201);
    }
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let app = app_at(&address);
        writers.spawn(async move {
            let (mut acknowledged, mut unknown) = (0, 0);
            for increment in 0..INCREMENTS {
                // Every device is everybody's: each writer goes round them all.
                let device = format!("lamp-{}", (writer + increment) % DEVICES);
                match answer(&app, one_brighter(&device)).await {
                    200 => acknowledged += 1,
                    503 => {}
                    504 => unknown += 1,
                    other => panic!("{other} is no answer to expect here"),
                }
            }
            (acknowledged, unknown)
        });
    }
    let told = writers.join_all().await;
    let acknowledged: i64 = told.iter().map(|(acknowledged, _)| acknowledged).sum();
    let unknown: i64 = told.iter().map(|(_, unknown)| unknown).sum();
    let held: i64 = (0..DEVICES).map(|device| brightness(&engine, &format!("lamp-{device}")) - 50).sum();
    let lost = hop.lost.load(SeqCst);
    println!("acknowledged {acknowledged}, held {held}, unknown {unknown}, answers lost {lost}");
    assert!(lost > 5, "the network lost too little to show anything: {lost}");
    assert!(
        acknowledged <= held && held <= acknowledged + unknown,
        "{acknowledged} <= {held} <= {}",
        acknowledged + unknown
    );
    assert!(unknown * 100 <= i64::try_from(WRITERS * INCREMENTS).expect("small"), "{unknown} unknown");
}
