//! The depth and the size of a device: a larger one is refused without a write.

use super::world::World;
use crate::harness::events::Event;
use serde_json::json;

/// `depth` objects inside each other.
fn objects(depth: usize) -> String {
    format!("{}{{}}{}", r#"{"a":"#.repeat(depth - 1), "}".repeat(depth - 1))
}

/// An object with nested arrays, `depth` levels in all.
fn arrays(depth: usize) -> String {
    format!(r#"{{"a":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
}

#[tokio::test]
async fn objects_and_arrays_nest_31_deep_with_plain_values_below_and_no_deeper() {
    let world = World::new();
    let with_number = |depth| objects(depth).replace("{}", r#"{"a":1}"#);
    for (number, text) in [objects(31), arrays(31), with_number(31)].iter().enumerate() {
        let id = format!("deep-{number}");
        let body = format!(r#"{{"state":{text},"config":{text},"status":"online"}}"#);
        let device = world.send(&Event::create().device(&id).text(&body)).await.shows(201, 1);
        assert_eq!(device["state"].to_string(), *text);
        assert_eq!(world.send(&Event::get().device(&id)).await.shows(200, 1), device);
        world.send(&Event::set_config().device(&id).text("{}")).await.shows(200, 2);
        world.pass(300_000);
        world.send(&Event::set_config().device(&id).text(text)).await.shows(200, 3);
        world.send(&Event::patch_state().device(&id).text(r#"{"a":null}"#)).await.shows(200, 4);
        world.send(&Event::patch_state().device(&id).text(text)).await.shows(200, 5);
    }
    for depth in [32, 33, 34, 63, 64, 65, 66, 127, 128, 129, 200, 70_000] {
        for text in [objects(depth), arrays(depth), with_number(depth)] {
            let bodies = [
                (Event::create(), format!(r#"{{"state":{text}}}"#), "/state/a"),
                (Event::create(), format!(r#"{{"state":{{}},"config":{text}}}"#), "/config/a"),
                (Event::patch_state(), text.clone(), "/a"),
                (Event::set_config(), text, "/a"),
            ];
            for (event, body, field) in bodies {
                let answer = world.refused(&event.text(&body), 400, "too_deep").await;
                let named = answer.json()["field"].as_str().is_some_and(|named| named.starts_with(field));
                assert!(named, "{depth} deep: {answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_item_over_400_kb_is_refused_and_leaves_the_device_as_it_is() {
    let world = World::new();
    let text = |kilobytes: usize| "x".repeat(kilobytes * 1024);
    let state = |name: &str, kilobytes| json!({"state": {name: text(kilobytes)}}).to_string();
    for kilobytes in [396, 401, 450, 511] {
        world.refused(&Event::create().text(&state("a", kilobytes)), 413, "too_large").await;
    }
    world.send(&Event::create().text(&state("a", 395))).await.shows(201, 1);
    let more = json!({"b": text(10)}).to_string();
    world.refused(&Event::patch_state().text(&more), 413, "too_large").await;
    world.send(&Event::set_status()).await.shows(200, 2);
    // `DynamoDB` rejects an edit. A write burns it, which makes a version, before the answer says that it is never applied.
    let rejected = async |event: Event| {
        let answer = world.send(&event.text(&more)).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (413, Some("too_large")), "{answer:?}");
    };
    rejected(Event::set_config()).await;
    world.send(&Event::patch_state().text(r#"{"b":1}"#)).await.shows(200, 4);
    rejected(Event::patch_state()).await;
    world.send(&Event::patch_state().text(r#"{"a":null}"#)).await.shows(200, 6);
    world.send(&Event::patch_state().text(&more)).await.shows(200, 7);
}

#[tokio::test]
async fn a_device_at_the_limit_can_still_be_changed_and_deleted() {
    let body = |size: usize| json!({"state": {"a": "x".repeat(size), "n": 0}}).to_string();
    let (mut taken, mut refused) = (390 * 1024, 400 * 1024);
    while taken + 1 < refused {
        let middle = usize::midpoint(taken, refused);
        match World::new().send(&Event::create().text(&body(middle))).await.status {
            201 => taken = middle,
            413 => refused = middle,
            other => panic!("{other} for a state of {middle} bytes"),
        }
    }
    let world = World::new();
    world.send(&Event::create().text(&body(taken))).await.shows(201, 1);
    for (version, by) in (2..40).zip([1, -1].into_iter().cycle()) {
        let event = Event::adjust().text(&json!({"attribute": "n", "by": by}).to_string());
        world.send(&event).await.shows(200, version);
    }
    assert_eq!(world.send(&Event::delete().header("if-match", "*")).await.status, 204);
}
