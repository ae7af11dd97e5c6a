//! Batches: each message gets an answer of its own. One write covers all requests for an address.

use super::world::{IP, T1, T2, T2_MS, T3, Trouble, World, batch_of, task};
use crate::harness::clients::{Reply, client_whose};
use crate::harness::events::load;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const GOOD: &str = "192.0.2.1";
const STALE: &str = "192.0.2.2";
const UNKNOWN: &str = "192.0.2.3";
const BUSY: &str = "192.0.2.4";
const MANY: &str = "2001:db8::5";
const HOSTS: [&str; 5] = [GOOD, STALE, UNKNOWN, BUSY, MANY];

fn rows(world: &World) -> Vec<Value> {
    HOSTS.iter().map(|ip| world.row(ip)).collect()
}

#[tokio::test(start_paused = true)]
async fn of_a_mixed_batch_exactly_the_malformed_and_the_throttled_come_again() {
    let world = World::new();
    for ip in [GOOD, STALE, BUSY, MANY] {
        world.stands(ip, "i-b", T2).await;
    }
    let batch = batch_of(&[
        ("good", task(GOOD, T2, Some("i-b"))),
        ("no-json", "i-b is gone".to_owned()),
        ("stale", task(STALE, T1, Some("i-a"))),
        ("busy", task(BUSY, T2, Some("i-b"))),
        ("unknown", task(UNKNOWN, T1, None)),
        ("bad-ip", task("192.0.2.01", T2, None)),
        ("many-1", task(MANY, T1, None)),
        ("many-3", task(MANY, T3, Some("i-c"))),
        ("busy-too", task(BUSY, T1, None)),
        ("no-time", json!({"hostIp": GOOD}).to_string()),
    ]);
    let failed = ["bad-ip", "busy", "busy-too", "no-json", "no-time"];
    let busy = world.in_trouble(Trouble::Throttled, BUSY);
    assert_eq!(busy.batch(&batch).await, failed);
    for (ip, instance) in HOSTS.into_iter().zip([None, Some("i-b"), None, Some("i-b"), None]) {
        assert_eq!(world.instance(ip).await.as_deref(), instance, "{ip}");
    }
    let before = rows(&world);
    assert_eq!(busy.batch(&batch).await, failed, "the same batch again is answered the same");
    assert_eq!(rows(&world), before, "and changes nothing");
    assert_eq!(world.batch(&batch).await, ["bad-ip", "no-json", "no-time"], "the table has time again");
    assert_eq!(world.instance(BUSY).await, None);
    assert_eq!(world.instance(STALE).await.as_deref(), Some("i-b"));
}

#[tokio::test]
async fn a_malformed_message_comes_again_and_its_field_is_named_without_a_request() {
    let world = World::new();
    let long = format!("{}{}", " ".repeat(512 * 1024), task(IP, T1, None));
    for (body, code, field) in [
        ("{", "invalid_json", ""),
        (&long, "too_large", ""),
        (r#"{"hostIp":"192.0.2.010","creationTimestamp":"2026-03-07T10:00:00Z"}"#, "invalid_ip", "/hostIp"),
        (
            r#"{"hostIp":"192.0.2.1","creationTimestamp":"2026-03-07T11:05:00.001Z"}"#,
            "timestamp_in_future",
            "/creationTimestamp",
        ),
        // If null counted as absent, this would delete all instances of the moment.
        (
            r#"{"hostIp":"192.0.2.1","creationTimestamp":"2026-03-07T10:00:00Z","instanceId":null}"#,
            "invalid_type",
            "/instanceId",
        ),
        (
            r#"{"hostIp":"192.0.2.1","creationTimestamp":"2026-03-07T10:00:00Z","instanceId":"a b"}"#,
            "invalid_id",
            "/instanceId",
        ),
        // Other services wrap a message, unless raw delivery is switched on.
        (
            r#"{"Type":"Notification","TopicArn":"arn","Message":"{\"hostIp\":\"192.0.2.1\"}"}"#,
            "message_in_envelope",
            "",
        ),
        (
            r#"{"version":"0","detail-type":"a","source":"b","detail":{"hostIp":"192.0.2.1"}}"#,
            "message_in_envelope",
            "",
        ),
        (r#"{"detail":{"hostIp":"192.0.2.1"}}"#, "missing_field", "/hostIp"),
    ] {
        assert_eq!(world.outcomes(&[body]).await, [Err((code, field.to_owned()))], "{body}");
        assert_eq!(world.batch(&batch_of(&[("m-1", body)])).await, ["m-1"], "{body}");
        assert_eq!(world.engine.take_counts(), (0, 0), "{body}");
    }
}

#[tokio::test]
async fn unknown_fields_of_a_message_are_ignored_and_not_stored() {
    let world = World::new();
    world.stands(IP, "i-a", T1).await;
    let body = json!({"hostIp": IP, "creationTimestamp": T1, "instanceId": "i-a", "cellId": "cell-9", "_purgeAt": 1});
    assert_eq!(world.outcomes(&[&body.to_string()]).await, [Ok("deleted")]);
    assert!(world.row(IP).get("cellId").is_none());
}

#[tokio::test]
async fn a_batch_costs_one_write_for_each_address_and_no_read() {
    let moments: Vec<_> = (0..10).map(|minute| format!("2026-03-07T10:{minute:02}:00Z")).collect();
    for hosts in [1, 2, 5, 10] {
        let world = World::new();
        let ip = |number: usize| format!("192.0.2.{}", number % hosts);
        for number in 0..hosts {
            world.stands(&ip(number), "i-a", T1).await;
        }
        let tasks = moments.iter().enumerate().map(|(n, at)| (format!("m-{n}"), task(&ip(n), at, None)));
        let batch = batch_of(&tasks.collect::<Vec<_>>());
        for _ in 0..2 {
            world.engine.take_log();
            assert!(world.batch(&batch).await.is_empty());
            assert_eq!(world.engine.take_counts(), (0, hosts), "{hosts} hosts");
        }
    }
}

#[tokio::test]
async fn the_newest_task_of_an_address_is_the_one_that_is_written_wherever_it_stands() {
    let tasks = [(T1, Some("i-a")), (T2, Some("i-b")), (T2, Some("i-c")), (T2, None), (T1, None)];
    for first in 0..tasks.len() {
        let world = World::new();
        let mut turned = tasks;
        turned.rotate_left(first);
        let bodies: Vec<_> = turned.iter().map(|(at, instance)| ("m", task(IP, at, *instance))).collect();
        assert!(world.batch(&batch_of(&bodies)).await.is_empty());
        world.register(IP, "i-z", T2).await.superseded_by(T2, None);
    }
}

#[tokio::test]
async fn a_task_that_meets_a_row_that_cannot_be_read_comes_again_and_the_others_are_done() {
    let world = World::new();
    let broken = json!({"hostIp": {"S": MANY}, "creationTimestamp": {"S": T1}});
    world.plant(&broken);
    let bodies = [task(MANY, T2, None), task(GOOD, T2, None)];
    assert_eq!(world.batch(&batch_of(&["m-1", "m-2"].iter().zip(&bodies).collect::<Vec<_>>())).await, ["m-1"]);
    assert_eq!(world.row(MANY), broken);
    assert_eq!(world.row(GOOD)["creationTimestamp"]["N"], T2_MS.to_string());
}

const A_WHILE: Duration = Duration::from_millis(100);

/// The same on a table that answers each write after a while, and when the writes left.
fn slow(world: &World) -> (World, Arc<Mutex<Vec<Instant>>>) {
    let left = Arc::<Mutex<Vec<_>>>::default();
    let noted = left.clone();
    let client = client_whose(&world.engine, move |_, _, _, _| {
        noted.lock().expect("no panic").push(Instant::now());
        Reply::After(A_WHILE)
    });
    (world.reached_by(&client), left)
}

fn tasks_for(hosts: usize) -> (Vec<String>, Value) {
    let ips: Vec<_> = (0..hosts).map(|number| format!("192.0.2.{number}")).collect();
    let messages: Vec<_> = ips.iter().map(|ip| (format!("m-{ip}"), task(ip, T1, None))).collect();
    (ips, batch_of(&messages))
}

#[tokio::test(start_paused = true)]
async fn never_more_than_four_writes_are_on_their_way_at_once() {
    for (hosts, at_once, round_trips) in [(1, 1, 1), (4, 4, 1), (5, 4, 2), (10, 4, 3)] {
        let (world, left) = slow(&World::new());
        let (_, batch) = tasks_for(hosts);
        let began = Instant::now();
        assert!(world.batch(&batch).await.is_empty());
        let left = left.lock().expect("no panic");
        let on_their_way = |at: &Instant| left.iter().filter(|one| (*at..*at + A_WHILE).contains(*one)).count();
        assert_eq!(
            (left.iter().map(on_their_way).max(), began.elapsed().div_duration_f64(A_WHILE).round()),
            (Some(at_once), round_trips.into())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_deadline_leaves_undone_comes_again_and_none_is_lost() {
    let world = World::new();
    let (ips, batch) = tasks_for(20);
    for ip in &ips {
        world.stands(ip, "i-a", T1).await;
    }
    let bodies: Vec<_> = ips.iter().map(|ip| task(ip, T1, None)).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    let outcomes = slow(&world).0.outcomes_within(A_WHILE * 33 / 10, &bodies).await;
    let failed = ips.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_err());
    let failed: Vec<_> = failed.map(|(ip, _)| format!("m-{ip}")).collect();
    let mut undone = Vec::new();
    for ip in &ips {
        undone.extend(world.instance(ip).await.map(|_| format!("m-{ip}")));
    }
    assert!(!undone.is_empty() && undone.len() < ips.len(), "{undone:?}");
    assert_eq!(failed, undone, "exactly what was not done is reported");
    assert!(world.batch(&batch).await.is_empty());
    for ip in &ips {
        assert_eq!(world.instance(ip).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_without_time_is_reported_whole_and_nothing_is_sent() {
    let world = World::new();
    let (ips, batch) = tasks_for(10);
    for milliseconds in [0, 250, 350] {
        assert_eq!(world.batch_within(Duration::from_millis(milliseconds), &batch).await.len(), ips.len());
        assert_eq!(world.engine.take_counts(), (0, 0), "{milliseconds} ms");
    }
    assert!(world.batch(&batch).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_table_that_never_answers_lets_all_come_again_before_the_deadline() {
    for trouble in [Trouble::AnswerLost, Trouble::Lost] {
        let world = World::new();
        let (ips, batch) = tasks_for(10);
        let lost = world.in_trouble(trouble, "");
        let (began, allowed) = (Instant::now(), Duration::from_secs(10));
        assert_eq!(lost.batch_within(allowed, &batch).await.len(), ips.len(), "{trouble:?}");
        assert!(began.elapsed() < allowed);
        assert!(world.batch(&batch).await.is_empty());
        let rows = ips.iter().filter(|ip| world.row(ip).is_object()).count();
        assert_eq!(rows, ips.len());
    }
}

#[tokio::test]
async fn the_batch_in_events_has_a_message_of_each_outcome() {
    const NEXT: &str = "i-0b1b2c3d4e5f60712";
    const GONE: &str = "i-0d1b2c3d4e5f60714";
    let world = World::new();
    world.stands("192.0.2.11", "i-0c1b2c3d4e5f60713", T1).await;
    world.stands("192.0.2.12", NEXT, T2).await;
    let batch = load("delete-mapping-batch").0;
    let records = batch["Records"].as_array().expect("messages");
    let bodies: Vec<_> = records.iter().map(|record| record["body"].as_str().expect("a body")).collect();
    let missing = Err(("missing_field", "/creationTimestamp".to_owned()));
    let expected = [Ok("deleted"), Ok("superseded"), missing, Ok("already_gone"), Ok("folded")];
    assert_eq!(world.outcomes(&bodies).await, expected);
    assert_eq!(world.batch(&batch).await, [records[2]["messageId"].as_str().expect("an id")]);
    assert_eq!(world.instance("192.0.2.12").await.as_deref(), Some(NEXT));
    world.register("2001:db8::4", GONE, T1).await.superseded_by(T1, Some(GONE));
}
