//! `PATCH …/state`, `POST …/adjustments` and `PUT …/status`.

use super::world::World;
use crate::harness::answers::Answer;
use crate::harness::events::Event;
use serde_json::{Value, json};

fn adjustment(body: &Value) -> Event {
    Event::adjust().text(&body.to_string())
}

async fn patched(world: &World, patch: &str) -> Answer {
    world.send(&Event::patch_state().text(patch)).await
}

#[tokio::test]
async fn a_merge_patch_sets_replaces_and_removes() {
    let world =
        World::with_state(r#"{"brightness":50,"colour":"red","fade":{"ms":1,"curve":"in"},"list":[1,2]}"#).await;
    world.pass(1_500);
    let patch = r#"{"brightness":60,"colour":null,"absent":null,"fade":{"ms":2,"curve":null},"list":[3],"new":{"a":null,"b":1}}"#;
    let device = patched(&world, patch).await.shows(200, 2);
    assert_eq!(device["state"], json!({"brightness": 60, "fade": {"ms": 2}, "list": [3], "new": {"b": 1}}));
    assert_eq!(device["createdAt"], "2026-03-07T10:00:00.000Z");
    assert_eq!(device["updatedAt"], "2026-03-07T10:00:01.500Z");
    assert_eq!(world.send(&Event::get()).await.shows(200, 2), device);
}

#[tokio::test]
async fn a_patch_takes_both_media_types() {
    let world = World::with_state("{}").await;
    let patch = Event::patch_state().without_header("content-type");
    for (version, media_type) in (2..).zip(["application/json", "application/merge-patch+json; charset=utf-8"]) {
        let body = format!(r#"{{"n":{version}}}"#);
        world.send(&patch.clone().header("content-type", media_type).text(&body)).await.shows(200, version);
    }
    world.send(&patch.text(r#"{"n":0}"#)).await.shows(200, 4);
}

#[tokio::test]
async fn what_changes_nothing_writes_nothing_and_keeps_the_version() {
    let (world, created) = World::with_lamp().await;
    world.pass(1_000_000);
    for event in [
        Event::patch_state().text("{}"),
        Event::patch_state().text(r#"{"brightness":50}"#),
        Event::patch_state().text(r#"{"brightness":50.0,"absent":null}"#),
        adjustment(&json!({"attribute": "brightness", "by": 0})),
        adjustment(&json!({"attribute": "brightness", "by": 1, "max": 50, "onLimit": "clamp"})),
        Event::set_status(),
    ] {
        world.engine.take_log();
        let answer = world.send(&event).await;
        assert_eq!(answer.shows(200, 1), created.json(), "{event:?}");
        assert_eq!(answer.etag(), created.etag());
        assert_eq!(world.engine.take_counts(), (1, 0), "{event:?}");
    }
}

#[tokio::test]
async fn an_adjustment_adds_to_one_number_of_the_state() {
    let (world, _) = World::with_lamp().await;
    let device = world.send(&Event::adjust()).await.shows(200, 2);
    assert_eq!(device["state"], json!({"brightness": 51}));
    let device = world.send(&adjustment(&json!({"attribute": "brightness", "by": -1.5}))).await.shows(200, 3);
    assert_eq!(device["state"], json!({"brightness": 49.5}));
}

#[tokio::test]
async fn an_attribute_is_a_literal_top_level_name() {
    let world = World::with_state(r#"{"a.b":1,"a":{"b":10},"/a":100,"x-y z":1000}"#).await;
    for (version, (name, result)) in (2..).zip([("a.b", 2), ("/a", 101), ("x-y z", 1001)]) {
        let device = world.send(&adjustment(&json!({"attribute": name, "by": 1}))).await.shows(200, version);
        assert_eq!(device["state"][name], result);
        assert_eq!(device["state"]["a"], json!({"b": 10}));
    }
}

#[tokio::test]
async fn an_adjustment_past_a_limit_is_refused_with_the_current_number() {
    let (world, _) = World::with_lamp().await;
    for body in [
        json!({"attribute": "brightness", "by": 51, "max": 100}),
        json!({"attribute": "brightness", "by": -51, "min": 0}),
        json!({"attribute": "brightness", "by": 0.001, "min": 0, "max": 50, "onLimit": "refuse"}),
        json!({"attribute": "brightness", "by": 1, "min": 60}),
    ] {
        let answer = world.refused(&adjustment(&body), 409, "limit_reached").await;
        assert_eq!(answer.json()["current"], 50, "{body}");
    }
    let device = world.send(&adjustment(&json!({"attribute": "brightness", "by": 50, "max": 100}))).await;
    assert_eq!(device.shows(200, 2)["state"]["brightness"], 100, "the limit itself can be reached");
}

#[tokio::test]
async fn a_clamp_moves_the_result_into_the_limits() {
    let (world, _) = World::with_lamp().await;
    let clamps = [
        (json!({"by": 1000, "min": 0, "max": 100}), 100),
        (json!({"by": -1000, "min": 10, "max": 100}), 10),
        (json!({"by": 1, "min": 30}), 30), // also where the current number is outside
        (json!({"by": -1, "max": 20}), 20),
        (json!({"by": 5, "min": 0, "max": 100}), 25),
    ];
    for (version, (mut body, result)) in (2..).zip(clamps) {
        body["attribute"] = json!("brightness");
        body["onLimit"] = json!("clamp");
        let device = world.send(&adjustment(&body)).await.shows(200, version);
        assert_eq!(device["state"]["brightness"], result, "{body}");
    }
}

#[tokio::test]
async fn what_is_no_number_is_not_adjusted() {
    let world = World::with_state(r#"{"text":"1","list":[1],"map":{"a":1},"yes":true,"nothing":null}"#).await;
    for name in ["text", "list", "map", "yes", "nothing", "absent", "map.a", "/map/a", "__proto__", "_version", ""] {
        world.refused(&adjustment(&json!({"attribute": name, "by": 1})), 409, "not_a_number").await;
    }
}

#[tokio::test]
async fn the_status_is_set_to_one_of_two() {
    let (world, _) = World::with_lamp().await;
    for (version, status) in (2..).zip(["offline", "online"]) {
        let event = Event::set_status().text(&json!({"status": status}).to_string());
        assert_eq!(world.send(&event).await.shows(200, version)["status"], status);
    }
}

#[tokio::test]
async fn attributes_that_a_device_does_not_know_survive_every_change() {
    let (world, _) = World::with_lamp().await;
    let mut item = world.row();
    item["firmware"] = json!({"M": {"build": {"N": "7"}, "keys": {"SS": ["a", "b"]}}});
    world.plant(&item);
    for event in &Event::changes()[..4] {
        assert_eq!(world.send(event).await.status, 200, "{event:?}");
        assert_eq!(world.row()["firmware"], item["firmware"], "{event:?}");
        if event.0["body"].as_str().is_some_and(|body| body.contains("offline")) {
            world.send(&Event::set_status()).await;
        }
    }
}
