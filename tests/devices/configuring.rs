//! `PUT …/config`: only online, and not too often.

use super::world::World;
use crate::harness::events::Event;
use serde_json::json;

fn config(text: &str) -> Event {
    Event::set_config().text(text)
}

#[tokio::test]
async fn a_config_is_replaced_as_a_whole_and_creation_does_not_count_as_a_change() {
    let (world, created) = World::with_lamp().await;
    assert!(created.json()["configUpdatedAt"].is_null());
    world.pass(1);
    let device = world.send(&config(r#"{"mode":"night"}"#)).await.shows(200, 2);
    assert_eq!(device["config"], json!({"mode": "night"}));
    assert_eq!(device["configUpdatedAt"], "2026-03-07T10:00:00.001Z");
    assert_eq!(device["updatedAt"], device["configUpdatedAt"]);
}

#[tokio::test]
async fn a_config_is_changed_again_only_when_the_interval_has_passed() {
    let (world, _) = World::with_lamp().await;
    world.send(&config(r#"{"n":1}"#)).await.shows(200, 2);
    for (passed, left) in [(0, "300"), (1_000, "299"), (500, "299"), (298_000, "1"), (499, "1")] {
        world.pass(passed);
        let answer = world.refused(&config(r#"{"n":2}"#), 409, "changed_too_recently").await;
        assert_eq!(answer.header("retry-after"), Some(left));
    }
    world.pass(1);
    world.send(&config(r#"{"n":2}"#)).await.shows(200, 3);
    world.refused(&config(r#"{"n":3}"#), 409, "changed_too_recently").await;
}

#[tokio::test]
async fn other_changes_do_not_start_the_interval() {
    let (world, _) = World::with_lamp().await;
    world.send(&Event::patch_state()).await.shows(200, 2);
    world.send(&config(r#"{"n":1}"#)).await.shows(200, 3);
    world.pass(299_000);
    world.send(&Event::adjust()).await.shows(200, 4);
    world.pass(1_000);
    world.send(&config(r#"{"n":2}"#)).await.shows(200, 5);
}

#[tokio::test]
async fn an_offline_device_is_told_so_before_the_interval() {
    let (world, _) = World::with_lamp().await;
    world.send(&config(r#"{"n":1}"#)).await.shows(200, 2);
    world.send(&Event::set_status().text(r#"{"status":"offline"}"#)).await.shows(200, 3);
    let answer = world.refused(&config(r#"{"n":2}"#), 409, "device_offline").await;
    assert_eq!(answer.header("retry-after"), None);
    world.refused(&config(r#"{"n":1}"#), 409, "device_offline").await;
}
