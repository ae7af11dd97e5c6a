//! What `host-mapping` and `delete-mapping` have in common.

use super::world::{IP, T1, World, batch_of, task};
use serde_json::Value;

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
