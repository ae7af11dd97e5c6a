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

/// A patch is an edit as long as its device keeps the limit.
#[tokio::test]
async fn changes_keep_a_device_within_396_kb_also_at_once_and_one_above_it_can_be_made_smaller() {
    const LIMIT: usize = 396 * 1024;
    let text = |bytes: usize| "x".repeat(bytes);
    let stored = |world: &World| {
        let row = world.row();
        let state = &row["state"]["M"];
        ["a", "b", "c"].iter().filter_map(|name| state[name]["S"].as_str()).map(str::len).sum::<usize>()
    };
    let world = World::new();
    for kilobytes in [396, 511] {
        let state = json!({"state": {"a": text(kilobytes * 1024)}}).to_string();
        world.refused(&Event::create().text(&state), 413, "too_large").await;
    }
    let state = json!({"state": {"a": text(200 * 1024), "b": "", "c": ""}, "status": "online"}).to_string();
    world.send(&Event::create().text(&state)).await.shows(201, 1);
    let long = |name: &str| Event::patch_state().text(&json!({name: text(150 * 1024)}).to_string());
    let (b, c) = (long("b"), long("c"));
    let (one, other) = tokio::join!(world.send(&b), world.send(&c));
    let mut told = [one.status, other.status];
    told.sort_unstable();
    assert_eq!((told, stored(&world)), ([200, 413], 350 * 1024));
    let config = json!({"d": text(50 * 1024)}).to_string();
    world.refused(&Event::set_config().text(&config), 413, "too_large").await;
    for kilobytes in [40, 45, 46, 47, 195] {
        let patch = json!({"b": text(kilobytes * 1024)}).to_string();
        let answer = world.send(&Event::patch_state().text(&patch)).await;
        assert!([200, 413].contains(&answer.status) && stored(&world) <= LIMIT, "{kilobytes} KB: {answer:?}");
    }
    // Another program made it so.
    let mut row = world.row();
    row["state"]["M"]["b"] = json!({"S": text(198 * 1024)});
    row["state"]["M"]["c"] = json!({"S": ""});
    world.plant(&row);
    world.refused(&Event::patch_state().text(r#"{"c":"x"}"#), 413, "too_large").await;
    for (left, event) in [
        (197, Event::patch_state()),
        (196, Event::patch_state().header("if-match", "*")),
        (195, Event::patch_state().key("k-1")),
    ] {
        let patch = json!({"b": text(left * 1024)}).to_string();
        let answer = world.send(&event.text(&patch)).await;
        assert_eq!((answer.status, stored(&world)), (200, (200 + left) * 1024), "{:?}", answer.json()["detail"]);
    }
}
