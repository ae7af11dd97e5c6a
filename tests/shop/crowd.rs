//! Many clients at one shop: no item is sold twice or lost, at any moment. One product is as fast as a thousand.

use super::world::{Shop, TABLES, order, order_id};
use crate::harness::engine::{Engine, number};
use crate::harness::faults::{Broken, Network, Rates, network_that_breaks};
use crate::harness::functions::{ORDERS, PRODUCTS};
use crowds::orders::{CLIENTS, Outcome, Scene, Way, play};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

const LOSSES: Rates = Rates {
    dropped: 20,
    answer_lost: 40,
    applied_500: 40,
    refused_500: 10,
    held: 0,
    second_copy: 20,
    throttled: 10,
    transaction_conflict: 50,
    denied: 0,
    frozen: 0,
    in_progress: 0,
    mismatch: 0,
    tokens_forgotten: 50,
    mixed_reasons: 50,
    unprocessed: 50,
    garbled: 40,
    copied_soon: 0,
    copied_last: 0,
};

/// Looks at these products and orders in one moment after each write, as long as it runs.
async fn watch(network: &Network, products: &[String], orders: &[String], check: impl Fn(&[Value], &[Value])) {
    let mut seen = 0;
    loop {
        let written = network.applied().len();
        if written > seen {
            seen = written;
            let (products, orders) = snapshot(&network.engine, products, orders);
            check(&products, &orders);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The rows of these products and of the present ones of these orders, at one moment.
fn snapshot(engine: &Engine, products: &[String], orders: &[String]) -> (Vec<Value>, Vec<Value>) {
    let of = |table, key| move |id| (table, key, id);
    let products = products.iter().map(String::as_str).map(of(PRODUCTS, "productId"));
    let count = products.len();
    let rows: Vec<_> = products.chain(orders.iter().map(String::as_str).map(of(ORDERS, "orderId"))).collect();
    let mut rows = engine.snapshot(&rows);
    let orders =
        rows.split_off(count).into_iter().filter(|row| !row.is_null() && row.get("_purgeAt").is_none()).collect();
    (rows, orders)
}

/// The ordered number of each product, without cancelled orders.
fn ordered(orders: &[Value]) -> BTreeMap<String, i64> {
    let mut ordered = BTreeMap::new();
    for order in orders.iter().filter(|order| order["status"]["S"] == "PENDING") {
        for line in order["lines"]["L"].as_array().expect("lines") {
            let id = line["M"]["productId"]["S"].as_str().expect("an id").to_owned();
            *ordered.entry(id).or_default() += number(&line["M"], "quantity");
        }
    }
    ordered
}

/// Asserts for each product that stock and orders add up to the total, with no stock below zero.
fn assert_constant(total: i64, products: &[Value], orders: &[Value]) {
    let ordered = ordered(orders);
    for product in products {
        let (id, stock) = (product["productId"]["S"].as_str().expect("an id"), number(product, "stock"));
        assert!(stock >= 0, "{stock} of {id}");
        let ordered = ordered.get(id).copied().unwrap_or_default();
        assert_eq!(ordered + stock, total, "{id}: {ordered} ordered and {stock} in stock");
    }
}

/// A few keys for orders: all orders fit into one snapshot. A refused client gives its key back.
struct Keys {
    free: Semaphore,
    keys: Mutex<Vec<String>>,
}

impl Keys {
    async fn take(&self) -> String {
        self.free.acquire().await.expect("never closed").forget();
        self.keys.lock().expect("no panic").pop().expect("one for each permit")
    }

    fn give_back(&self, key: String) {
        self.keys.lock().expect("no panic").push(key);
        self.free.add_permits(1);
    }
}

/// Buys one at a time until there is none left; the ids of the orders.
async fn buy_until_refused(shop: Shop, keys: Arc<Keys>) -> Vec<String> {
    let mut bought = Vec::new();
    loop {
        let key = keys.take().await;
        let answer = shop.settle(&order(&key, &[("mug", 1)])).await;
        if answer.status == 201 {
            bought.push(answer.order());
            continue;
        }
        let refused = answer.says(409, "insufficient_stock");
        assert_eq!(refused["lines"], json!([{"productId": "mug", "requested": 1, "available": 0}]));
        keys.give_back(key);
        return bought;
    }
}

#[tokio::test(start_paused = true)]
async fn of_90_in_stock_20_clients_order_exactly_90_also_with_answers_lost_and_no_moment_shows_more_or_fewer() {
    for rates in [Rates::default(), LOSSES] {
        let (engine, seed) = (Engine::embedded(TABLES), fastrand::u64(..));
        println!("seed {seed}");
        Shop::on(&engine).stock_up(&[("mug", 90)]).await;
        let network = network_that_breaks(&engine, rates, Broken::Nothing, Rng::with_seed(seed));
        let keys: Vec<_> = (0..99).map(|key| format!("key-{key}")).collect();
        let (product, orders) = (["mug".to_owned()], keys.iter().map(|key| order_id(key)).collect::<Vec<_>>());
        let keys = Arc::new(Keys { free: Semaphore::new(keys.len()), keys: Mutex::new(keys) });
        let (start, mut clients) = (Instant::now(), JoinSet::new());
        for _ in 0..20 {
            clients.spawn(buy_until_refused(Shop::over(&network, start), keys.clone()));
        }
        let bought = tokio::select! {
            bought = clients.join_all() => bought.concat(),
            () = watch(&network, &product, &orders, |products, orders| assert_constant(90, products, orders)) => vec![],
        };
        let distinct: BTreeSet<_> = bought.iter().collect();
        assert_eq!((bought.len(), distinct.len()), (90, 90));
        let (products, orders) = snapshot(&network.engine, &product, &orders);
        assert_eq!((orders.len(), number(&products[0], "stock")), (90, 0));
        assert_eq!(products[0]["status"]["S"], "out_of_stock");
        assert_constant(90, &products, &orders);
    }
}

/// The orders of each client.
const WANTED: usize = 30;
const HOP: Duration = Duration::from_millis(5);

fn orders(products: usize, seed: u64) -> Outcome {
    let scene = Scene { products, losses: false, transaction: Duration::ZERO, throttles: false };
    let outcome = play(Way::Fencepost, scene, WANTED, HOP, seed);
    let wanted = (CLIENTS * WANTED) as u64;
    assert_eq!((outcome.acknowledged, outcome.held), (wanted, wanted), "{products} products, seed {seed}");
    assert_eq!(outcome.taken, i64::try_from(wanted).expect("few"), "{products} products, seed {seed}");
    outcome
}

#[test]
fn orders_of_one_product_are_as_fast_as_orders_of_a_thousand() {
    let (hot, spread) = (orders(1, 0), orders(1000, 0));
    let each = f64::from(hot.requests) / f64::from(u32::try_from(CLIENTS * WANTED).expect("few"));
    let speed = spread.time.as_secs_f64() / hot.time.as_secs_f64();
    println!("{each:.2} requests each, {speed:.2} of the throughput over 1,000 products");
    assert!(each <= 2.2, "{each:.2} requests each");
    assert!(speed >= 0.9, "{speed:.2} of the throughput over 1,000 products");
}
