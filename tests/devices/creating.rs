//! `PUT`, `GET` and `DELETE /devices/{deviceId}`.

use super::world::World;
use crate::harness::events::Event;
use serde_json::json;

#[tokio::test]
async fn a_new_device_is_shown_whole_with_its_location_and_its_tag() {
    let world = World::new();
    let answer = world.send(&Event::create()).await;
    let device = answer.shows(201, 1);
    let expected = json!({
        "deviceId": "lamp-1",
        "status": "online",
        "state": {"brightness": 50},
        "config": {"fadeMs": 200},
        "version": 1,
        "createdAt": "2026-03-07T10:00:00.000Z",
        "updatedAt": "2026-03-07T10:00:00.000Z",
    });
    assert_eq!(device, expected);
    assert_eq!(answer.header("location"), Some("/devices/lamp-1"));
    let read = world.send(&Event::get()).await;
    assert_eq!((read.shows(200, 1), read.etag()), (expected, answer.etag()));
}

#[tokio::test]
async fn a_device_that_exists_is_not_created_again() {
    let (world, created) = World::with_lamp().await;
    world.refused(&Event::create(), 409, "device_exists").await;
    let answer = world.refused(&Event::create().header("if-none-match", "*"), 412, "version_conflict").await;
    assert_eq!(answer.json()["currentVersion"], 1);
    assert_eq!(answer.etag(), created.etag());
}

#[tokio::test]
async fn a_device_that_is_not_there_is_not_found_by_any_route() {
    let world = World::new();
    for event in Event::changes().into_iter().chain([Event::get()]) {
        world.refused(&event.clone().header("if-match", "*"), 404, "device_not_found").await;
        if event.method() != "DELETE" {
            world.refused(&event, 404, "device_not_found").await;
        }
    }
}

#[tokio::test]
async fn a_tag_that_the_reader_has_already_is_answered_with_304() {
    let (world, created) = World::with_lamp().await;
    let tag = created.etag();
    for header in [tag.to_owned(), "*".to_owned(), format!("W/{tag}"), format!("\"other\", {tag}")] {
        let answer = world.send(&Event::get().header("if-none-match", &header)).await;
        assert_eq!((answer.status, answer.header("etag"), answer.body.as_deref()), (304, Some(tag), None), "{header}");
    }
    world.send(&Event::patch_state()).await.shows(200, 2);
    world.send(&Event::get().header("if-none-match", tag)).await.shows(200, 2);
}

#[tokio::test]
async fn a_delete_demands_a_condition() {
    let (world, _) = World::with_lamp().await;
    world.refused(&Event::delete(), 428, "condition_required").await;
}

#[tokio::test]
async fn a_delete_answers_204_once_and_404_from_then_on() {
    let (world, created) = World::with_lamp().await;
    let delete = Event::delete().header("if-match", created.etag());
    let deleted = world.send(&delete).await;
    assert_eq!((deleted.status, deleted.body.as_deref()), (204, None));
    assert_eq!((deleted.header("etag"), deleted.header("content-type")), (None, None));
    world.refused(&delete, 404, "device_not_found").await;
    world.refused(&Event::delete().header("if-match", "*"), 404, "device_not_found").await;
    world.refused(&Event::get(), 404, "device_not_found").await;
    world.refused(&Event::patch_state(), 404, "device_not_found").await;
}

#[tokio::test]
async fn a_device_made_anew_goes_on_counting_and_starts_empty() {
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
