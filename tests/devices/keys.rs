//! `Idempotency-Key`: a change has one effect. Each repeat gets the first answer.

use super::world::{KEY, World};
use crate::harness::answers::Answer;
use crate::harness::clients::client_whose;
use crate::harness::events::Event;
use crate::harness::functions::DEVICES;
use crate::harness::states::set_by_another;
use serde_json::json;

const HOUR: u64 = 3_600_000; // in milliseconds

fn adjustment(body: &str) -> Event {
    Event::adjust().text(body)
}

/// Asserts a replay of that answer, byte for byte, at the cost of one read and no write.
fn assert_replayed(world: &World, first: &Answer, again: &Answer) {
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    for name in ["etag", "location", "content-type"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    assert_eq!(world.engine.take_counts(), (1, 0));
}

#[tokio::test]
async fn a_keyed_creation_is_made_once_and_answered_alike_for_24_hours() {
    let world = World::new();
    let create = Event::create().key("k-1");
    let first = world.send(&create).await;
    first.shows(201, 1);
    assert_eq!(first.header("location"), Some("/devices/lamp-1"));
    assert_eq!(world.engine.take_counts(), (1, 1));
    for hours in [0, 1, 23] {
        world.pass(hours * HOUR);
        assert_replayed(&world, &first, &world.send(&create).await);
    }
    let if_absent = Event::create().key("k-2").header("if-none-match", "*");
    let answer = world.refused(&if_absent, 412, "version_conflict").await;
    assert_eq!((answer.json()["currentVersion"].as_u64(), answer.etag()), (Some(1), first.etag()));
    world.send(&Event::patch_state()).await.shows(200, 2);
    assert_eq!(world.send(&Event::delete().header("if-match", "*")).await.status, 204);
    world.engine.take_counts();
    assert_replayed(&world, &first, &world.send(&create).await);
    world.refused(&Event::get(), 404, "device_not_found").await;
    let anew = world.send(&if_absent).await;
    anew.shows(201, 4);
    world.engine.take_counts();
    assert_replayed(&world, &anew, &world.send(&if_absent).await);
}

#[tokio::test]
async fn a_key_that_is_used_for_something_else_is_refused_with_422() {
    let (world, _) = World::with_lamp().await;
    world.send(&Event::create().device("lamp-2").key("k-1")).await.shows(201, 1);
    world.send(&adjustment(r#"{"attribute":"brightness","by":1}"#).key("k-1")).await.shows(200, 2);
    for event in [
        adjustment(r#"{"attribute":"brightness","by":2}"#),
        adjustment(r#"{"attribute":"brightness","by":1,"max":100}"#),
        adjustment(r#"{"attribute":"brightness","by":1}"#).device("lamp-2"),
        Event::create(),
        Event::create().device("lamp-2").text(r#"{"state":{}}"#),
    ] {
        let answer = world.refused(&event.key("k-1"), 422, "idempotency_key_reused").await;
        assert_eq!(answer.json()["field"], "header:idempotency-key");
    }
}

/// Without its record, the repeat would adjust the device as another client has left it.
#[tokio::test]
async fn an_adjustment_that_changed_nothing_still_changes_nothing_when_it_is_repeated_late() {
    let world = World::with_state(r#"{"brightness":100}"#).await;
    let clamp = adjustment(r#"{"attribute":"brightness","by":10,"max":100,"onLimit":"clamp"}"#).key("k-1");
    let first = world.send(&clamp).await;
    first.shows(200, 1);
    world.send(&Event::patch_state().text(r#"{"brightness":50}"#)).await.shows(200, 2);
    world.engine.take_counts();
    assert_replayed(&world, &first, &world.send(&clamp).await);
    assert_eq!(world.send(&Event::get()).await.shows(200, 2)["state"]["brightness"], 50);
}

#[tokio::test]
async fn a_repeat_is_answered_before_its_if_match_is_looked_at() {
    let (world, created) = World::with_lamp().await;
    let adjust = Event::adjust().key("k-1").header("if-match", created.etag());
    let first = world.send(&adjust).await;
    first.shows(200, 2);
    world.engine.take_counts();
    assert_replayed(&world, &first, &world.send(&adjust).await);
    let stale = Event::adjust().key("k-2").header("if-match", created.etag());
    let answer = world.refused(&stale, 412, "version_conflict").await;
    assert_eq!((answer.json()["currentVersion"].as_u64(), answer.etag()), (Some(2), first.etag()));
    world.send(&stale.header("if-match", first.etag())).await.shows(200, 3);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_into_its_record_is_too_large_and_nothing_is_written() {
    let world = World::new();
    // In the answer each quote takes two bytes, in the device one.
    let state = format!(r#"{{"state":{{"quotes":"{}"}}}}"#, r#"\""#.repeat(205_000));
    world.refused(&Event::create().key("k-1").text(&state), 413, "too_large").await;
    world.send(&Event::create().text(&state)).await.shows(201, 1);
}

/// The same device. Another client dims the lamp to 50, and raises its version by one, just before a transaction.
fn rivalled(world: &World) -> World {
    let client = client_whose(&world.engine, |engine, _, operation, body| {
        if operation == "TransactWriteItems" && engine.row(DEVICES, KEY, "lamp-1")["_version"]["N"] == "1" {
            let dimmed = json!({"M": {"brightness": {"N": "50"}}});
            set_by_another(engine, DEVICES, "lamp-1", &[("state", dimmed)]);
        }
        engine.answer(operation, body)
    });
    world.reached_by(&client)
}

#[tokio::test(start_paused = true)]
async fn a_decision_without_effect_is_made_again_if_the_item_changed_before_it_was_recorded() {
    let world = World::with_state(r#"{"brightness":100}"#).await;
    let rivalled = rivalled(&world);
    let clamp = adjustment(r#"{"attribute":"brightness","by":10,"max":100,"onLimit":"clamp"}"#).key("k-1");
    assert_eq!(rivalled.send(&clamp).await.shows(200, 3)["state"]["brightness"], 60);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_change_at_a_version_is_not_decided_again_at_another() {
    let (world, created) = World::with_lamp().await;
    let rivalled = rivalled(&world);
    let lost = rivalled.send(&Event::adjust().key("k-1").header("if-match", created.etag())).await;
    assert_eq!((lost.status, lost.json()["code"].as_str()), (412, Some("version_conflict")));
    let read = world.send(&Event::get()).await;
    assert_eq!(read.shows(200, 2)["state"]["brightness"], 50);
    let anew = Event::adjust().key("k-1").header("if-match", read.etag());
    assert_eq!(world.send(&anew).await.shows(200, 3)["state"]["brightness"], 51, "a refusal does not close the key");
}
