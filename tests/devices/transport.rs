//! Headers, deadlines and faults, whatever the route.

use super::world::World;
use crate::harness::events::Event;
use crate::harness::functions::DEVICES;
use lambda_runtime::Context;
use serde_json::{Value, json};

#[tokio::test]
async fn a_header_is_found_whatever_its_case() {
    let (world, created) = World::with_lamp().await;
    world.send(&Event::patch_state().header("If-Match", created.etag())).await.shows(200, 2);
    world.refused(&Event::patch_state().header("IF-MATCH", created.etag()), 412, "version_conflict").await;
}

#[tokio::test]
async fn a_deadline_in_1970_is_none() {
    let world = World::new();
    let with_deadline = |milliseconds| {
        let mut context = Context::default();
        context.deadline = milliseconds;
        context
    };
    world.send_with(&Event::create(), with_deadline(600_000)).await.shows(201, 1);
    world.send_with(&Event::get(), with_deadline(600_000)).await.shows(200, 1);
    world.send_with(&Event::adjust(), with_deadline(0)).await.shows(200, 2);
}

/// Each route meets a damaged row, or no table at all.
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
