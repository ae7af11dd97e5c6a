//! One answer is lost. The usual loop applies its change twice, and `fencepost::Table` applies it once.
//!
//! Run it with `cargo run -p fencepost-test --example lost_answer`. It needs nothing else.
//!
//! The loop reads, writes on the condition that the version is still the same, and begins again when the condition
//! fails. DynamoDB applies its write. The answer is lost. The SDK sends the write again by itself. Now the condition
//! fails, because of the write itself. The loop takes that for another writer, reads again, and adds another one.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]
#![expect(clippy::disallowed_methods, reason = "one of the two ways is the usual one, on the bare SDK")]

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Clock, Record, Rng, Store, Table, UpdateError};
use fencepost_test::{Changes, Contradiction, Dynamo};
use serde::{Deserialize, Serialize};
use serde_json::json;

const TABLE: &str = "Counters";

/// Adds one in the usual way. `false` if nothing says whether it was added.
async fn increment(client: &Client, id: &str) -> bool {
    let id = || AttributeValue::S(id.to_owned());
    loop {
        let read = client.get_item().table_name(TABLE).key("id", id()).consistent_read(true);
        let Ok(read) = read.send().await else { continue };
        let version = read.item.expect("the counter is there")["version"].clone();
        let write = client
            .update_item()
            .table_name(TABLE)
            .key("id", id())
            .update_expression("ADD n :one, version :one")
            .condition_expression("version = :version")
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .expression_attribute_values(":version", version);
        match write.send().await.map_err(SdkError::into_service_error) {
            Ok(_) => return true,
            Err(error) if error.is_conditional_check_failed_exception() => {} // somebody else was first: again
            Err(_) => return false,
        }
    }
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Counter {
    n: u64,
}

/// A store with the time and the chance of the test.
fn store(db: &Dynamo) -> Store {
    let (clock, chance) = (db.clone(), db.clone());
    Store::new(&db.client()).with_clock(Clock::new(move || clock.now())).with_rng(Rng::new(move || chance.random()))
}

/// Adds one with `Table`. `false` if nothing says whether it was added.
async fn increment_with_table(store: &Store, id: &str) -> bool {
    let counters: Table<Counter> = store.table(TABLE);
    let added: Result<_, UpdateError> =
        counters.update_with_retry(id, |counter| Ok(Some(Counter { n: counter.n + 1 }))).await;
    match added {
        Ok(_) => true,
        Err(UpdateError::Failed(failure)) if failure.is_outcome_unknown() => false,
        Err(other) => panic!("{other}"),
    }
}

/// Two counters at 0 that lose the answer to one write each.
async fn scene(db: &Dynamo) {
    db.create_table(TABLE, "id");
    let counters: Table<Counter> = store(db).table(TABLE);
    counters.create("table", &Counter { n: 0 }).await.expect("a free key");
    db.put(TABLE, &json!({"id": {"S": "loop"}, "n": {"N": "0"}, "version": {"N": "1"}}));
    db.lose_answer().of("UpdateItem").about("loop").once();
    db.lose_answer().of("UpdateItem").about("table").once();
}

/// Adds one in one of the two ways and compares the table with the acknowledgement.
async fn added(db: &Dynamo, way: &str) -> Result<(), Contradiction> {
    let acknowledged =
        if way == "loop" { increment(&db.client(), way).await } else { increment_with_table(&store(db), way).await };
    let changes = Changes::default();
    if acknowledged {
        changes.acknowledged(way, 1);
    } else {
        changes.unknown(way, 1);
    }
    db.settle().await;
    changes.check(&db.log(), |id| db.number(TABLE, id, "n"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let db = Dynamo::new();
    scene(&db).await;
    for way in ["loop", "table"] {
        println!("the counter of the {way}:");
        match added(&db, way).await {
            Ok(()) => println!("added once, as it was acknowledged\n{}", db.log().about(way)),
            Err(contradiction) => println!("{contradiction}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{added, scene};
    use fencepost_test::Dynamo;

    #[tokio::test(start_paused = true)]
    async fn the_loop_adds_twice_and_the_table_once() {
        let db = Dynamo::new();
        scene(&db).await;
        let doubled = added(&db, "loop").await.expect_err("it adds twice").to_string();
        assert!(doubled.starts_with("loop holds 2, which is 1 more than the 1 acknowledged"), "{doubled}");
        added(&db, "table").await.expect("it adds once");
        assert_eq!(db.number("Counters", "table", "n"), 1);
    }
}
