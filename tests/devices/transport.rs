//! What lies between a client and a route: encodings, development servers, deadlines, broken rows.

use super::world::World;
use crate::harness::events::Event;
use lambda_runtime::Context;
use serde_json::{Value, json};

#[tokio::test]
async fn a_body_may_come_in_base64() {
    let world = World::new();
    // {"state":{"name":"Lämpchen"}}
    let event = Event::create().base64("eyJzdGF0ZSI6eyJuYW1lIjoiTMOkbXBjaGVuIn19");
    assert_eq!(world.send(&event).await.shows(201, 1)["state"], json!({"name": "Lämpchen"}));
}

#[tokio::test]
async fn a_missing_media_type_counts_as_json_and_parameters_do_not_matter() {
    let world = World::new();
    world.send(&Event::create().without_header("content-type")).await.shows(201, 1);
    let event = Event::create().device("lamp-2").header("content-type", "Application/JSON; charset=utf-8");
    world.send(&event).await.shows(201, 1);
}

#[tokio::test]
async fn a_header_is_found_whatever_its_case() {
    let (world, created) = World::with_lamp().await;
    world.send(&Event::patch_state().header("If-Match", created.etag())).await.shows(200, 2);
    world.refused(&Event::patch_state().header("IF-MATCH", created.etag()), 412, "version_conflict").await;
}

#[tokio::test]
async fn events_of_cargo_lambda_take_the_same_routes() {
    let world = World::new();
    let created = world.send(&Event::create().by_cargo_lambda()).await;
    created.shows(201, 1);
    world.send(&Event::get().by_cargo_lambda()).await.shows(200, 1);
    for (version, event) in (2..).zip(&Event::changes()[..2]) {
        world.send(&event.clone().by_cargo_lambda()).await.shows(200, version);
    }
    world.send(&Event::set_config().by_cargo_lambda()).await.shows(200, 4);
    let delete = Event::delete().by_cargo_lambda().header("if-match", "*");
    assert_eq!(world.send(&delete).await.status, 204);
    let encoded = Event::get().device("lamp%2D1").by_cargo_lambda();
    world.bad_input(&encoded, "invalid_id", "path:deviceId").await;
}

#[tokio::test]
async fn a_stage_in_the_path_does_not_matter_to_a_route_that_the_gateway_matched() {
    let (world, _) = World::with_lamp().await;
    let mut event = Event::get();
    event.0["rawPath"] = json!("/prod/devices/lamp-1");
    event.0["requestContext"]["stage"] = json!("prod");
    world.send(&event).await.shows(200, 1);
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

#[tokio::test]
async fn an_item_that_is_not_ours_is_a_500_that_says_nothing_of_the_inside() {
    let (world, created) = World::with_lamp().await;
    let whole = world.row();
    let breakages: [(&str, Value); 6] = [
        ("_version", Value::Null),
        ("_incarnation", Value::Null),
        ("_writes", Value::Null),
        ("state", json!({"S": "secret-state"})),
        ("status", json!({"S": "secret-status"})),
        ("createdAt", json!({"N": "12345"})),
    ];
    for (name, value) in breakages {
        let mut item = whole.clone();
        let attributes = item.as_object_mut().expect("an item");
        attributes.remove(name);
        if !value.is_null() {
            attributes.insert(name.to_owned(), value);
        }
        world.plant(&item);
        for event in Event::all() {
            let event = if event.method() == "DELETE" { event.header("if-match", "*") } else { event };
            let answer = world.refused(&event, 500, "internal").await;
            let text = answer.json()["detail"].to_string().to_lowercase();
            for inside in [name, "secret", "dynamo", "attribute", "serde", "item", "row", "table", "aws"] {
                assert!(!text.contains(&inside.to_lowercase()), "{event:?} tells of {inside}: {text}");
            }
        }
    }
    world.plant(&whole);
    assert_eq!(world.send(&Event::get()).await.etag(), created.etag());
}

#[tokio::test]
async fn a_table_that_is_not_there_is_a_500_that_says_nothing_of_the_inside() {
    let world = World::new();
    world.engine.raw("DeleteTable", &json!({"TableName": crate::harness::functions::DEVICES}));
    for event in Event::all() {
        let event = if event.method() == "DELETE" { event.header("if-match", "*") } else { event };
        let answer = world.send(&event).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (500, Some("internal")), "{answer:?}");
        let text = answer.body.expect("a problem").to_lowercase();
        assert!(!text.contains("devices") && !text.contains("resource") && !text.contains("table"), "{text}");
    }
}
