//! Measures clients that order one product at once by `place-order`, with holds and without: the cost, and the orders in the
//! table against the acknowledged ones.
//!
//! Time is virtual, as in [`crate::crowd`], and a transaction takes the 20 ms of the test kit. With losses, one answer
//! in 50 is lost at each of two places. Between the table and the function, the connection breaks. Between the function
//! and its client, the answer vanishes; the client asks again.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::world::{ORDERS, PRODUCTS, call, dynamo, paused, store};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::Select;
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

/// A way to place an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The function `place-order`, without a place for holds: each order is a transaction.
    Transactions,
    /// The function `place-order` as it is.
    Holds,
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
                rng: seeds.fork(),
                losses,
                outcome: outcome.clone(),
            };
            tokio::task::spawn_local(async move {
                for order in 0..orders {
                    if newcomers {
                        client.app = app(way, &db, begun, client.rng.fork());
                    }
                    client.order(order).await;
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
    rng: fastrand::Rng,
    losses: bool,
    outcome: Rc<RefCell<Outcome>>,
}

impl Ordering {
    /// Asks for one order until the client hears its success.
    async fn order(&mut self, order: usize) {
        let begun = Instant::now();
        for ask in 0..ASKS {
            let is_placed = self.ask(order).await;
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
