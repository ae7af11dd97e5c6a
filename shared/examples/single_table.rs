//! **One table, many kinds.** The items of a customer share a partition. The start of the sort key names the kind. The
//! usual way writes keys by hand in many places until two kinds share one. It counts open orders in a second write,
//! which a crash leaves out and a lost answer repeats. Here, each kind is a `Record` of its own over one table. A
//! single place makes the keys. A transaction changes several kinds together. Run it with `cargo run -p fencepost
//! --example single_table`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Error, Key, Reads, Record, Sort, Store};
use fencepost_test::Dynamo;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "pk", sort = "sk")]
struct Customer {
    open_orders: u64,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "pk", sort = "sk")]
struct Order {
    cents: u64,
}

/// No other place makes a key. Days are written so that their text has their order.
fn customer_key(customer: u32) -> Key {
    (format!("customer#{customer}"), "customer").into()
}

fn order_key(customer: u32, day: &str, number: u32) -> Key {
    (format!("customer#{customer}"), format!("order#{day}#{number:06}")).into()
}

/// Places an order and counts it at its customer, both or neither, once for each key of an order.
async fn place(store: &Store, customer: u32, order: Key, cents: u64) -> Result<(), Error<&'static str>> {
    let mut reads = Reads::new();
    let owner = reads.item("customer", &store.table::<Customer>("Shop"), customer_key(customer));
    let order = reads.item("order", &store.table::<Order>("Shop"), order);
    let placed = store.transact_with_retry(reads, |attempt| {
        if attempt.get(order)?.is_none() {
            let owner_now = attempt.get(owner)?.ok_or(Error::Refused("there is no such customer"))?;
            attempt.update_at(owner, &Customer { open_orders: owner_now.open_orders + 1 })?;
            attempt.put_if_absent(order, &Order { cents })?;
        }
        Ok(())
    });
    placed.await
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    let keys = json!([{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]);
    let types = ["pk", "sk"].map(|name| json!({"AttributeName": name, "AttributeType": "S"}));
    let table = json!({"TableName": "Shop", "KeySchema": keys, "AttributeDefinitions": types, "BillingMode": "PAY_PER_REQUEST"});
    db.engine().raw("CreateTable", &table);
    let store = Store::new(&db.client());
    store.table("Shop").create(customer_key(7), &Customer { open_orders: 0 }).await.expect("a free key");
    db.engine().take_counts();
    db.lose_answer().of("TransactWriteItems").once();
    for (day, number, cents) in [("09", 2, 300), ("09", 2, 300), ("07", 1, 500), ("30", 3, 800)] {
        place(&store, 7, order_key(7, &format!("2026-03-{day}"), number), cents).await.expect("placed");
    }
    assert_eq!(db.engine().take_counts(), (4, 4), "three orders, a repeat of a write and a repeat of a request");
    let orders = store.table::<Order>("Shop").query("customer#7").sort(Sort::starts_with("order#2026-03-0")).items();
    let orders: Vec<_> = orders.map_ok(|order| order.value.cents).try_collect().await.expect("a list");
    assert_eq!(orders, [500, 300]);
    // Without a prefix, a query is about all kinds. To list them, take a `Record` with only `Option` fields.
    assert_eq!(store.table::<Order>("Shop").query("customer#7").count().await.expect("a number"), 4);
    println!("{}", db.log());
}

#[test]
fn an_order_whose_answer_is_lost_is_placed_and_counted_once() {
    main();
}
