//! Measures clients that order one product at once, by `place-order` with holds and without, and in the usual way: the cost,
//! and the orders in the table against the acknowledged ones.
//!
//! Time is virtual, as in [`crate::crowd`], and a transaction takes the 20 ms of the test kit. With losses, one answer
//! in 50 is lost at each of two places. Between the table and the function, the connection breaks. Between the function
//! and its client, the answer vanishes; the client asks again.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock, and writes as the code compared with does")]

use crate::crowd::full_jitter;
use crate::world::{ORDERS, PRODUCTS, call, dynamo, paused, store};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, Select, TransactWriteItem, Update};
use fencepost::http::{Body, Request};
use fencepost::{Store, Table, Timestamp};
use fencepost_test::{Capacity, Dynamo, Units};
use functions::order::Order;
use functions::place_order::{App, place_order};
use functions::product::{Product, new_product};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

const STOCK: i64 = 1_000_000_000;
/// How often a client asks for one order before it gives up.
const ASKS: usize = 20;
/// How often the usual way reads again after a cancelled transaction.
const RETRIES: u32 = 7;

/// A way to place an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The function `place-order`, without a place for holds: each order is a transaction.
    Transactions,
    /// The function `place-order` as it is.
    Holds,
    /// The bare SDK with its standard retries and tokens. Reads the product. Then one transaction writes the product,
    /// if it is still at the same version, and puts the order under a random id. After a cancellation, waits between 0
    /// and 2^n x 25 ms, at most 1 s, and reads again, at most 7 times.
    Usual,
}

/// The clients, and the disturbances. The product takes at most 1,000 write units a second, as on AWS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scene {
    /// The number of clients with orders at once. Each is a process of its own.
    pub clients: usize,
    /// The number of orders of each client.
    pub orders: usize,
    /// Whether each order comes from a process that has seen nothing before and never comes back.
    pub newcomers: bool,
    /// Whether answers are lost.
    pub losses: bool,
}

/// The result for all clients.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Orders with a success heard by their clients.
    pub acknowledged: u64,
    /// Orders in the table.
    pub held: u64,
    /// The stock taken. Each order takes 1.
    pub taken: i64,
    /// Orders given up by a client without knowledge of their fate.
    pub gave_up: u64,
    /// Requests to the tables.
    pub requests: u32,
    /// Their units at the table of products, and at that of orders without its index.
    pub units: [Units; 2],
    /// The time until the last client was done.
    pub time: Duration,
    /// How long each acknowledged order took.
    pub times: Vec<Duration>,
}

impl Outcome {
    fn count_requests(&mut self, db: &Dynamo) {
        let log = db.log();
        self.requests = u32::try_from(log.len()).unwrap_or(u32::MAX);
        self.units = [PRODUCTS, ORDERS].map(|table| log.units_of(table));
    }
}

/// What a million changes with these write and read units each cost on demand in N. Virginia, in dollars.
#[must_use]
pub fn dollars(write: f64, read: f64) -> f64 {
    write * 0.625 + read * 0.125
}

/// Lets the clients place their orders, each one after the other. All randomness comes from `seed`.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn play(way: Way, scene: Scene, seed: u64) -> Outcome {
    paused(played(way, scene, seed))
}

async fn played(way: Way, scene: Scene, seed: u64) -> Outcome {
    let Scene { clients, orders, newcomers, losses } = scene;
    let (db, mut seeds) = (dynamo(seed), fastrand::Rng::with_seed(seed));
    create(&db.engine().client(), 1).await;
    db.capacity(Capacity::of_items());
    if losses {
        db.lose_answer().with_probability(0.02);
    }
    let begun = Instant::now();
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let clients: Vec<_> = (0..clients)
        .map(|number| {
            let db = db.clone();
            let mut client = Ordering {
                number,
                app: app(way, &db, begun, seeds.fork()),
                sdk: db.client(),
                rng: seeds.fork(),
                losses,
                outcome: outcome.clone(),
            };
            tokio::task::spawn_local(async move {
                for order in 0..orders {
                    if newcomers {
                        client.app = app(way, &db, begun, client.rng.fork());
                    }
                    client.order(way, order).await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("no client panics");
    }
    let mut outcome = outcome.take();
    outcome.time = begun.elapsed();
    outcome.count_requests(&db);
    outcome.held = count(&db.engine().client(), ORDERS).await;
    outcome.taken = STOCK - db.number(PRODUCTS, &name(0), "stock");
    outcome
}

/// Lets one cold process place one order of so many products that nobody else wants, 1 of each. Then settles what is held, as
/// `settle-holds` does. The time is that of the order.
///
/// # Panics
/// If the engine fails, which it does not.
#[must_use]
pub fn quiet(way: Way, lines: usize) -> Outcome {
    paused(async move {
        let db = dynamo(1);
        create(&db.engine().client(), lines).await;
        db.count_units();
        let (begun, mut rng) = (Instant::now(), fastrand::Rng::with_seed(1));
        let app = app(way, &db, begun, rng.fork());
        let lines: Vec<_> = (0..lines).map(line).collect();
        let request = request("u-1", "order-1", &lines.join(","));
        Box::pin(place_order(&app, &request, &call())).await.expect("nobody is in its way");
        let mut outcome = Outcome { time: begun.elapsed(), ..Outcome::default() };
        if way == Way::Holds {
            let store = store(&db, begun, rng).with_time_limit(Duration::from_mins(15));
            let products: Table<Product> = store.table(PRODUCTS).held_for(&store.table::<Order>(ORDERS));
            products.settle_all().await.expect("nobody is in its way");
        }
        outcome.count_requests(&db);
        outcome
    })
}

/// A request for one order under this key.
fn request(user: &str, key: &str, lines: &str) -> Request {
    Request {
        route: "POST /orders".to_owned(),
        headers: BTreeMap::from([("idempotency-key".to_owned(), key.to_owned())]),
        caller: "bench".to_owned(),
        body: Body { text: format!(r#"{{"userId":"{user}","lines":[{lines}]}}"#), is_base64: false },
        ..Request::default()
    }
}

/// One client.
struct Ordering {
    number: usize,
    app: App,
    sdk: Client,
    rng: fastrand::Rng,
    losses: bool,
    outcome: Rc<RefCell<Outcome>>,
}

impl Ordering {
    /// Asks for one order until the client hears its success.
    async fn order(&mut self, way: Way, order: usize) {
        let begun = Instant::now();
        for ask in 0..ASKS {
            let is_placed = if way == Way::Usual { self.usual().await } else { self.ask(order).await };
            let is_heard = !(self.losses && self.rng.u8(..50) == 0);
            if is_heard && is_placed {
                let mut outcome = self.outcome.borrow_mut();
                outcome.acknowledged += 1;
                outcome.times.push(begun.elapsed());
                return;
            }
            sleep(Duration::from_millis(self.rng.u64(0..=100 << ask.min(5)))).await;
        }
        self.outcome.borrow_mut().gave_up += 1;
    }

    /// Calls the function. Each request for one order has the same key. Returns whether the order was placed.
    async fn ask(&self, order: usize) -> bool {
        let request = request(&format!("u-{}", self.number), &format!("order-{order}"), &line(0));
        Box::pin(place_order(&self.app, &request, &call())).await.is_ok()
    }

    /// Reads, and sends one transaction with a random id. Returns whether the order was placed.
    async fn usual(&mut self) -> bool {
        for conflicts in 0..=RETRIES {
            let key = AttributeValue::S(name(0));
            let read = self.sdk.get_item().table_name(PRODUCTS).key("productId", key).consistent_read(true);
            let Ok(read) = Box::pin(read.send()).await else { return false };
            let seen = read.item.expect("a product");
            let steps = steps(&seen["_version"], self.rng.u128(..), self.number).expect("complete steps");
            let written = self.sdk.transact_write_items().set_transact_items(Some(steps));
            let Err(error) = Box::pin(written.send()).await else { return true };
            if !error.as_service_error().is_some_and(TransactWriteItemsError::is_transaction_canceled_exception) {
                return false;
            }
            sleep(full_jitter(&mut self.rng, conflicts)).await;
        }
        false
    }
}

fn steps(version: &AttributeValue, id: u128, user: usize) -> Result<Vec<TransactWriteItem>, BuildError> {
    let text = AttributeValue::S;
    let one = AttributeValue::N("1".to_owned());
    let take = Update::builder()
        .table_name(PRODUCTS)
        .key("productId", text(name(0)))
        .update_expression("SET stock = stock - :one, #version = #version + :one")
        .condition_expression("#version = :version AND stock >= :one")
        .expression_attribute_names("#version", "_version")
        .expression_attribute_values(":version", version.clone())
        .expression_attribute_values(":one", one.clone());
    let line = [("productId".to_owned(), text(name(0))), ("quantity".to_owned(), one)];
    let put = Put::builder()
        .table_name(ORDERS)
        .item("orderId", text(format!("{id:032x}")))
        .item("userId", text(format!("u-{user}")))
        .item("lines", AttributeValue::L(vec![AttributeValue::M(line.into())]))
        .item("status", text("PENDING".to_owned()))
        .condition_expression("attribute_not_exists(orderId)");
    let step = TransactWriteItem::builder;
    Ok(vec![step().update(take.build()?).build(), step().put(put.build()?).build()])
}

fn app(way: Way, db: &Dynamo, begun: Instant, rng: fastrand::Rng) -> App {
    let store = store(db, begun, rng);
    let (orders, products) = (store.table(ORDERS), store.table(PRODUCTS));
    let products = if way == Way::Holds { products.held_for(&orders) } else { products };
    App::new(orders, products)
}

async fn create(client: &Client, products: usize) {
    let table = Store::new(client).table(PRODUCTS);
    let product = new_product(STOCK, 0, Timestamp::from(SystemTime::UNIX_EPOCH));
    for number in 0..products {
        table.create(&*name(number), &product).await.expect("a new product");
    }
}

/// The id of the product of this number.
fn name(product: usize) -> String {
    format!("p-{product}")
}

/// A line of an order for one of this product.
fn line(product: usize) -> String {
    format!(r#"{{"productId":"{}","quantity":1}}"#, name(product))
}

/// The number of rows in a table.
async fn count(client: &Client, table: &str) -> u64 {
    let scan = client.scan().table_name(table).select(Select::Count).consistent_read(true);
    let (mut pages, mut rows) = (scan.into_paginator().send(), 0);
    while let Some(page) = pages.next().await {
        rows += u64::try_from(page.expect("a page").count).expect("a count");
    }
    rows
}
