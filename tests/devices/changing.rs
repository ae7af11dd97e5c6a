//! `PATCH …/state`, `POST …/adjustments` and `PUT …/status`.

use super::world::World;
use crate::harness::events::Event;
use serde_json::{Value, json};

fn patch(body: &str) -> Event {
    Event::patch_state().text(body)
}

/// An adjustment of `brightness`, with these members beside.
fn adjust(members: &str) -> Event {
    Event::adjust().text(&format!(r#"{{"attribute":"brightness",{members}}}"#))
}

/// A state, a change, and the state that it leaves, or the code of its refusal.
#[tokio::test]
async fn each_change_leaves_its_state_or_is_refused() {
    let lamp = r#"{"brightness":50}"#;
    let names = r#"{"a.b":1,"a":{"b":10},"/a":100,"text":"1","yes":true,"nothing":null}"#;
    let named = |name: &str| Event::adjust().json(&json!({"attribute": name, "by": 1}));
    for (state, change, expected) in [
        (
            r#"{"brightness":50,"colour":"red","fade":{"ms":1,"curve":"in"},"list":[1,2]}"#,
            patch(
                r#"{"brightness":60,"colour":null,"absent":null,"fade":{"ms":2,"curve":null},"list":[3],"new":{"a":null,"b":1}}"#,
            ),
            Ok(json!({"brightness": 60, "fade": {"ms": 2}, "list": [3], "new": {"b": 1}})),
        ),
        (lamp, Event::adjust(), Ok(json!({"brightness": 51}))),
        (lamp, adjust(r#""by":-1.5"#), Ok(json!({"brightness": 48.5}))),
        (lamp, adjust(r#""by":50,"max":100"#), Ok(json!({"brightness": 100}))),
        (lamp, adjust(r#""by":51,"max":100"#), Err("limit_reached")),
        (lamp, adjust(r#""by":-51,"min":0"#), Err("limit_reached")),
        (lamp, adjust(r#""by":0.001,"min":0,"max":50,"onLimit":"refuse""#), Err("limit_reached")),
        (lamp, adjust(r#""by":1,"min":60"#), Err("limit_reached")),
        (lamp, adjust(r#""by":1000,"min":0,"max":100,"onLimit":"clamp""#), Ok(json!({"brightness": 100}))),
        (lamp, adjust(r#""by":-1000,"min":10,"onLimit":"clamp""#), Ok(json!({"brightness": 10}))),
        // The current number is outside.
        (lamp, adjust(r#""by":-1,"max":20,"onLimit":"clamp""#), Ok(json!({"brightness": 20}))),
        // An attribute is a literal name at the top.
        (r#"{"a.b":1,"a":{"b":10}}"#, named("a.b"), Ok(json!({"a.b": 2, "a": {"b": 10}}))),
        (r#"{"/a":1,"a":10}"#, named("/a"), Ok(json!({"/a": 2, "a": 10}))),
        (names, named("text"), Err("not_a_number")),
        (names, named("a"), Err("not_a_number")),
        (names, named("yes"), Err("not_a_number")),
        (names, named("nothing"), Err("not_a_number")),
        (names, named("/a/b"), Err("not_a_number")),
        (names, named("__proto__"), Err("not_a_number")),
        (names, named(""), Err("not_a_number")),
    ] {
        let world = World::with_state(state).await;
        match expected {
            Ok(state) => assert_eq!(world.send(&change).await.shows(200, 2)["state"], state, "{change:?}"),
            Err(code) => {
                let problem = world.refused(&change, 409, code).await.json();
                assert!(code != "limit_reached" || problem["current"] == 50, "{change:?}: {problem}");
            }
        }
    }
}

#[tokio::test]
async fn a_change_moves_the_time_of_the_update_alone() {
    let (world, _) = World::with_lamp().await;
    world.pass(1_500);
    let device = world.send(&Event::patch_state()).await.shows(200, 2);
    assert_eq!(
        (&device["createdAt"], &device["updatedAt"]),
        (&json!("2026-03-07T10:00:00.000Z"), &json!("2026-03-07T10:00:01.500Z"))
    );
    assert_eq!(world.send(&Event::get()).await.shows(200, 2), device);
}

#[tokio::test]
async fn a_patch_takes_both_media_types() {
    let world = World::with_state("{}").await;
    for (version, media_type) in (2..).zip(["application/json", "application/merge-patch+json; charset=utf-8"]) {
        let event = patch(&format!(r#"{{"n":{version}}}"#)).header("content-type", media_type);
        world.send(&event).await.shows(200, version);
    }
}

#[tokio::test]
async fn a_change_without_effect_costs_one_read_and_keeps_the_version() {
    let (world, created) = World::with_lamp().await;
    world.pass(1_000_000);
    for event in [
        patch("{}"),
        patch(r#"{"brightness":50.0,"absent":null}"#),
        adjust(r#""by":0"#),
        adjust(r#""by":1,"max":50,"onLimit":"clamp""#),
        Event::set_status(),
    ] {
        world.engine.take_log();
        let answer = world.send(&event).await;
        assert_eq!((answer.shows(200, 1), answer.etag()), (created.json(), created.etag()), "{event:?}");
        assert_eq!(world.engine.take_counts(), (1, 0), "{event:?}");
    }
}

#[tokio::test]
async fn the_status_is_online_or_offline() {
    let (world, _) = World::with_lamp().await;
    for (version, status) in (2..).zip(["offline", "online"]) {
        let event = Event::set_status().json(&json!({"status": status}));
        assert_eq!(world.send(&event).await.shows(200, version)["status"], status);
    }
}

#[tokio::test]
async fn undeclared_attributes_survive_every_change() {
    let (world, _) = World::with_lamp().await;
    let mut item: Value = world.row();
    item["firmware"] = json!({"M": {"build": {"N": "7"}, "keys": {"SS": ["a", "b"]}}});
    world.plant(&item);
    for event in [
        Event::patch_state(),
        Event::adjust(),
        Event::set_config(),
        Event::set_status().text(r#"{"status":"offline"}"#),
    ] {
        assert_eq!(world.send(&event).await.status, 200, "{event:?}");
        assert_eq!(world.row()["firmware"], item["firmware"], "{event:?}");
    }
}
