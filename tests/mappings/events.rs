//! Every event of both functions is answered as the name of its file says.

use super::world::{T1, World, batch_of, task};
use crate::harness::events::load;

/// The instances and the addresses of the events.
const FIRST: &str = "i-0a1b2c3d4e5f60711";
const SECOND: &str = "i-0b1b2c3d4e5f60712";
const IP: &str = "192.0.2.10";
const LATER: &str = "2026-03-07T10:30:00.000Z";

/// The names of the events of a function, without its own.
fn events_of(function: &str) -> Vec<String> {
    let folder = std::fs::read_dir(dev::workspace().join("events")).expect("a folder");
    let files = folder.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    let mut names: Vec<_> = files
        .filter_map(|file| file.strip_suffix(".json")?.strip_prefix(&format!("{function}-")).map(ToOwned::to_owned))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_event_of_host_mapping_has_the_outcome_in_its_name() {
    let world = World::new();
    assert_eq!(events_of("host-mapping"), ["delete", "get", "register"]);
    world.send(&load("host-mapping-get")).await.says(404, "mapping_not_found");
    let registered = world.send(&load("host-mapping-register")).await.shown(201);
    assert_eq!((registered["hostIp"].as_str(), registered["instanceId"].as_str()), (Some(IP), Some(FIRST)));
    assert_eq!(world.send(&load("host-mapping-register")).await.shown(200), registered);
    assert_eq!(world.send(&load("host-mapping-get")).await.shown(200), registered);
    assert_eq!(world.send(&load("host-mapping-delete")).await.outcome(), "deleted");
    world.send(&load("host-mapping-get")).await.says(404, "mapping_not_found");
}

#[tokio::test]
async fn every_event_of_delete_mapping_has_the_outcome_in_its_name() {
    for name in events_of("delete-mapping") {
        let world = World::new();
        let event = load(&format!("delete-mapping-{name}")).0;
        let records = event["Records"].as_array().expect("messages");
        let bodies: Vec<_> = records.iter().map(|record| record["body"].as_str().expect("a body")).collect();
        world.send(&load("host-mapping-register")).await.shown(201);
        let expected = match name.as_str() {
            "deleted" => {
                world.stands(IP, SECOND, LATER).await;
                vec![Ok("deleted")]
            }
            "already-gone" => {
                world.stands(IP, SECOND, LATER).await;
                assert!(world.batch(&load("delete-mapping-deleted").0).await.is_empty());
                vec![Ok("already_gone")]
            }
            "superseded" => {
                world.stands(IP, SECOND, LATER).await;
                vec![Ok("superseded")]
            }
            "malformed" => vec![Err(("invalid_json", String::new()))],
            "batch" => {
                world.stands("192.0.2.11", "i-0c1b2c3d4e5f60713", T1).await;
                world.stands("192.0.2.12", SECOND, LATER).await;
                let missing = Err(("missing_field", "/creationTimestamp".to_owned()));
                vec![Ok("deleted"), Ok("superseded"), missing, Ok("already_gone"), Ok("folded")]
            }
            other => panic!("tests/mappings/events.rs: say what delete-mapping-{other}.json comes to"),
        };
        assert_eq!(world.outcomes(&bodies).await, expected, "{name}");
        let failed = records.iter().zip(&expected).filter(|(_, outcome)| outcome.is_err());
        let failed: Vec<_> = failed.map(|(record, _)| record["messageId"].as_str().expect("an id")).collect();
        assert_eq!(world.batch(&event).await, failed, "{name}");
    }
}

#[tokio::test]
async fn after_the_batch_the_overtaken_registration_is_refused_and_the_new_owner_is_there() {
    let world = World::new();
    world.stands("192.0.2.12", SECOND, LATER).await;
    world.batch(&load("delete-mapping-batch").0).await;
    assert_eq!(world.instance("192.0.2.12").await.as_deref(), Some(SECOND));
    world.register("2001:db8::4", "i-0d1b2c3d4e5f60714", T1).await.superseded_by(T1, Some("i-0d1b2c3d4e5f60714"));
    assert!(world.batch(&batch_of(&[("m-1", task("192.0.2.12", LATER, None))])).await.is_empty());
}
