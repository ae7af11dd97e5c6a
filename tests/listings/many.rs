//! Many items by their keys.

use super::messages::{Message, TABLE, engine, fill, key, message, table};
use crate::harness::clients::client_whose;
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::{Call, Deadline, Failure, Key, Store, Table};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn items_come_in_the_order_of_the_keys_with_none_for_a_key_without_an_item() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", 1..=250).await;
    table.delete(&key("a", 7)).await.expect("it was there");
    let asked: Vec<i64> = (1..=260).rev().collect();
    let keys: Vec<_> = asked.iter().map(|number| key("a", *number)).collect();
    engine.take_log();
    let found = table.get_many(&keys).await.expect("an answer");
    let log = engine.take_log();
    let sizes: Vec<_> = log.iter().map(|asked| keys_in(&asked.body).len()).collect();
    assert_eq!(sizes, [100, 100, 60]);
    assert!(log.iter().all(|asked| asked.body["RequestItems"][TABLE]["ConsistentRead"] == true));
    assert_eq!(found.len(), asked.len());
    for (number, item) in asked.into_iter().zip(found) {
        let expected = (number <= 250 && number != 7).then(|| message("ann", 100 - number));
        assert_eq!(item.map(|item| item.value), expected, "{number}");
    }
    assert!(table.get_many([] as [Key; 0]).await.expect("an answer").is_empty());
    assert_eq!(engine.take_counts(), (0, 0), "no keys, no request");
}

#[tokio::test]
async fn a_key_that_is_named_twice_is_read_once_and_answered_twice() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", [1, 2]).await;
    engine.take_log();
    let keys = [1, 2, 1, 3, 1].map(|number| key("a", number));
    let found = table.get_many(&keys).await.expect("an answer");
    let ranks: Vec<_> = found.iter().map(|item| item.as_ref().map(|item| item.value.rank)).collect();
    assert_eq!(ranks, [Some(99), Some(98), Some(99), None, Some(99)]);
    let log = engine.take_log();
    assert_eq!((log.len(), keys_in(&log[0].body).len()), (1, 3));
}

fn keys_in(body: &Value) -> Vec<Value> {
    body["RequestItems"][TABLE]["Keys"].as_array().cloned().unwrap_or_default()
}

/// A client with answers for every second key only, throttled now and then.
fn client_that_gets_half(engine: &Engine) -> Client {
    let batches = std::sync::atomic::AtomicUsize::new(0);
    client_whose(engine, move |engine, _, operation, body| {
        if operation != "BatchGetItem" {
            return engine.answer(operation, body);
        }
        if batches.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 3 == 1 {
            return crate::harness::clients::error(400, "ProvisionedThroughputExceededException");
        }
        let mut body: Value = serde_json::from_slice(body).expect("JSON");
        let keys = keys_in(&body);
        let (answered, left) = keys.split_at(keys.len().div_ceil(2));
        body["RequestItems"][TABLE]["Keys"] = json!(answered);
        let (status, answer) = engine.answer(operation, body.to_string().as_bytes());
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        if !left.is_empty() {
            body["RequestItems"][TABLE]["Keys"] = json!(left);
            answer["UnprocessedKeys"] = body["RequestItems"].take();
        }
        (status, answer.to_string())
    })
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_left_out_is_asked_for_again_and_no_item_is_lost_or_doubled() {
    let engine = engine();
    fill(&table(&engine), "a", 1..=150).await;
    let table: Table<Message> = Store::new(&client_that_gets_half(&engine)).table(TABLE);
    let keys: Vec<_> = (1..=160).map(|number| key("a", number)).collect();
    let began = Instant::now();
    let found = table.get_many(&keys).await.expect("an answer");
    let ranks: Vec<_> = found.iter().map(|item| item.as_ref().map(|item| item.value.rank)).collect();
    let expected: Vec<_> = (1..=160).map(|number| (number <= 150).then_some(100 - number)).collect();
    assert_eq!(ranks, expected);
    assert!(began.elapsed() > Duration::ZERO, "there was a pause before each repeat");
    let call = Call::new(Deadline::within(Duration::from_millis(60)));
    let failed = table.in_call(&call).get_many(&keys).await.expect_err("no time for all");
    assert!(matches!(failed, Failure::Unavailable { .. }), "{failed:?}");
}

#[tokio::test]
async fn a_key_that_does_not_fit_is_refused_before_anything_is_sent() {
    let engine = engine();
    let refused = table(&engine).get_many(&[key("a", 1), "a".into()]).await.expect_err("half a key");
    assert!(matches!(refused, Failure::InvalidRecord { .. }), "{refused:?}");
    assert_eq!(engine.take_counts(), (0, 0));
}
