//! The story of the two functions: an address gets another instance before the delete of its first owner arrives. A
//! delete by HTTP and one by the queue are the same request.

use super::world::{IP, T1, T2, World, batch_of, task};
use crate::harness::events::load;
use serde_json::Value;

#[tokio::test]
async fn the_batch_in_events_has_a_message_of_each_outcome() {
    const NEXT: &str = "i-0b1b2c3d4e5f60712";
    const GONE: &str = "i-0d1b2c3d4e5f60714";
    let world = World::new();
    world.stands("192.0.2.11", "i-0c1b2c3d4e5f60713", T1).await;
    world.stands("192.0.2.12", NEXT, T2).await;
    let batch = load("delete-mapping-batch").0;
    let records = batch["Records"].as_array().expect("messages");
    let bodies: Vec<_> = records.iter().map(|record| record["body"].as_str().expect("a body")).collect();
    let missing = Err(("missing_field", "/creationTimestamp".to_owned()));
    let expected = [Ok("deleted"), Ok("superseded"), missing, Ok("already_gone"), Ok("folded")];
    assert_eq!(world.outcomes(&bodies).await, expected);
    assert_eq!(world.batch(&batch).await, [records[2]["messageId"].as_str().expect("an id")]);
    assert_eq!(world.instance("192.0.2.12").await.as_deref(), Some(NEXT));
    world.register("2001:db8::4", GONE, T1).await.superseded_by(T1, Some(GONE));
}

#[tokio::test]
async fn a_delete_that_arrives_after_the_next_instance_was_registered_leaves_that_instance_alone() {
    for by_queue in [true, false] {
        for named in [Some("i-a"), None] {
            let world = World::new();
            world.stands(IP, "i-a", T1).await;
            world.stands(IP, "i-b", T2).await;
            let row = world.row(IP);
            if by_queue {
                let body = task(IP, T1, named);
                assert_eq!(world.outcomes(&[&body]).await, [Ok("superseded")]);
                assert!(world.batch(&batch_of(&[("m-1", &body), ("m-2", &body)])).await.is_empty());
            } else {
                assert_eq!(world.delete(IP, T1, named).await, "superseded");
            }
            assert_eq!(world.instance(IP).await.as_deref(), Some("i-b"));
            assert_eq!(world.row(IP), row);
        }
    }
}

#[tokio::test]
async fn the_registration_of_the_next_instance_may_be_the_one_that_comes_last() {
    for by_queue in [true, false] {
        let world = World::new();
        world.stands(IP, "i-a", T1).await;
        if by_queue {
            assert!(world.batch(&batch_of(&[("m-1", task(IP, T1, Some("i-a")))])).await.is_empty());
        } else {
            assert_eq!(world.delete(IP, T1, Some("i-a")).await, "deleted");
        }
        assert_eq!(world.instance(IP).await, None);
        world.stands(IP, "i-b", T2).await;
        world.register(IP, "i-a", T1).await.superseded_by(T2, Some("i-b"));
        assert_eq!(world.instance(IP).await.as_deref(), Some("i-b"));
    }
}

#[tokio::test]
async fn both_leave_the_same_tombstone_by_the_same_request() {
    for instance in [None, Some("i-a")] {
        let mut left: Vec<(Value, Vec<Value>)> = Vec::new();
        for by_queue in [false, true] {
            let world = World::new();
            world.stands(IP, "i-a", T1).await;
            world.engine.take_log();
            if by_queue {
                assert!(world.batch(&batch_of(&[("m-1", task(IP, T1, instance))])).await.is_empty());
            } else {
                assert_eq!(world.delete(IP, T1, instance).await, "deleted");
            }
            let asked = world.engine.take_log().into_iter().map(|asked| asked.body).collect();
            left.push((world.row(IP), asked));
        }
        assert_eq!(left[0], left[1]);
    }
}
