//! The loop compared with, on the bare SDK. It applies a change twice if an answer is lost.
#![expect(clippy::disallowed_methods, reason = "writes as the loop compared with does")]

use crate::world::{ALLOWANCE, DEVICE_KEY, DEVICES};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Reads and writes conditionally. After a conflict, waits by full jitter, between 0 and 2^n x 25 ms, at most 1 s, and begins
/// again. Returns whether it was acknowledged.
pub(crate) async fn read_and_write(client: &Client, rng: &mut fastrand::Rng) -> bool {
    let begun = Instant::now();
    for conflicts in 0_u32.. {
        if let Ok(seen) = read(client).await
            && write(client, seen).await.is_ok()
        {
            return true;
        }
        let pause = Duration::from_millis(rng.u64(0..=(25 << conflicts.min(6)).min(1000)));
        if begun.elapsed() + pause > ALLOWANCE {
            break;
        }
        sleep(pause).await;
    }
    false
}

/// The version and the number, strongly consistent.
async fn read(client: &Client) -> Result<(u64, u64), SdkError<GetItemError>> {
    let key = AttributeValue::S("one".to_owned());
    let read = client.get_item().table_name(DEVICES).key(DEVICE_KEY, key).consistent_read(true);
    let item = Box::pin(read.send()).await?.item.expect("an item");
    let number = |name: &str| item[name].as_n().expect("a number").parse().expect("a whole one");
    Ok((number("_version"), number("count")))
}

/// Raises the number that was read at this version.
async fn write(client: &Client, (version, count): (u64, u64)) -> Result<(), SdkError<UpdateItemError>> {
    let number = |number: u64| AttributeValue::N(number.to_string());
    let write = client
        .update_item()
        .table_name(DEVICES)
        .key(DEVICE_KEY, AttributeValue::S("one".to_owned()))
        .update_expression("SET #count = :count, #version = :next")
        .condition_expression("#version = :version")
        .expression_attribute_names("#count", "count")
        .expression_attribute_names("#version", "_version")
        .expression_attribute_values(":count", number(count + 1))
        .expression_attribute_values(":next", number(version + 1))
        .expression_attribute_values(":version", number(version));
    Box::pin(write.send()).await.map(drop)
}
