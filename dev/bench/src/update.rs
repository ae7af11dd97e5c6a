//! Measures `update_with_retry` against `GetItem` and `UpdateItem` on the bare SDK, in turns. Each has its own client;
//! both use one row.
#![expect(clippy::disallowed_methods, reason = "measures on the wall clock, and writes as the bare SDK does")]

use crate::process::{runtime, start_engine};
use crate::table::{Outcome, figure, median, millis};
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use aws_sdk_dynamodb::{Client, Config};
use crowds::table::{self, Counter, KEY, NAME};
use fencepost::Store;
use std::time::Instant;

/// The updates of which the median is taken.
const ROUNDS: usize = 3000;

/// The medians of an update, against an engine of its own over HTTP.
pub fn table() -> Outcome<String> {
    runtime()?.block_on(async {
        let (_engine, endpoint) = start_engine().await?;
        Ok(measure(&endpoint).await)
    })
}

async fn measure(endpoint: &str) -> String {
    let own_client = || client(endpoint);
    let (bare, ours) = (own_client(), Store::new(&own_client()).table::<Counter>(NAME));
    table::create(&ours, "one").await;
    let (mut bare_times, mut our_times) = (Vec::new(), Vec::new());
    // The first rounds do not count.
    for round in 0..ROUNDS + ROUNDS / 10 {
        for turn in 0..2 {
            let begun = Instant::now();
            let is_bare = (round + turn) % 2 == 0;
            if is_bare {
                read_and_write(&bare).await;
            } else {
                assert!(table::raise(&ours, "one").await, "there is no other writer");
            }
            let times = if is_bare { &mut bare_times } else { &mut our_times };
            times.push(begun.elapsed());
        }
    }
    let [ours, bare] = [our_times, bare_times].map(|mut times| millis(median(&mut times[ROUNDS / 10..])));
    let about = format!("update over HTTP, median of {ROUNDS}, ms (target <= 1.05 x)");
    let row = [about, figure(ours, 3), figure(bare, 3), figure(ours / bare, 2)];
    crate::table::table(["what", "Fencepost", "GetItem + UpdateItem", "ratio"], [row])
}

/// A client with a pool of its own, without retries.
fn client(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(fencepost::lambda::https_client());
    Client::from_conf(config.build())
}

/// The requests of `update_with_retry` without another writer: a read and a write with the same condition.
async fn read_and_write(client: &Client) {
    let key = || AttributeValue::S("one".to_owned());
    let read = client.get_item().table_name(NAME).key(KEY, key()).consistent_read(true);
    let item = Box::pin(read.send()).await.expect("an answer").item.expect("an item");
    let number = |name: &str| item[name].as_n().expect("a number").parse::<u64>().expect("a whole one");
    let next = number("_version") + 1;
    let memory = item["_writes"].as_m().expect("a map");
    let before = |trace: &AttributeValue| trace.as_n().expect("a number").parse::<u64>().expect("a whole one");
    let old: Vec<_> = memory.iter().filter(|(_, trace)| before(trace) + 16 <= next).map(|(id, _)| id.clone()).collect();
    let removed = (0..old.len()).fold(String::new(), |removed, index| removed + &format!(", #writes.#p{index}"));
    let write = client
        .update_item()
        .table_name(NAME)
        .key(KEY, key())
        .update_expression(format!("SET #version = :next, #writes.#id = :at, #0 = :0 REMOVE #purge{removed}"))
        .condition_expression("#version = :at AND #incarnation = :incarnation")
        .expression_attribute_names("#version", "_version")
        .expression_attribute_names("#incarnation", "_incarnation")
        .expression_attribute_names("#writes", "_writes")
        .expression_attribute_names("#id", format!("{:010x}A", fastrand::u64(..1 << 40)))
        .expression_attribute_names("#purge", "_purgeAt")
        .expression_attribute_names("#0", "count")
        .expression_attribute_values(":at", item["_version"].clone())
        .expression_attribute_values(":incarnation", item["_incarnation"].clone())
        .expression_attribute_values(":next", AttributeValue::N(next.to_string()))
        .expression_attribute_values(":0", AttributeValue::N((number("count") + 1).to_string()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    let write = old
        .into_iter()
        .enumerate()
        .fold(write, |write, (index, id)| write.expression_attribute_names(format!("#p{index}"), id));
    Box::pin(write.send()).await.expect("there is no other writer");
}
