use fencepost_test::Dynamo;
use outside_kit::{counter_at_zero, increment, increment_with_table};
use serde_json::json;

/// Counters at 0. One answer to a write of each is lost.
fn scene() -> Dynamo {
    let db = Dynamo::new();
    db.create_table("Counters", "id");
    db.put("Counters", &json!({"id": {"S": "naive"}, "n": {"N": "0"}, "version": {"N": "1"}}));
    for id in ["naive", "table"] {
        db.lose_answer().of("UpdateItem").about(id).once();
    }
    db
}

#[tokio::test(start_paused = true)]
async fn the_naive_loop_adds_twice() {
    let db = scene();
    assert!(increment(&db.client(), "naive").await);
    assert_eq!(db.number("Counters", "naive", "n"), 2, "{}", db.log());
}

#[tokio::test(start_paused = true)]
async fn the_table_adds_once() {
    let db = scene();
    let counters = counter_at_zero(&db.client(), "table").await;
    assert!(increment_with_table(&counters, "table").await);
    assert_eq!(db.number("Counters", "table", "n"), 1, "{}", db.log());
    assert_eq!(db.log().about("table").of("UpdateItem").len(), 2, "one answer was lost");
}
