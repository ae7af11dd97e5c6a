//! Batches that `DynamoDB` answers only in part.

use super::accounts::{Account, TABLE, balance, call, engine, rival, with_accounts};
use crate::harness::clients::{client_whose, step_in_conflict};
use crate::harness::engine::{Engine, store};
use aws_sdk_dynamodb::Client;
use fencepost::{Call, Error, Reads, Store, Table};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// When a batch was asked for, and for how many keys.
type Batches = Arc<Mutex<Vec<(Instant, usize)>>>;

/// A client with an answer for only the first key of each batch. Batches are noted.
fn client_that_gets_one_at_a_time(engine: &Engine, batches: &Batches) -> Client {
    let batches = batches.clone();
    client_whose(engine, move |engine, _, operation, body| {
        if operation != "BatchGetItem" {
            return engine.answer(operation, body);
        }
        let mut body: Value = serde_json::from_slice(body).expect("JSON");
        let keys = body["RequestItems"][TABLE]["Keys"].as_array_mut().expect("keys").split_off(0);
        batches.lock().expect("no panic").push((Instant::now(), keys.len()));
        body["RequestItems"][TABLE]["Keys"] = json!(keys[..1]);
        let (status, answer) = engine.answer(operation, body.to_string().as_bytes());
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        if keys.len() > 1 {
            body["RequestItems"][TABLE]["Keys"] = json!(keys[1..]);
            answer["UnprocessedKeys"] = body["RequestItems"].take();
        }
        (status, answer.to_string())
    })
}

/// Reads three accounts in one decision.
async fn read_three(store: &Store, call: &Call) -> Result<usize, Error<()>> {
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let items = ["a-1", "a-2", "a-3"].map(|id| reads.item(id, &accounts, id));
    let store = store.in_call(call);
    let read = store.transact_with_retry(reads, |attempt| {
        let mut found = 0;
        for item in items {
            found += usize::from(attempt.get(item)?.is_some());
        }
        Ok(found)
    });
    read.await
}

async fn with_two_accounts() -> (Batches, Store) {
    let engine = engine();
    let batches = Batches::default();
    let now = || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    // Pauses are drawn at their longest.
    let store = store(&client_that_gets_one_at_a_time(&engine, &batches), now, || u64::MAX);
    with_accounts(&engine, &["a-1", "a-3"]).await;
    (batches, store)
}

#[tokio::test(start_paused = true)]
async fn what_a_batch_leaves_out_is_asked_for_again_after_a_pause_that_grows() {
    let (batches, store) = with_two_accounts().await;
    assert_eq!(read_three(&store, &call()).await.expect("read"), 2);
    let asked = batches.lock().expect("no panic").clone();
    assert_eq!(asked.iter().map(|(_, keys)| *keys).collect::<Vec<_>>(), [3, 2, 1]);
    let pauses: Vec<_> = asked.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis()).collect();
    assert!(pauses[0] >= 19 && pauses[1] >= 39, "{pauses:?} ms");
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_only_what_another_transaction_is_changing_is_read_again() {
    let engine = engine();
    with_accounts(&engine, &["a-1", "a-2"]).await;
    let client = client_whose(&engine, |engine, writes, operation, body| {
        if operation != "TransactWriteItems" || writes > 0 {
            return engine.answer(operation, body);
        }
        for id in ["a-1", "a-2"] {
            rival(engine, id);
        }
        let (status, answer) = engine.answer(operation, body);
        (status, step_in_conflict(&answer, 1))
    });
    let store = Store::new(&client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let items = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let taken = store.transact_with_retry(reads, |attempt| {
        for item in items {
            let balance = attempt.get(item)?.map_or(0, |account| account.value.balance);
            attempt.update_at(item, &Account { balance: balance - 2 })?;
        }
        Ok::<_, Error>(())
    });
    taken.await.expect("decided again");
    let asked = engine.take_log();
    let operations: Vec<_> = asked.iter().map(|asked| asked.operation.as_str()).collect();
    assert_eq!(operations, ["BatchGetItem", "TransactWriteItems", "BatchGetItem", "TransactWriteItems"]);
    let again = &asked[2].body["RequestItems"][TABLE]["Keys"];
    assert_eq!(*again, json!([{"accountId": {"S": "a-2"}}]));
    for id in ["a-1", "a-2"] {
        assert_eq!(balance(&engine, id), 49);
    }
}
