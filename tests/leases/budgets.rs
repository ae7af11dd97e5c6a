//! The requests of leases and children, as the engine counts them.

use super::world::{World, ensure, ensure_under, shown_child};
use crate::harness::clients::client_whose;
use crate::harness::events::Event;
use crate::harness::functions::CHILDREN;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_child_costs_one_write_and_under_a_lease_one_read_and_one_transaction_or_one_read() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let spec = json!({"pages": 12});
    world.engine.take_log();
    let asked = async |event: Event, status| {
        let answer = world.send(&event).await;
        assert_eq!(answer.status, status, "{event:?} {answer:?}");
        world.engine.take_log().into_iter().map(|asked| asked.operation).collect::<Vec<_>>()
    };
    assert_eq!(asked(ensure("p", "u", &spec), 201).await, ["PutItem"]);
    assert_eq!(asked(ensure("p", "u", &spec), 200).await, ["PutItem"], "a refusal shows the child");
    assert_eq!(asked(ensure("p", "u", &json!({})), 409).await, ["PutItem"]);
    let under = |parent: &str, token| ensure_under(parent, "u", &spec, ("k", token));
    assert_eq!(asked(under("q", token), 201).await, ["BatchGetItem", "TransactWriteItems"]);
    assert_eq!(asked(under("q", token), 200).await, ["BatchGetItem"]);
    assert_eq!(asked(under("q", token + 1), 200).await, ["BatchGetItem"]);
    let looked_again = ["BatchGetItem", "TransactWriteItems", "GetItem"];
    assert_eq!(asked(under("r", token + 1), 409).await, looked_again, "a child answers before the fence does");
    assert_eq!(asked(shown_child("p", "u"), 200).await, ["GetItem"]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_checked_in_the_transaction_that_creates_the_child() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    world.engine.take_log();
    world.send(&ensure_under("p", "u", &json!({}), ("k", token))).await.shown(201);
    let asked = world.engine.take_log();
    let steps = asked[1].body["TransactItems"].as_array().expect("steps");
    let of = |step: &str| steps.iter().find_map(|all| all.get(step)).unwrap_or_else(|| panic!("{step}: {steps:?}"));
    assert_eq!((steps.len(), &of("Put")["TableName"]), (2, &json!(CHILDREN)));
    assert_eq!(of("ConditionCheck")["Key"], json!({"leaseKey": {"S": "k"}}));
    assert_eq!(asked[0].body["RequestItems"].as_object().map(serde_json::Map::len), Some(1), "the lease is not read");
}

/// Between the read and the transaction, another client creates the child, and may have taken the lease before.
#[tokio::test(start_paused = true)]
async fn a_child_that_comes_in_between_is_answered_without_another_request() {
    for fenced in [false, true] {
        let world = World::new();
        let token = world.acquired("k", "a", 60).await;
        let mine = ensure_under("p", "u", &json!({}), ("k", token));
        let twin = World::new();
        let theirs = twin.send(&ensure("p", "u", &json!({}))).await;
        let id = theirs.json()["childId"].as_str().expect("an id").to_owned();
        let row = twin.engine.row(CHILDREN, "childId", &id);
        let lease_key = world.row("k")["leaseKey"].clone();
        let client = client_whose(&world.engine, move |engine, writes, operation, body| {
            if operation == "TransactWriteItems" && writes == 0 {
                engine.raw("PutItem", &json!({"TableName": CHILDREN, "Item": row}));
                if fenced {
                    let key: Value = json!({"leaseKey": lease_key});
                    engine.raw("DeleteItem", &json!({"TableName": "Leases", "Key": key}));
                }
            }
            engine.answer(operation, body)
        });
        world.engine.take_log();
        let found = world.reached_by(&client).send(&mine).await;
        assert_eq!((found.shown(200), found.etag()), (theirs.json(), theirs.etag()), "fenced: {fenced}");
        assert_eq!(world.engine.take_counts(), (1, 1));
    }
}
