//! The requests of look-ups and batches, as the engine counts them. `routes.rs` counts those of changes.

use super::world::{T1, World, batch_of, look_up, task};
use serde_json::json;

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
