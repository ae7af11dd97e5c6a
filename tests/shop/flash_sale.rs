//! A flash sale: real processes over real sockets, more buyers than items, and functions that are killed in the middle.

use super::world::{order, product};
use crate::harness::functions::{Functions, ORDERS, PRODUCTS, Shop};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::Server;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

const ITEMS: usize = 300;
const BUYERS: usize = 1_000;
/// The instances of the function that work at once.
const INSTANCES: usize = 8;
/// One of so many invocations is killed after its first to fourth request.
const KILLED: usize = 20;

/// The state of the sale. Instances take buyers from the queue, and put those back whom they have not answered.
struct Sale {
    server: Server,
    waiting: Mutex<VecDeque<usize>>,
    told: Mutex<BTreeMap<usize, (i64, Value)>>,
    kills: Mutex<usize>,
}

impl Sale {
    async fn start(&self, function: &'static str) -> FunctionProcess {
        FunctionProcess::start(&self.server, function, &[]).await
    }

    /// One instance, which is started again whenever it was killed.
    async fn work(self: Arc<Self>, instance: usize) {
        let mut process = self.start("place-order").await;
        for invocation in instance.. {
            let Some(buyer) = self.waiting.lock().expect("no panic").pop_front() else { return };
            let event = order(&format!("buyer-{buyer}"), &[("console", 1)]);
            let dies_at = self.server.answered() + 1 + invocation % 4;
            let death = self.server.until("the request at which it dies", |now| now.answered >= dies_at);
            let answer = tokio::select! {
                answer = process.answer(&event) => Some(answer),
                () = death, if invocation % KILLED == 0 => None,
            };
            match answer {
                Some(answer) if [201, 409].contains(&answer.status) && answer.json()["code"] != "stock_held" => {
                    self.told.lock().expect("no panic").insert(buyer, (answer.status, answer.json()));
                }
                Some(_) => {
                    sleep(Duration::from_secs(1)).await; // as Retry-After says
                    self.waiting.lock().expect("no panic").push_back(buyer);
                }
                None => {
                    process.end().await;
                    *self.kills.lock().expect("no panic") += 1;
                    process = self.start("place-order").await;
                    self.waiting.lock().expect("no panic").push_back(buyer);
                }
            }
        }
    }
}

/// Each buyer asks with one key until the answer is final. So a killed instance neither loses nor doubles an order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_buyers_three_hundred_get_an_item_although_functions_are_killed() {
    let waiting = Mutex::new((0..BUYERS).collect());
    let sale =
        Sale { server: Server::start(Shop::TABLES).await, waiting, told: Mutex::default(), kills: Mutex::default() };
    let sale = Arc::new(sale);
    let inventory = sale.start("inventory").await;
    inventory.answer(&product("console", &json!({"stock": ITEMS}))).await.shown(201);
    let instances: Vec<_> = (0..INSTANCES).map(|instance| tokio::spawn(Arc::clone(&sale).work(instance))).collect();
    for instance in instances {
        instance.await.expect("no instance panics");
    }
    let engine = &sale.server.engine;
    let held =
        engine.row(PRODUCTS, "productId", "console")["_holds"]["M"].as_object().is_some_and(|held| !held.is_empty());
    let swept = sale.start("settle-holds").await.invoke(json!({"detail-type": "Scheduled Event"})).await;
    // Buyers that find too little settle what they meet, so there is not always something left to settle.
    assert_eq!(swept, json!(format!("{} products settled, 0 left", u8::from(held))));

    let (told, kills) = (sale.told.lock().expect("no panic"), *sale.kills.lock().expect("no panic"));
    let mut placed: Vec<_> =
        told.values().filter(|(status, _)| *status == 201).map(|(_, order)| &order["orderId"]).collect();
    let sold_out = told.values().filter(|(_, problem)| problem["code"] == "insufficient_stock").count();
    println!("{} placed, {sold_out} sold out, {kills} killed", placed.len());
    assert_eq!((placed.len(), sold_out), (ITEMS, BUYERS - ITEMS));
    assert!(kills >= BUYERS / KILLED / 2, "{kills} killed");
    let rows = engine.raw("Scan", &json!({"TableName": ORDERS, "ConsistentRead": true}));
    let live = rows["Items"].as_array().expect("rows").iter().filter(|row| row["_buried"].is_null());
    let mut stored: Vec<_> = live.map(|row| &row["orderId"]["S"]).collect();
    stored.sort_by_key(|id| id.as_str());
    placed.sort_by_key(|id| id.as_str());
    assert_eq!(stored, placed, "each order of which a buyer was told is there, and no other");
    let console = engine.row(PRODUCTS, "productId", "console");
    assert_eq!((&console["stock"]["N"], &console["_holds"]["M"]), (&json!("0"), &json!({})));
}
