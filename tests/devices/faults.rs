//! Faults and the end of the time, on each route: the answer comes before Lambda ends the invocation, reveals no internals, and
//! is hardly ever that nothing is known.

use super::world::World;
use crate::harness::clients::{Silent, client_whose, client_without_answers};
use crate::harness::events::Event;
use crate::harness::functions::DEVICES;
use crate::harness::states::set_by_another;
use crate::harness::world::context;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The time of an invocation.
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn the_function_answers_503_or_504_before_lambda_would_kill_it() {
    let (world, created) = World::with_lamp().await;
    let never = |silent| world.reached_by(&client_without_answers(&world.engine, silent));
    let rivalled = client_whose(&world.engine, |engine, _, operation, body| {
        if operation == "UpdateItem" {
            set_by_another(engine, DEVICES, "lamp-1", &[]);
        }
        engine.answer(operation, body)
    });
    let delete = Event::delete().header("if-match", created.etag());
    for (world, event, expected) in [
        (never(Silent::Always), Event::get(), (503, "unavailable", true)),
        (never(Silent::Always), Event::patch_state(), (503, "unavailable", true)),
        (never(Silent::Always), delete, (504, "outcome_unknown", false)),
        (never(Silent::Always), Event::create(), (504, "outcome_unknown", false)),
        (never(Silent::ForWrites), Event::adjust(), (504, "outcome_unknown", false)),
        (world.reached_by(&rivalled), Event::patch_state(), (503, "contention", true)),
    ] {
        let began = Instant::now();
        let answer = world.send_with(&event, context(TIMEOUT)).await;
        let took = began.elapsed();
        let problem = answer.json();
        let code = problem["code"].as_str().unwrap_or_default();
        assert_eq!((answer.status, code, answer.header("retry-after").is_some()), expected, "{event:?}");
        assert!(took < TIMEOUT, "{event:?} took {took:?}");
    }
}

/// Each route meets a damaged row or a missing table.
#[tokio::test]
async fn a_fault_is_a_500_that_tells_nothing_of_the_inside() {
    let (world, created) = World::with_lamp().await;
    let whole = world.row();
    let damages: [(&str, Value); 6] = [
        ("_version", Value::Null),
        ("_incarnation", Value::Null),
        ("_writes", Value::Null),
        ("state", json!({"S": "secret-state"})),
        ("status", json!({"S": "secret-status"})),
        ("createdAt", json!({"N": "12345"})),
    ];
    let is_discreet = async |name: &str| {
        for event in Event::all() {
            if event.method() == "DELETE" && !name.starts_with('_') && name != "devices" {
                continue; // A delete decodes no value.
            }
            let event = if event.method() == "DELETE" { event.header("if-match", "*") } else { event };
            let answer = world.refused(&event, 500, "internal").await;
            let text = answer.json()["detail"].to_string().to_lowercase();
            for inside in [name, "secret", "dynamo", "attribute", "serde", "item", "row", "table", "aws", "resource"] {
                assert!(!text.contains(&inside.to_lowercase()), "it tells of {inside}: {text}");
            }
        }
    };
    for (name, value) in damages {
        let mut item = whole.clone();
        item[name] = value;
        item.as_object_mut().expect("an item").retain(|_, value| !value.is_null());
        world.plant(&item);
        is_discreet(name).await;
    }
    world.plant(&whole);
    assert_eq!(world.send(&Event::get()).await.etag(), created.etag());
    world.engine.raw("DeleteTable", &json!({"TableName": DEVICES}));
    is_discreet("devices").await;
}
