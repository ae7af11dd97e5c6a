//! The tables of the benchmarks, with the counter in one of them, and the loop compared with.
#![expect(clippy::disallowed_methods, reason = "writes as the loops compared with do")]

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Call, Deadline, Record, Table};
use fencepost_test::{Dynamo, Engine};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::time::Duration;

/// The name of the table.
pub const NAME: &str = "Devices";
/// The partition key of the table, the same as in `device-state`.
pub const KEY: &str = "deviceId";
/// The table of products, with the key `productId`.
pub const PRODUCTS: &str = "Products";
/// The table of orders, with the key `orderId`.
pub const ORDERS: &str = "Orders";

/// The time for a call, out of Lambda's 10 s.
pub const ALLOWANCE: Duration = Duration::from_millis(9750);

/// A number raised by one by every writer.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Counter {
    /// The number.
    pub count: u64,
}

impl Record for Counter {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["count"];
}

/// The tables, each with its partition key.
pub const TABLES: [(&str, &str); 3] = [(NAME, KEY), (PRODUCTS, "productId"), (ORDERS, "orderId")];

/// An engine in memory with empty tables.
#[must_use]
pub fn engine() -> Engine {
    Engine::embedded(&TABLES)
}

/// The same behind the network of the kit, with hops of this time.
#[must_use]
pub fn dynamo(seed: u64, hop: Duration) -> Dynamo {
    let db = Dynamo::with_seed(seed);
    for (table, key) in TABLES {
        db.create_table(table, key);
    }
    db.network().hops(hop);
    db
}

/// A call with the usual time of a Lambda invocation.
#[must_use]
pub fn call() -> Call {
    Call::new(Deadline::within(ALLOWANCE))
}

/// Creates the counter with the value 0.
///
/// # Panics
/// If it cannot be created.
pub async fn create(table: &Table<Counter>, id: &str) {
    table.create(id, &Counter { count: 0 }).await.expect("a new counter");
}

/// Raises the counter by one. Returns whether this was acknowledged.
pub async fn raise(table: &Table<Counter>, id: &str) -> bool {
    let decide = |counter: &Counter| Ok::<_, Infallible>(Some(Counter { count: counter.count + 1 }));
    table.in_call(&call()).update_with_retry(id, decide).await.is_ok()
}

/// Reads the version and the number on the bare SDK, strongly consistent.
pub(crate) async fn read(client: &Client) -> Result<(u64, u64), SdkError<GetItemError>> {
    let read = client.get_item().table_name(NAME).key(KEY, AttributeValue::S("one".to_owned())).consistent_read(true);
    let item = Box::pin(read.send()).await?.item.expect("an item");
    let number = |name: &str| item[name].as_n().expect("a number").parse().expect("a whole one");
    Ok((number("_version"), number("count")))
}

/// Raises the number that was read at this version, on the bare SDK. It applies a change twice if an answer is lost.
pub(crate) async fn write(client: &Client, (version, count): (u64, u64)) -> Result<(), SdkError<UpdateItemError>> {
    let number = |number: u64| AttributeValue::N(number.to_string());
    let write = client
        .update_item()
        .table_name(NAME)
        .key(KEY, AttributeValue::S("one".to_owned()))
        .update_expression("SET #count = :count, #version = :next")
        .condition_expression("#version = :version")
        .expression_attribute_names("#count", "count")
        .expression_attribute_names("#version", "_version")
        .expression_attribute_values(":count", number(count + 1))
        .expression_attribute_values(":next", number(version + 1))
        .expression_attribute_values(":version", number(version));
    Box::pin(write.send()).await.map(drop)
}
