//! Mappings after a restore. They have no version. The newest instance still wins.

use crate::harness::events::{Event, deletion, look_up, registration};
use crate::harness::functions::{MAPPINGS, Mappings};
use crate::harness::restore::{Moment, SentWrites, restamp, rows};
use crate::harness::world::World;

type Hosts = World<Mappings>;

const OLD: &str = "2026-03-07T10:00:00.000Z";
const NEW: &str = "2026-03-07T10:30:00.000Z";

const IP: &str = "192.0.2.10";

fn register(instance: &str, at: &str) -> Event {
    registration(IP, instance, at)
}

#[tokio::test]
async fn the_tag_of_a_mapping_matches_that_very_mapping_and_no_other_after_a_restore_too() {
    let world = Hosts::new();
    world.send(&register("i-1", OLD)).await.shown(201);
    let moment = Moment::of(&world.engine);
    let newer = world.send(&register("i-2", NEW)).await;
    newer.shown(201);
    moment.restore_all(&world.engine);
    assert_eq!(world.send(&look_up(IP)).await.shown(200)["instanceId"], "i-1");
    world.send(&look_up(IP).header("if-match", newer.etag())).await.says(412, "version_conflict");
    world.send(&register("i-3", NEW)).await.shown(201);
    world.send(&look_up(IP).header("if-match", newer.etag())).await.says(412, "version_conflict");
}

#[tokio::test]
async fn a_late_copy_of_a_registration_brings_back_a_mapping_that_the_restore_lost_and_never_an_older_one() {
    let world = Hosts::new();
    world.send(&register("i-1", OLD)).await.shown(201);
    let moment = Moment::of(&world.engine);
    let sent = SentWrites::default();
    let newer = world.reached_by(&sent.client(&world.engine)).send(&register("i-2", NEW)).await;
    moment.restore_all(&world.engine);
    assert!(sent.deliver_last(&world.engine));
    let shown = world.send(&look_up(IP)).await;
    assert_eq!((shown.json(), shown.etag()), (newer.json(), newer.etag()));
    moment.restore_all(&world.engine);
    world.send(&register("i-3", "2026-03-07T10:45:00.000Z")).await.shown(201);
    assert!(!sent.deliver_last(&world.engine), "a newer one is there");
}

#[tokio::test]
async fn an_instance_that_was_deleted_after_the_moment_is_there_again_until_its_delete_is_sent_again() {
    let world = Hosts::new();
    world.send(&register("i-1", OLD)).await.shown(201);
    let moment = Moment::of(&world.engine);
    assert_eq!(world.send(&deletion(IP, OLD, Some("i-1"))).await.status, 204);
    moment.restore_all(&world.engine);
    world.send(&look_up(IP)).await.shown(200);
    assert_eq!(world.send(&deletion(IP, OLD, Some("i-1"))).await.status, 204);
    world.send(&look_up(IP)).await.says(404, "mapping_not_found");
    world.send(&register("i-1", OLD)).await.says(409, "superseded");
}

#[tokio::test]
async fn there_is_nothing_to_restamp_in_mappings() {
    let world = Hosts::new();
    world.send(&register("i-1", OLD)).await.shown(201);
    let before = rows(&world.engine, MAPPINGS);
    let found = restamp(&world.engine, MAPPINGS).await;
    assert_eq!((found.live, found.tombstones, found.mappings), (0, 0, 1));
    assert_eq!(rows(&world.engine, MAPPINGS), before);
}
