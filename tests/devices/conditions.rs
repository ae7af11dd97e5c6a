//! `If-Match` on every route that changes a device.

use super::world::World;
use crate::harness::clients::client_whose;
use crate::harness::events::Event;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn every_change_takes_the_tag_of_the_answer_before() {
    let (world, created) = World::with_lamp().await;
    let mut tag = created.etag().to_owned();
    let [patch, adjust, offline, _, delete] = Event::changes();
    let online = Event::set_status();
    for (version, event) in (2..).zip([patch, adjust, offline, online, Event::set_config()]) {
        let answer = world.send(&event.header("if-match", &tag)).await;
        answer.shows(200, version);
        tag = answer.etag().to_owned();
    }
    assert_eq!(world.send(&Event::get()).await.etag(), tag, "a read gives the same tag");
    assert_eq!(world.send(&delete.header("if-match", &tag)).await.status, 204);
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

#[tokio::test]
async fn a_star_matches_whatever_is_there() {
    let (world, _) = World::with_lamp().await;
    let [patch, adjust, offline, _, delete] = Event::changes();
    for (version, event) in (2..).zip([patch, adjust, offline]) {
        world.send(&event.header("if-match", "*")).await.shows(200, version);
    }
    assert_eq!(world.send(&delete.header("if-match", "*")).await.status, 204);
}

/// The client names a version that the device does not have yet. The delete is refused. When the device gets there, a second
/// copy of the delete is applied: its condition holds.
#[tokio::test]
async fn a_second_copy_of_a_delete_with_a_made_up_tag_is_applied_when_the_device_gets_to_that_version() {
    let (world, created) = World::with_lamp().await;
    let made_up = created.etag().replace("\"1.", "\"3.");
    let sent = Arc::<Mutex<Vec<u8>>>::default();
    let noted = sent.clone();
    let client = client_whose(&world.engine, move |engine, _, operation, body| {
        *noted.lock().expect("no panic") = body.to_vec();
        engine.answer(operation, body)
    });
    let refused = world.reached_by(&client).send(&Event::delete().header("if-match", &made_up)).await;
    refused.says(412, "version_conflict");
    let copied = || world.engine.answer("UpdateItem", &sent.lock().expect("no panic")).0;
    assert_eq!(copied(), 400, "at version 1");
    world.send(&Event::patch_state()).await.shows(200, 2);
    assert_eq!(copied(), 400, "at version 2");
    world.send(&Event::adjust()).await.shows(200, 3);
    assert_eq!(copied(), 200, "at version 3");
    world.send(&Event::get()).await.says(404, "device_not_found");
}
