//! The tables of the benchmarks, with the counter in one of them.

use dynoxide::Database;
use fencepost::{Call, Deadline, Record, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

/// The name of the table.
pub const NAME: &str = "Devices";
/// The partition key of the table, the same as in `device-state`.
pub const KEY: &str = "deviceId";
/// The table of idempotency keys in the environment of `device-state`. No benchmark uses it.
pub const RECORDS: &str = "IdempotencyRecords";
/// The table of products, with the key `productId`.
pub const PRODUCTS: &str = "Products";
/// The table of orders, with the key `orderId`.
pub const ORDERS: &str = "Orders";
/// The table of leases, with the key `leaseKey`.
pub const LEASES: &str = "Leases";

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

/// An in-memory engine with empty tables.
///
/// # Panics
/// If there is no memory for it.
#[must_use]
pub fn engine() -> Database {
    let db = Database::memory().expect("SQLite in memory");
    for (name, key) in [(NAME, KEY), (PRODUCTS, "productId"), (ORDERS, "orderId"), (LEASES, "leaseKey")] {
        let request = json!({
            "TableName": name,
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        db.create_table(serde_json::from_value(request).expect("a table")).expect("a new table");
    }
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
    raise_in(table, id, &call()).await
}

/// Raises the counter by one in this call. Returns whether this was acknowledged.
pub async fn raise_in(table: &Table<Counter>, id: &str, call: &Call) -> bool {
    let decide = |counter: &Counter| Ok::<_, Infallible>(Some(Counter { count: counter.count + 1 }));
    table.in_call(call).update_with_retry(id, decide).await.is_ok()
}
