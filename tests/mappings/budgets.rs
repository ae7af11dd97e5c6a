//! The requests of mappings, as the engine counts them.

use super::world::{IP, T1, T2, T3, World, batch_of, deletion, look_up, registration, task};
use serde_json::json;

/// One write and no read.
const ONE_WRITE: (usize, usize) = (0, 1);

#[tokio::test]
async fn a_registration_costs_one_write_and_no_read_with_any_outcome() {
    let world = World::new();
    let elsewhere = json!({"cellId": "cell-2", "instanceId": "i-b", "creationTimestamp": T2}).to_string();
    for (event, status, code) in [
        (registration(IP, "i-b", T2), 201, None),
        (registration(IP, "i-b", T2), 200, None),
        (registration(IP, "i-a", T1), 409, Some("superseded")),
        (registration(IP, "i-b", T2).text(&elsewhere), 409, Some("mapping_differs")),
        (registration(IP, "i-c", T3), 201, None),
    ] {
        world.engine.take_log();
        let answer = world.send(&event).await;
        assert_eq!(world.engine.take_counts(), ONE_WRITE, "{event:?}");
        assert_eq!((answer.status, answer.json()["code"].as_str()), (status, code));
    }
    world.delete(IP, T3, None).await;
    world.engine.take_log();
    world.register(IP, "i-c", T3).await.superseded_by(T3, None);
    assert_eq!(world.engine.take_counts(), ONE_WRITE);
}

#[tokio::test]
async fn a_delete_costs_one_write_and_no_read_with_any_outcome() {
    let world = World::new();
    world.stands(IP, "i-b", T2).await;
    for (at, instance, outcome) in [
        (T1, Some("i-a"), "superseded"),
        (T1, None, "superseded"),
        (T2, Some("i-b"), "deleted"),
        (T2, Some("i-b"), "already_gone"),
        (T2, None, "already_gone"),
        (T2, Some("i-b"), "superseded"),
    ] {
        world.engine.take_log();
        assert_eq!(world.send(&deletion(IP, at, instance)).await.outcome(), outcome);
        assert_eq!(world.engine.take_counts(), ONE_WRITE, "{at} {instance:?}");
    }
}

#[tokio::test]
async fn a_look_up_costs_one_consistent_read() {
    let world = World::new();
    world.stands("192.0.2.11", "i-a", T1).await;
    world.delete("192.0.2.12", T1, None).await;
    let tag = world.get("192.0.2.11").await.etag().to_owned();
    world.engine.take_log();
    for (event, status) in [
        (look_up("192.0.2.10"), 404),
        (look_up("192.0.2.11"), 200),
        (look_up("192.0.2.11").header("if-none-match", &tag), 304),
        (look_up("192.0.2.12"), 404),
    ] {
        assert_eq!(world.send(&event).await.status, status);
        let asked = world.engine.take_log();
        assert_eq!(asked.len(), 1, "{event:?}");
        assert_eq!((asked[0].operation.as_str(), &asked[0].body["ConsistentRead"]), ("GetItem", &json!(true)));
    }
}

#[tokio::test]
async fn a_batch_costs_one_write_for_each_address_and_no_read() {
    let moments: Vec<_> = (0..10).map(|minute| format!("2026-03-07T10:{minute:02}:00Z")).collect();
    for hosts in [1, 2, 5, 10] {
        let world = World::new();
        let ip = |number: usize| format!("192.0.2.{}", number % hosts);
        for number in 0..hosts {
            world.stands(&ip(number), "i-a", T1).await;
        }
        let tasks = moments.iter().enumerate().map(|(n, at)| (format!("m-{n}"), task(&ip(n), at, None)));
        let batch = batch_of(&tasks.collect::<Vec<_>>());
        for _ in 0..2 {
            world.engine.take_log();
            assert!(world.batch(&batch).await.is_empty());
            assert_eq!(world.engine.take_counts(), (0, hosts), "{hosts} hosts");
        }
    }
}
