//! The metrics and the traces of a function. The test counts every number too. The X-Ray daemon is a socket of the test.

use super::world::{TABLES, World, overtaken};
use crate::harness::emf::Metrics;
use crate::harness::events::Event;
use crate::harness::runtime_api::{FunctionProcess, TRACE};
use crate::harness::server::{Fault, Server, patiently};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::net::UdpSocket;

const NAMESPACE: &str = "Tests";
const NAME: &str = "device-state";
const FUNCTION: (&str, &str) = ("function", NAME);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sums_of_the_metrics_count_the_requests_and_the_faults() {
    let server = Server::start(TABLES).await;
    let process = FunctionProcess::start(&server, NAME, &[("METRICS_NAMESPACE", NAMESPACE)]).await;
    let status = async |event: Event| process.answer(&event).await.status;
    assert_eq!(status(Event::create()).await, 201);
    assert_eq!(status(Event::get()).await, 200);

    // Two throttled sends, a lost answer, and two lost races.
    server.fail_writes(&[Fault::Throttled, Fault::Throttled]);
    // An API with the route `$default` leaves it to the function to find the route.
    assert_eq!(status(Event::patch_state().by_cargo_lambda()).await, 200);
    server.fail_writes(&[Fault::AnswerLost]);
    assert_eq!(status(Event::set_status().text(r#"{"status":"offline"}"#)).await, 200);
    for value in [1, 2] {
        let event = Event::patch_state().text(&format!(r#"{{"levels":[{value}]}}"#));
        assert_eq!(overtaken(&server, &process, event).await, 200);
    }

    // A keyed adjustment with its replay, a refusal, an unknown outcome, a corrupt row.
    for _ in 0..2 {
        assert_eq!(status(Event::adjust().key("k-1")).await, 200);
    }
    assert_eq!(status(Event::set_config()).await, 409, "too soon after it was created");
    server.fail_writes(&[Fault::AnswerLost, Fault::Denied]);
    assert_eq!(status(Event::patch_state().text(r#"{"levels":[3]}"#)).await, 504);
    let corrupt = json!({"deviceId": {"S": "lamp-2"}, "_version": {"N": "-1"}});
    World::on(&server.engine).plant(&corrupt);
    assert_eq!(status(Event::get().device("lamp-2")).await, 500);
    assert_eq!(status(Event::get().device("lamp-3")).await, 404);

    let log = process.end().await;
    let metrics = Metrics::read(&log, NAMESPACE);
    let dimensions = ["function", "route", "throttling_limit"];
    assert_eq!(metrics.dimensions(), dimensions, "a key or an id would be a metric for each item");
    for (name, expected) in [
        ("requests", 12),
        ("changes", 8),
        ("attempts", 10),
        ("conflicts", 2),
        ("lost_answers", 2),
        ("throttled", 2),
        ("unknowns", 1),
        ("replays", 1),
        ("refusals", 1),
        ("superseded", 0),
        ("fenced", 0),
        ("faults", 2),
        ("corrupt_items", 1),
        ("cold_starts", 1),
    ] {
        assert_eq!(metrics.sum(name, &[]), expected, "{name} in total");
        assert_eq!(metrics.sum(name, &[FUNCTION]), expected, "{name} of the function");
    }
    let limit = ("throttling_limit", "key_range");
    assert_eq!(metrics.values("throttled", &[limit]), [2], "only where it was throttled");
    assert_eq!(metrics.values("throttled", &[FUNCTION, limit]), [2]);
    let route = ("route", "PATCH /devices/{deviceId}/state");
    for (name, expected) in [("requests", 4), ("attempts", 6), ("conflicts", 2)] {
        assert_eq!(metrics.sum(name, &[FUNCTION, route]), expected, "{name} of the route");
    }
    assert_eq!(metrics.values("duration_ms", &[FUNCTION]).len(), 12);
    assert_eq!(metrics.values("duration_ms", &[FUNCTION, route]).len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_names_of_powertools_are_read_and_those_of_fencepost_win() {
    let server = Server::start(TABLES).await;
    let theirs = [
        ("POWERTOOLS_SERVICE_NAME", "lamps"),
        ("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE),
        ("POWERTOOLS_LOG_LEVEL", "CRITICAL"),
    ];
    let ours = [("METRICS_NAMESPACE", "Ours"), ("AWS_LAMBDA_LOG_LEVEL", "WARN")];
    for (more, namespace, level) in [(&[][..], NAMESPACE, "FATAL"), (&ours, "Ours", "WARN")] {
        let process = FunctionProcess::start(&server, NAME, &[&theirs, more].concat()).await;
        assert_eq!(process.answer(&Event::get().device("none")).await.status, 404);
        let log = process.end().await;
        let line = log.iter().find(|line| line["status"] == 404).expect("the line of the request");
        assert_eq!((&line["service"], &line["level"]), (&json!("lamps"), &json!(level)));
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Namespace"], namespace);
    }
}

/// The next subsegment at the daemon.
async fn next(daemon: &UdpSocket) -> Value {
    let mut datagram = vec![0; 64 * 1024];
    let length = patiently("a subsegment", daemon.recv(&mut datagram)).await.expect("a datagram");
    let text = std::str::from_utf8(&datagram[..length]).expect("text");
    let (header, document) = text.split_once('\n').expect("two lines");
    assert_eq!(serde_json::from_str::<Value>(header).expect("a header"), json!({"format": "json", "version": 1}));
    serde_json::from_str(document).expect("a document")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_send_of_a_sampled_invocation_is_a_subsegment_of_its_trace() {
    let server = Server::start(TABLES).await;
    let daemon = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let address = daemon.local_addr().expect("bound").to_string();
    // The level of the log says nothing about traces.
    let environment = [("AWS_XRAY_DAEMON_ADDRESS", address.as_str()), ("AWS_LAMBDA_LOG_LEVEL", "ERROR")];
    let process = FunctionProcess::start(&server, NAME, &environment).await;
    process.sample(false);
    process.answer(&Event::create()).await.shows(201, 1);
    process.sample(true);
    process.answer(&Event::get()).await.shows(200, 1);
    process.answer(&Event::adjust().key("k-1")).await.shows(200, 2);

    let mut ids = BTreeSet::new();
    let mut operations = Vec::new();
    while operations.last().map(String::as_str) != Some("TransactWriteItems") {
        let sent = next(&daemon).await;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text in {sent:#}")).to_owned();
        assert_eq!((text(&sent["type"]), text(&sent["name"])), ("subsegment".to_owned(), "DynamoDB".to_owned()));
        assert_eq!(format!("Root={};Parent={}", text(&sent["trace_id"]), text(&sent["parent_id"])), TRACE);
        assert!(sent["start_time"].as_f64() <= sent["end_time"].as_f64(), "{sent:#}");
        let id = text(&sent["id"]);
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{sent:#}");
        assert!(ids.insert(id), "two have one id: {sent:#}");
        // On a busy machine a late answer is hedged. After a very late one, the function sends again.
        if sent["annotations"]["why"] == "first" {
            operations.push(text(&sent["aws"]["operation"]));
        }
    }
    assert_eq!(operations, ["GetItem", "BatchGetItem", "TransactWriteItems"], "nothing of what was not sampled");
}

/// `CloudWatch` would drop the metrics without a word.
#[test]
fn a_function_with_a_namespace_that_cloudwatch_drops_does_not_start_and_names_the_variable() {
    for namespace in [":Fencepost", "AWS/Fencepost"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_function"));
        command.arg("device-state").env("METRICS_NAMESPACE", namespace).env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1");
        for (name, value) in [("FUNCTION_NAME", "f"), ("FUNCTION_MEMORY_SIZE", "128"), ("FUNCTION_VERSION", "1")] {
            command.env(format!("AWS_LAMBDA_{name}"), value);
        }
        let ended = command.env("DEVICES_TABLE", "D").env("IDEMPOTENCY_RECORDS_TABLE", "R").output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && said.contains("METRICS_NAMESPACE or"), "{namespace}: {said}");
    }
}
