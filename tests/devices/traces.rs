//! The traces of a function: the X-Ray daemon is a socket of the test.

use super::process::start;
use super::world::TABLES;
use crate::harness::events::Event;
use crate::harness::runtime_api::TRACE;
use crate::harness::server::{Server, patiently};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::net::UdpSocket;

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
    let process = start(&server, &environment).await;
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
