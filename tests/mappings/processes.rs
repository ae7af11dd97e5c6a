//! The real functions in processes of their own, over real sockets: their answers and their logs.

use super::world::{IP, T1, T2, batch_of, deletion, look_up, registration, task};
use crate::harness::events::Event;
use crate::harness::functions::{Functions, Mappings};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::Server;
use serde_json::{Value, json};

/// Starts a function on this server, with the crate's lines for debugging in its log.
async fn start(server: &Server, function: &'static str) -> FunctionProcess {
    FunctionProcess::start(server, function, &[("AWS_LAMBDA_LOG_LEVEL", "info,fencepost=debug")]).await
}

async fn status(process: &FunctionProcess, event: Event) -> i64 {
    process.answer(&event).await.status
}

/// The lines with this message.
fn lines<'a>(log: &'a [Value], message: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["message"] == message).collect()
}

fn assert_calm(log: &[Value]) {
    let levels = log.iter().map(|line| line["level"].as_str().expect("a level"));
    assert!(levels.into_iter().all(|level| ["INFO", "DEBUG"].contains(&level)), "{log:#?}");
    assert!(!log.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_that_comes_too_late_is_a_success_and_no_warning_at_either_door() {
    let server = Server::start(Mappings::TABLES).await;
    let (hosts, deletes) = (start(&server, "host-mapping").await, start(&server, "delete-mapping").await);
    assert_eq!(status(&hosts, registration(IP, "i-a", T1)).await, 201);
    assert_eq!(status(&hosts, registration(IP, "i-b", T2)).await, 201);

    let late = batch_of(&[("m-1", task(IP, T1, Some("i-a")))]);
    assert_eq!(deletes.invoke(late).await, json!({"batchItemFailures": []}));
    assert_eq!(hosts.answer(&deletion(IP, T1, Some("i-a"))).await.outcome(), "superseded");
    assert_eq!(hosts.answer(&look_up(IP)).await.shown(200)["instanceId"], "i-b", "it is still there");

    let log = deletes.end().await;
    assert_calm(&log);
    let [line] = lines(&log, "task")[..] else { panic!("one line for the message: {log:#?}") };
    for (field, value) in [
        ("level", "INFO"),
        ("function", "delete-mapping"),
        ("messageId", "m-1"),
        ("key", IP),
        ("outcome", "superseded"),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    let [line] = lines(&log, "refused by what stands there")[..] else { panic!("a line for debugging: {log:#?}") };
    assert_eq!((&line["level"], &line["name"]), (&json!("DEBUG"), &json!("i-b")), "{line}");
    let [line] = lines(&log, "batch")[..] else { panic!("one line for the batch: {log:#?}") };
    assert_eq!((&line["requests"], &line["failed"], &line["attempts"]), (&json!(1), &json!(0), &json!(1)), "{line}");
    assert_eq!((&line["conflicts"], &line["lost_answers"]), (&json!(0), &json!(0)), "{line}");

    let log = hosts.end().await;
    assert_calm(&log);
    let outcomes: Vec<_> = lines(&log, "request").iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["created", "created", "superseded", "ok"]);
    assert_eq!(lines(&log, "request")[2]["key"], IP);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_message_is_a_warning_that_names_the_field_and_does_not_repeat_its_text() {
    let server = Server::start(Mappings::TABLES).await;
    let deletes = start(&server, "delete-mapping").await;
    let bad = json!({"hostIp": IP, "creationTimestamp": "a secret", "instanceId": "another secret"}).to_string();
    let batch = batch_of(&[("m-1", bad), ("m-2", task(IP, T1, None))]);
    assert_eq!(deletes.invoke(batch).await, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
    let log = deletes.end().await;
    let [bad, good] = lines(&log, "task")[..] else { panic!("a line for each message: {log:#?}") };
    for (field, value) in [
        ("level", "WARN"),
        ("messageId", "m-1"),
        ("outcome", "invalid_timestamp"),
        ("field", "/creationTimestamp"),
        ("function", "delete-mapping"),
    ] {
        assert_eq!(bad[field], value, "{bad}");
    }
    assert_eq!((&good["messageId"], &good["outcome"]), (&json!("m-2"), &json!("already_gone")));
    assert_eq!((&lines(&log, "batch")[0]["failed"], &lines(&log, "batch")[0]["faults"]), (&json!(1), &json!(1)));
    assert!(!json!(log).to_string().contains("secret"), "{log:#?}");
}
