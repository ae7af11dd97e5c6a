//! An `Idempotency-Key` on the changes that set something: repeated after another client's change, they change nothing.

use super::world::World;
use crate::harness::answers::Answer;
use crate::harness::clients::{client_whose, lost};
use crate::harness::events::Event;
use serde_json::json;

/// Each change that sets something, what another client sets in between, and what the first one must not set again.
fn settings() -> [(Event, Event); 3] {
    [
        (Event::patch_state().text(r#"{"brightness":70}"#), Event::patch_state().text(r#"{"brightness":20}"#)),
        (Event::set_status().text(r#"{"status":"offline"}"#), Event::set_status().text(r#"{"status":"online"}"#)),
        (Event::set_config().text(r#"{"mode":"night"}"#), Event::set_config().text(r#"{"mode":"day"}"#)),
    ]
}

/// What a device says of itself but for its version and its times.
fn settings_of(answer: &Answer) -> serde_json::Value {
    let device = answer.json();
    json!([device["state"], device["status"], device["config"]])
}

#[tokio::test]
async fn a_keyed_setting_that_is_repeated_after_another_clients_is_answered_and_not_applied() {
    for (mine, theirs) in settings() {
        let (world, _) = World::with_lamp().await;
        let first = world.send(&mine.clone().key("k-1")).await;
        first.shows(200, 2);
        world.pass(3_600_000); // a config may change again
        let second = world.send(&theirs).await;
        second.shows(200, 3);
        assert_ne!(settings_of(&first), settings_of(&second));
        let again = world.send(&mine.clone().key("k-1")).await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{mine:?}");
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        let now = world.send(&Event::get()).await;
        now.shows(200, 3);
        assert_eq!(settings_of(&now), settings_of(&second), "{mine:?} was applied again");
        world.refused(&theirs.key("k-1"), 422, "idempotency_key_reused").await;
    }
}

#[tokio::test]
async fn a_keyed_setting_looks_the_key_up_before_if_match_and_before_it_decides() {
    for (mine, _) in settings() {
        let (world, created) = World::with_lamp().await;
        let keyed = mine.header("if-match", created.etag()).key("k-1");
        let first = world.send(&keyed).await;
        first.shows(200, 2);
        // By now the tag is stale.
        let again = world.send(&keyed).await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{keyed:?}");
    }
}

#[tokio::test]
async fn the_same_request_through_another_base_path_is_the_same_request() {
    let (world, _) = World::with_lamp().await;
    for (index, change) in [Event::adjust(), Event::patch_state(), Event::set_config()].into_iter().enumerate() {
        let keyed = change.key(&format!("k-{index}"));
        let first = world.send(&keyed).await;
        assert_eq!(first.status, 200, "{first:?}");
        let again = world.send(&keyed.under_base_path("/base")).await;
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
    }
    // Another device is another request.
    let other = Event::adjust().device("lamp-2").key("k-0").under_base_path("/base");
    world.refused(&other, 422, "idempotency_key_reused").await;
}

/// The same device, where no single read is answered. A refusal is looked at again with one.
fn without_a_second_look(world: &World) -> World {
    let client =
        client_whose(
            &world.engine,
            |engine, _, operation, body| {
                if operation == "GetItem" { lost() } else { engine.answer(operation, body) }
            },
        );
    world.reached_by(&client)
}

#[tokio::test(start_paused = true)]
async fn a_keyed_refusal_that_cannot_be_looked_at_again_does_not_say_that_nothing_was_ever_applied() {
    let (world, _) = World::with_lamp().await;
    let blind = without_a_second_look(&world);
    let too_much = Event::adjust().text(r#"{"attribute":"brightness","by":1000,"max":100}"#).key("k-1");
    let answer = blind.refused(&too_much, 503, "unavailable").await;
    let detail = answer.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("this request applied nothing; an earlier one with the same Idempotency-Key"), "{detail}");
}
