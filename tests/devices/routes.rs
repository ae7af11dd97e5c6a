//! Every route and every answer of `device-state`.

use super::world::World;
use crate::harness::events::Event;
use crate::harness::restore::SentWrites;
use serde_json::{Value, json};

#[tokio::test]
async fn a_device_that_is_created_again_goes_on_counting_and_starts_empty() {
    let (world, created) = World::with_lamp().await;
    world.send(&Event::set_config()).await.shows(200, 2);
    assert_eq!(world.send(&Event::delete().header("if-match", "*")).await.status, 204);
    world.pass(60_000);
    let anew = world.send(&Event::create().text(r#"{"state":{"colour":"red"}}"#)).await;
    let device = anew.shows(201, 4);
    let expected = json!({
        "deviceId": "lamp-1",
        "status": "offline",
        "state": {"colour": "red"},
        "config": {},
        "version": 4,
        "createdAt": "2026-03-07T10:01:00.000Z",
        "updatedAt": "2026-03-07T10:01:00.000Z",
    });
    assert_eq!(device, expected, "nothing of the old device is left, configUpdatedAt included");
    let stale = Event::delete().header("if-match", created.etag());
    world.refused(&stale, 412, "version_conflict").await;
    world.send(&Event::get()).await.shows(200, 4);
}

fn patch(body: &str) -> Event {
    Event::patch_state().text(body)
}

/// An adjustment of `brightness`, with these members beside.
fn adjust(members: &str) -> Event {
    Event::adjust().text(&format!(r#"{{"attribute":"brightness",{members}}}"#))
}

/// Each row has a state, a change and its result: the state after it or the code of its refusal.
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
        (lamp, adjust(r#""by":-1.5,"min":0,"max":0,"onLimit":"clamp""#), Ok(json!({"brightness": 0}))),
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
async fn a_change_without_effect_costs_one_request_and_keeps_the_version() {
    let (world, created) = World::with_lamp().await;
    world.pass(1_000_000);
    // The first edit of this client reads. Later ones only ask whether the device would change.
    for (event, counts) in [
        (patch("{}"), (1, 0)),
        (adjust(r#""by":0"#), (1, 0)),
        (adjust(r#""by":1,"max":50,"onLimit":"clamp""#), (1, 0)),
        (patch(r#"{"brightness":50.0,"absent":null}"#), (1, 0)),
        (patch(r#"{"brightness":50.0,"absent":null}"#), (0, 1)),
        (Event::set_status(), (0, 1)),
        (Event::set_config().text(r#"{"fadeMs":200}"#), (0, 1)),
    ] {
        world.engine.take_log();
        let answer = world.send(&event).await;
        assert_eq!((answer.shows(200, 1), answer.etag()), (created.json(), created.etag()), "{event:?}");
        assert_eq!(world.engine.take_counts(), counts, "{event:?}");
    }
}

fn config(text: &str) -> Event {
    Event::set_config().text(text)
}

#[tokio::test]
async fn a_config_is_replaced_as_a_whole_and_each_change_moves_no_time_but_its_own() {
    let (world, created) = World::with_lamp().await;
    assert!(created.json()["configUpdatedAt"].is_null(), "creation does not count as a change");
    world.pass(1);
    let device = world.send(&config(r#"{"mode":"night"}"#)).await.shows(200, 2);
    assert_eq!(device["config"], json!({"mode": "night"}));
    let times = |device: &Value| ["createdAt", "updatedAt", "configUpdatedAt"].map(|name| device[name].clone());
    let at = |time: &str| json!(format!("2026-03-07T10:00:{time}Z"));
    assert_eq!(times(&device), [at("00.000"), at("00.001"), at("00.001")]);
    world.pass(1_499);
    let device = world.send(&Event::patch_state()).await.shows(200, 3);
    assert_eq!(times(&device), [at("00.000"), at("01.500"), at("00.001")]);
    assert_eq!(world.send(&Event::get()).await.shows(200, 3), device);
}

#[tokio::test]
async fn a_config_is_changed_again_only_when_the_interval_since_its_own_last_change_has_passed() {
    let (world, _) = World::with_lamp().await;
    world.send(&Event::patch_state()).await.shows(200, 2);
    world.send(&config(r#"{"n":1}"#)).await.shows(200, 3);
    world.send(&config(r#"{"n":1.0}"#)).await.shows(200, 3); // no change, so not too recent
    for (passed, left) in [(0, "300"), (1_000, "299"), (500, "299"), (298_000, "1"), (499, "1")] {
        world.pass(passed);
        let answer = world.refused(&config(r#"{"n":2}"#), 409, "changed_too_recently").await;
        assert_eq!(answer.header("retry-after"), Some(left));
    }
    world.send(&Event::adjust()).await.shows(200, 4);
    world.pass(1);
    world.send(&config(r#"{"n":2}"#)).await.shows(200, 5);
    world.refused(&config(r#"{"n":3}"#), 409, "changed_too_recently").await;
}

#[tokio::test]
async fn an_offline_device_is_told_so_before_the_interval_and_its_own_config_is_no_change() {
    let (world, _) = World::with_lamp().await;
    world.send(&config(r#"{"n":1}"#)).await.shows(200, 2);
    world.send(&Event::set_status().text(r#"{"status":"offline"}"#)).await.shows(200, 3);
    let answer = world.refused(&config(r#"{"n":2}"#), 409, "device_offline").await;
    assert_eq!(answer.header("retry-after"), None);
    world.send(&config(r#"{"n":1}"#)).await.shows(200, 3);
    world.send(&config(r#"{"n":1}"#).header("if-match", "*")).await.shows(200, 3);
    world.send(&config(r#"{"n":1}"#).key("k-1")).await.shows(200, 3);
}

#[tokio::test]
async fn a_change_with_a_tag_of_another_version_or_incarnation_is_refused_with_the_current_version() {
    let (world, created) = World::with_lamp().await;
    let of_another_incarnation = World::new().send(&Event::create()).await;
    assert_ne!(of_another_incarnation.etag(), created.etag());
    let updated = world.send(&Event::patch_state()).await;
    for stale in [&created, &of_another_incarnation] {
        for event in Event::changes().into_iter().chain([Event::patch_state().text("{}")]) {
            let answer = world.refused(&event.header("if-match", stale.etag()), 412, "version_conflict").await;
            assert_eq!((answer.json()["currentVersion"].as_u64(), answer.etag()), (Some(2), updated.etag()));
        }
    }
}

#[tokio::test]
async fn a_stale_tag_is_told_before_the_state_is_asked() {
    let (world, created) = World::with_lamp().await;
    world.send(&Event::set_status().text(r#"{"status":"offline"}"#)).await.shows(200, 2);
    world.refused(&Event::set_config().header("if-match", created.etag()), 412, "version_conflict").await;
    world.refused(&Event::set_config(), 409, "device_offline").await;
}

/// The client names a future version of the device. The delete is refused. Later the device reaches the version. Then a
/// second copy of the delete is applied: its condition holds.
#[tokio::test]
async fn a_second_copy_of_a_delete_with_a_made_up_tag_is_applied_when_the_device_gets_to_that_version() {
    let (world, created) = World::with_lamp().await;
    let made_up = created.etag().replace("\"1.", "\"3.");
    let sent = SentWrites::default();
    let first = world.reached_by(&sent.client(&world.engine));
    first.send(&Event::delete().header("if-match", &made_up)).await.says(412, "version_conflict");
    assert!(!sent.deliver_last(&world.engine), "at version 1");
    world.send(&Event::patch_state()).await.shows(200, 2);
    assert!(!sent.deliver_last(&world.engine), "at version 2");
    world.send(&Event::adjust()).await.shows(200, 3);
    assert!(sent.deliver_last(&world.engine), "at version 3");
    world.send(&Event::get()).await.says(404, "device_not_found");
}
