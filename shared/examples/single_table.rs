//! One table for customers, their orders and their notes: the single-table design.
//!
//! Run it with `cargo run -p fencepost --example single_table`. It needs nothing else.
//!
//! All items of a customer share a partition key. The start of the sort key names the kind of an item:
//!
//! | pk | sk | item |
//! |---|---|---|
//! | `customer#7` | `customer` | the customer |
//! | `customer#7` | `order#2026-03-07#1` | an order, sorted by its day |
//! | `customer#7` | `note#1` | a note |
//!
//! Each kind is a `Record` of its own over the same table. Their keys are made in one place: no two kinds share one. A
//! transaction changes several kinds together, a query lists one kind, and another one lists all.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Error, Index, Key, Reads, Record, Sort, Source, Store, Table, TableSchema};
use fencepost_test::Engine;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const TABLE: &str = "Shop";

/// The names of the key. A `Record` of this table has both.
const PK: &str = "pk";
const SK: &str = "sk";

/// A customer, with the number of orders that are open.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "pk", sort = "sk")]
struct Customer {
    name: String,
    open_orders: u64,
}

/// An order. While it is open, it has a place in the index of open orders.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "pk", sort = "sk")]
struct Order {
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
}

/// The partition of the index that an order is in.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
enum State {
    Open,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "pk", sort = "sk")]
struct Note {
    text: String,
}

/// Any item of a customer. It is only listed: a change goes through the table of its own kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Anything {
    Customer(Customer),
    Order(Order),
    Note(Note),
}

// An enum does not derive it.
impl Record for Anything {
    const PARTITION_KEY: &'static str = PK;
    const SORT_KEY: Option<&'static str> = Some(SK);
    const ATTRIBUTES: &'static [&'static str] = &["name", "open_orders", "total", "open_since", "state", "text"];
}

/// The open orders of all customers, by the day since when they are open. An order that is closed leaves it.
struct OpenOrders;

impl Index for OpenOrders {
    type Record = Order;
    type Shown = Order;
    const NAME: &'static str = "openOrders";
    const PARTITION_KEY: &'static str = "state";
    const SORT_KEY: Option<&'static str> = Some("open_since");
}

/// The keys of the table. No other place makes one.
fn partition(customer: u32) -> String {
    format!("customer#{customer}")
}

fn customer_key(customer: u32) -> Key {
    Key::from((partition(customer), "customer"))
}

/// Days are written so that their text has their order.
fn order_key(customer: u32, day: &str, number: u32) -> Key {
    Key::from((partition(customer), format!("order#{day}#{number:06}")))
}

fn note_key(customer: u32, number: u32) -> Key {
    Key::from((partition(customer), format!("note#{number:06}")))
}

/// The same table, once for each kind.
struct Shop {
    customers: Table<Customer>,
    orders: Table<Order>,
    notes: Table<Note>,
    anything: Table<Anything>,
}

impl Shop {
    fn new(store: &Store) -> Self {
        Shop {
            customers: store.table(TABLE),
            orders: store.table(TABLE),
            notes: store.table(TABLE),
            anything: store.table(TABLE),
        }
    }

    /// Places an order and counts it at its customer, both or neither.
    async fn place(&self, customer: u32, day: &str, number: u32, total: u64) -> Result<(), Source> {
        let mut reads = Reads::new();
        let owner = reads.item("customer", &self.customers, customer_key(customer));
        let order = reads.item("order", &self.orders, order_key(customer, day, number));
        let placed = self.orders.store().transact_with_retry(reads, |attempt| {
            if attempt.get(order)?.is_some() {
                return Ok(());
            }
            let owner_now = attempt.get(owner)?.ok_or(Error::Refused("there is no such customer"))?;
            let open_orders = owner_now.value.open_orders + 1;
            attempt.update_at(owner, &Customer { open_orders, ..owner_now.value })?;
            let value = Order { total, open_since: Some(day.to_owned()), state: Some(State::Open) };
            attempt.put_if_absent(order, &value)?;
            Ok(())
        });
        Ok(placed.await?)
    }

    /// The totals of a customer's orders of a month, oldest first. No other kind of item is read.
    async fn totals(&self, customer: u32, month: &str) -> Result<Vec<u64>, Source> {
        let of_month = Sort::starts_with(format!("order#{month}"));
        let orders = self.orders.query(partition(customer)).sort(of_month).items();
        Ok(orders.map_ok(|order| order.value.total).try_collect().await?)
    }

    /// Everything of a customer, in one query.
    async fn everything(&self, customer: u32) -> Result<Vec<Anything>, Source> {
        let items = self.anything.query(partition(customer)).items();
        Ok(items.map_ok(|item| item.value).try_collect().await?)
    }

    /// The oldest open orders of all customers, with their keys.
    async fn oldest_open(&self, count: u16) -> Result<Vec<Key>, Source> {
        let query = self.orders.query_index(OpenOrders, "Open").limit(count);
        let page = query.pages().next_page().await?.unwrap_or_default();
        Ok(page.items.into_iter().map(|order| order.key).collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let engine = with_table(); // a `DynamoDB` in this process
    let shop = Shop::new(&Store::new(&engine.client()));
    for (number, name) in [(7, "Ann"), (8, "Bob")] {
        let customer = Customer { name: name.to_owned(), open_orders: 0 };
        shop.customers.create(&customer_key(number), &customer).await?;
    }
    shop.notes.create(&note_key(7, 1), &Note { text: "prefers blue".to_owned() }).await?;
    for (customer, day, number, total) in
        [(7, "2026-03-07", 1, 30), (7, "2026-03-09", 2, 12), (8, "2026-03-01", 3, 5), (7, "2026-04-01", 4, 8)]
    {
        shop.place(customer, day, number, total).await?;
    }
    println!("Ann's orders of March: {:?}", shop.totals(7, "2026-03").await?);
    for item in shop.everything(7).await? {
        println!("of Ann: {item:?}");
    }
    println!("the oldest open orders: {:?}", shop.oldest_open(2).await?);
    Ok(())
}

/// An engine with the table, its key and the index of open orders, as `TableSchema` prints them for a template.
fn with_table() -> Engine {
    let schema = TableSchema::of::<Order>().with_index(OpenOrders);
    let template: Value = serde_json::from_str(&schema.to_cloudformation(TABLE)).expect("JSON");
    let mut table = template["Resources"]["ShopTable"]["Properties"].clone();
    table.as_object_mut().expect("properties").remove("TimeToLiveSpecification"); // a request of its own
    let engine = Engine::embedded(&[]);
    engine.raw("CreateTable", &table);
    engine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_query_lists_its_kind_and_a_closed_or_deleted_order_leaves_the_index() {
        let shop = Shop::new(&Store::new(&with_table().client()));
        for number in [7, 77] {
            let customer = Customer { name: format!("customer {number}"), open_orders: 0 };
            shop.customers.create(&customer_key(number), &customer).await.expect("a free key");
        }
        shop.notes.create(&note_key(7, 1), &Note { text: "x".to_owned() }).await.expect("a free key");
        for (customer, day, number) in [(7, "2026-03-09", 1), (77, "2026-03-07", 2), (7, "2026-03-08", 3)] {
            shop.place(customer, day, number, u64::from(number)).await.expect("placed");
        }
        assert_eq!(shop.totals(7, "2026-03").await.expect("totals"), [3, 1]);
        assert!(shop.totals(7, "2026-04").await.expect("totals").is_empty());
        let all = shop.everything(7).await.expect("items");
        assert!(
            matches!(&all[..], [Anything::Customer(customer), Anything::Note(_), Anything::Order(_), Anything::Order(_)]
            if customer.open_orders == 2)
        );
        let [second, third, first] =
            [order_key(77, "2026-03-07", 2), order_key(7, "2026-03-08", 3), order_key(7, "2026-03-09", 1)];
        assert_eq!(shop.oldest_open(9).await.expect("keys"), [second.clone(), third.clone(), first.clone()]);
        let close =
            |order: &Order| -> Result<_, ()> { Ok(Some(Order { open_since: None, state: None, ..order.clone() })) };
        shop.orders.update_with_retry(&second, close).await.expect("it is there");
        shop.orders.delete(&third).await.expect("it is there");
        assert_eq!(shop.oldest_open(9).await.expect("keys"), [first]);
        assert_eq!(shop.totals(77, "2026").await.expect("totals"), [2], "it is closed and still there");
    }
}
