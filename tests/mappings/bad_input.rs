//! Bad input at both doors: every kind is named with its field, and `DynamoDB` is not asked.

use super::world::{IP, KEY, T1, T2, World, batch_of, deletion, look_up, message, on, registration, task};
use crate::harness::events::Event;
use serde_json::{Value, json};

const AT: &str = "creationTimestamp";

/// Texts that are no address.
const NO_IPS: [&str; 17] = [
    "",
    "1",
    "192.0.2",
    "192.0.2.256",
    "192.0.2.010",
    "010.0.2.1",
    "::ffff:192.0.2.010",
    "0x7f.0.0.1",
    "192.0.2.10:80",
    "192.0.2.10/32",
    " 192.0.2.10",
    "[2001:db8::1]",
    "fe80::1%eth0",
    "fe80::1%25eth0",
    "192.0.2.10%20",
    "2001:db8:::1",
    "host-1",
];

/// Texts that are no id.
const NO_IDS: [&str; 9] = ["", ".", "..", "a b", "a/b", "a%2Fb", "ä", "a\n", "a+b"];

/// Texts that are no moment, and moments that are none which can be kept, with the code of each.
const NO_MOMENTS: [(&str, &str); 19] = [
    ("", "invalid_timestamp"),
    ("now", "invalid_timestamp"),
    ("1772877600000", "invalid_timestamp"),
    ("2026-03-07", "invalid_timestamp"),
    ("2026-03-07T10:00:00", "invalid_timestamp"),
    ("2026-03-07T10:00Z", "invalid_timestamp"),
    ("2026-03-07 10:00:00Z", "invalid_timestamp"),
    ("20260307T100000Z", "invalid_timestamp"),
    ("2026-03-07T10:00:00+02", "invalid_timestamp"),
    ("2026-03-07T10:00:00.Z", "invalid_timestamp"),
    ("2026-03-07T10:00:00.0001Z", "invalid_timestamp"),
    ("2026-03-07T10:00:00.000000001Z", "invalid_timestamp"),
    ("2026-03-07T10:00:60Z", "invalid_timestamp"),
    ("2026-02-29T10:00:00Z", "invalid_timestamp"),
    ("1969-12-31T23:59:59.999Z", "invalid_timestamp"),
    ("1970-01-01T00:00:00+00:01", "invalid_timestamp"),
    ("2026-03-07T11:05:00.001Z", "timestamp_in_future"),
    ("2026-03-07T13:05:00.001+02:00", "timestamp_in_future"),
    ("9999-12-01T23:59:59.999Z", "timestamp_in_future"),
];

/// The body of a good registration with this field changed, or without it.
fn body_with(field: &str, value: Option<Value>) -> String {
    let mut body = json!({"cellId": "cell-1", "instanceId": "i-a", "creationTimestamp": T1});
    match value {
        Some(value) => body[field] = value,
        None => drop(body.as_object_mut().expect("an object").remove(field)),
    }
    body.to_string()
}

fn registering(field: &str, value: Option<Value>) -> Event {
    registration(IP, "i-a", T1).text(&body_with(field, value))
}

/// A good message with this field changed, or without it.
fn task_with(field: &str, value: Option<Value>) -> String {
    let mut task: Value = serde_json::from_str(&task(IP, T1, Some("i-a"))).expect("JSON");
    match value {
        Some(value) => task[field] = value,
        None => drop(task.as_object_mut().expect("an object").remove(field)),
    }
    task.to_string()
}

impl World {
    /// Hands over a message that is malformed: it alone comes again, and `DynamoDB` was not even asked.
    async fn bad_message(&self, body: &str, code: &str, field: &str) {
        self.engine.take_log();
        let outcomes = self.outcomes(&[body]).await;
        let told = outcomes[0].as_ref().map_err(|(code, field)| (*code, field.as_str()));
        assert_eq!(told, Err((code, field)), "{body}");
        assert_eq!(self.batch(&json!({"Records": [message("m-1", body)]})).await, ["m-1"], "{body}");
        assert_eq!(self.engine.take_counts(), (0, 0), "{body}");
    }
}

#[tokio::test]
async fn what_is_no_address_is_refused_in_every_route_and_in_messages() {
    let world = World::new();
    for ip in NO_IPS {
        let field = format!("path:{KEY}");
        for event in [registration(IP, "i-a", T1), look_up(IP), deletion(IP, T1, None)] {
            world.bad_input(&on(event, ip), "invalid_ip", &field).await;
        }
        world.bad_message(&task_with(KEY, Some(json!(ip))), "invalid_ip", "/hostIp").await;
    }
}

#[tokio::test]
async fn a_field_that_is_missing_or_of_another_type_is_named() {
    let world = World::new();
    let fields = ["cellId", "instanceId", AT];
    let wrong = [json!(null), json!(1), json!(true), json!([T1]), json!({"a": "b"})];
    for name in fields {
        let pointer = format!("/{name}");
        world.bad_input(&registering(name, None), "missing_field", &pointer).await;
        for value in &wrong {
            world.bad_input(&registering(name, Some(value.clone())), "invalid_type", &pointer).await;
        }
    }
    for name in [KEY, AT] {
        world.bad_message(&task_with(name, None), "missing_field", &format!("/{name}")).await;
    }
    for name in [KEY, AT, "instanceId"] {
        for value in &wrong {
            // Also an instance that is null: taken for absent, it would delete all of that moment.
            world.bad_message(&task_with(name, Some(value.clone())), "invalid_type", &format!("/{name}")).await;
        }
    }
}

#[tokio::test]
async fn what_is_no_id_is_refused() {
    let world = World::new();
    let long = "x".repeat(129);
    for id in NO_IDS.into_iter().chain([long.as_str()]) {
        for name in ["cellId", "instanceId"] {
            let event = registering(name, Some(json!(id)));
            world.bad_input(&event, "invalid_id", &format!("/{name}")).await;
        }
        world.bad_input(&deletion(IP, T1, Some(id)), "invalid_id", "query:instanceId").await;
        world.bad_message(&task_with("instanceId", Some(json!(id))), "invalid_id", "/instanceId").await;
    }
    let longest = "x".repeat(128);
    world.stands(IP, &longest, T1).await;
    assert_eq!(world.delete(IP, T1, Some(&longest)).await, "deleted");
}

#[tokio::test]
async fn what_is_no_moment_that_has_passed_is_refused() {
    let world = World::new();
    for (at, code) in NO_MOMENTS {
        world.bad_input(&registering(AT, Some(json!(at))), code, "/creationTimestamp").await;
        world.bad_message(&task_with(AT, Some(json!(at))), code, "/creationTimestamp").await;
        for instance in [None, Some("i-a")] {
            world.bad_input(&deletion(IP, at, instance), code, "query:creationTimestamp").await;
        }
    }
}

#[tokio::test]
async fn the_first_moment_of_1970_and_one_5_minutes_ahead_of_the_clock_are_good() {
    for at in ["1970-01-01T00:00:00.000Z", "2026-03-07T11:05:00.000Z"] {
        let world = World::new();
        world.stands(IP, "i-a", at).await;
        assert_eq!(world.instance(IP).await.as_deref(), Some("i-a"));
        assert!(world.batch(&batch_of(&[("m-1", task(IP, at, Some("i-a")))])).await.is_empty());
        assert_eq!(world.delete(IP, at, Some("i-a")).await, "already_gone");
        world.register(IP, "i-a", at).await.superseded_by(at, Some("i-a"));
    }
}

#[tokio::test]
async fn a_moment_that_was_in_the_future_is_good_when_its_time_has_come() {
    let world = World::new();
    let at = "2026-03-07T11:06:00.000Z";
    let batch = batch_of(&[("m-1", task(IP, at, None))]);
    world.bad_input(&registration(IP, "i-a", at), "timestamp_in_future", "/creationTimestamp").await;
    assert_eq!(world.batch(&batch).await, ["m-1"]);
    world.pass(60_000);
    world.stands(IP, "i-a", at).await;
    assert!(world.batch(&batch).await.is_empty());
}

#[tokio::test]
async fn what_a_registration_does_not_know_is_refused_and_what_a_message_does_not_know_is_left_alone() {
    let world = World::new();
    for (name, code) in [
        ("hostIp", "unknown_field"),
        ("region", "unknown_field"),
        ("cellid", "unknown_field"),
        ("_purgeAt", "reserved_name"),
    ] {
        world.bad_input(&registering(name, Some(json!(IP))), code, &format!("/{name}")).await;
    }
    world.stands(IP, "i-a", T1).await;
    let mut body: Value = serde_json::from_str(&task(IP, T1, Some("i-a"))).expect("JSON");
    for (name, value) in [("cellId", json!("cell-9")), ("reason", json!({"a": [1]})), ("_purgeAt", json!(1))] {
        body[name] = value;
    }
    assert_eq!(world.outcomes(&[&body.to_string()]).await, [Ok("deleted")]);
    assert!(world.row(IP).get("cellId").is_none());
}

#[tokio::test]
async fn a_parameter_that_a_delete_does_not_know_is_refused() {
    let world = World::new();
    world.stands(IP, "i-a", T1).await;
    for name in ["instanceid", "instance", "cellId", "creationtimestamp", "force"] {
        let event = deletion(IP, T1, None).asking([(AT, T1), (name, "i-a")]);
        world.bad_input(&event, "unknown_parameter", &format!("query:{name}")).await;
    }
    assert_eq!(world.instance(IP).await.as_deref(), Some("i-a"));
}

#[tokio::test]
async fn the_headers_of_other_promises_are_refused() {
    let world = World::new();
    let tag = world.register(IP, "i-a", T1).await.etag().to_owned();
    for event in [registration(IP, "i-b", T2), deletion(IP, T2, None)] {
        for (header, code) in [
            ("idempotency-key", "idempotency_key_unsupported"),
            ("if-match", "invalid_if_match"),
            ("if-none-match", "invalid_if_none_match"),
        ] {
            for value in [tag.as_str(), "*"] {
                let event = event.clone().header(header, value);
                world.bad_input(&event, code, &format!("header:{header}")).await;
            }
        }
    }
    for (header, value, code) in [
        ("if-match", "W/\"1.AAAAAAAAAAA\"", "invalid_if_match"),
        ("if-match", "i-a", "invalid_if_match"),
        ("if-none-match", "i-a", "invalid_if_none_match"),
    ] {
        world.bad_input(&look_up(IP).header(header, value), code, &format!("header:{header}")).await;
    }
    assert_eq!(world.instance(IP).await.as_deref(), Some("i-a"));
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused() {
    let world = World::new();
    for (body, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("nul", "invalid_json"),
        ("{} {}", "invalid_json"),
        ("[]", "invalid_type"),
        ("null", "invalid_type"),
        ("\"i-a\"", "invalid_type"),
    ] {
        world.bad_input(&registration(IP, "i-a", T1).text(body), code, "").await;
        world.bad_message(body, code, "").await;
    }
    let mut without = registration(IP, "i-a", T1);
    without.0.as_object_mut().expect("an event").remove("body");
    world.bad_input(&without, "invalid_json", "").await;
    world.bad_input(&registration(IP, "i-a", T1).base64("%"), "invalid_json", "").await;
    let twice = r#"{"hostIp":"192.0.2.10","creationTimestamp":"2026-03-07T10:00:00Z","hostIp":"192.0.2.11"}"#;
    world.bad_input(&registration(IP, "i-a", T1).text(twice), "duplicate_name", "/hostIp").await;
    world.bad_message(twice, "duplicate_name", "/hostIp").await;
}

#[tokio::test]
async fn another_media_type_and_a_body_that_is_too_large_are_refused() {
    let world = World::new();
    let event = registration(IP, "i-a", T1);
    for media_type in ["text/plain", "application/merge-patch+json", "application/x-www-form-urlencoded"] {
        let other = event.clone().header("content-type", media_type);
        world.unasked(&other, 415, "unsupported_media_type", "header:content-type").await;
    }
    let large = format!("{}{}", " ".repeat(512 * 1024), body_with("cellId", Some(json!("cell-1"))));
    world.unasked(&event.clone().text(&large), 413, "too_large", "").await;
    let large = format!("{}{}", " ".repeat(512 * 1024), task(IP, T1, None));
    world.bad_message(&large, "too_large", "").await;
    world.send(&event.without_header("content-type")).await.shown(201);
}

#[tokio::test]
async fn another_path_or_method_has_no_route() {
    let world = World::new();
    for (method, path) in [("GET", "/mappings"), ("GET", "/mappings/192.0.2.10/cell"), ("PUT", "/hosts/192.0.2.10")] {
        world.send(&look_up(IP).unrouted(method, path)).await.says(404, "no_such_route");
    }
    for method in ["POST", "PATCH"] {
        let answer = world.send(&look_up(IP).unrouted(method, "/mappings/192.0.2.10")).await;
        answer.says(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("PUT, GET, DELETE"));
    }
    assert_eq!(world.engine.take_counts(), (0, 0));
}

#[tokio::test]
async fn a_registration_in_base64_and_one_that_no_route_key_announces_are_understood() {
    let world = World::new();
    let body =
        "eyJjZWxsSWQiOiJjZWxsLTEiLCJpbnN0YW5jZUlkIjoiaS1hIiwiY3JlYXRpb25UaW1lc3RhbXAiOiIyMDI2LTAzLTA3VDEwOjAwOjAwWiJ9";
    world.send(&registration(IP, "i-x", T2).base64(body)).await.shown(201);
    assert_eq!(world.instance(IP).await.as_deref(), Some("i-a"));
    let event = registration("2001:db8::1", "i-a", T1).unrouted("PUT", "/mappings/2001:db8::1");
    assert_eq!(world.send(&event).await.shown(201)["hostIp"], "2001:db8::1");
    let event = look_up(IP).by_cargo_lambda().unrouted("GET", "/mappings/192.0.2.10");
    assert_eq!(world.send(&event).await.shown(200)["instanceId"], "i-a");
}
