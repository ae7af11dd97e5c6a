//! A user's program, in the usual way and with `fencepost`. `.ci/outside` runs its test in `tests/`.

use std::convert::Infallible;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Record, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};

/// Adds one: reads, writes at the version from the read, and starts again after a conflict. Tells whether the increment
/// was acknowledged.
pub async fn increment(client: &Client, id: &str) -> bool {
    let id = || AttributeValue::S(id.to_owned());
    loop {
        let read = client.get_item().table_name("Counters").key("id", id()).consistent_read(true).send().await;
        let Ok(Some(counter)) = read.map(|read| read.item) else { return false };
        let write = client.update_item().table_name("Counters").key("id", id());
        let write = write.update_expression("ADD n :one, version :one").condition_expression("version = :version");
        let write = write.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
        match write.expression_attribute_values(":version", counter["version"].clone()).send().await {
            Ok(_) => return true,
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {}
            Err(_) => return false,
        }
    }
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "id")]
pub struct Counter {
    pub n: u64,
}

pub async fn counter_at_zero(client: &Client, id: &str) -> Table<Counter> {
    let counters = Store::new(client).table::<Counter>("Counters");
    counters.create(id, &Counter { n: 0 }).await.expect("a free key");
    counters
}

/// The same with `Table`.
pub async fn increment_with_table(counters: &Table<Counter>, id: &str) -> bool {
    let decide = |counter: &Counter| Ok::<_, Infallible>(Some(Counter { n: counter.n + 1 }));
    match counters.update_with_retry(id, decide).await {
        Ok(_) => true,
        Err(UpdateError::Failed(failure)) if failure.is_outcome_unknown() => false,
        Err(other) => panic!("{other}"),
    }
}
