//! One client: both functions over a wire of its own, and the requests that it makes of the plan.

use super::plan::{Plan, What};
use super::scene::{EPOCH, Rule, Scene, Sent};
use super::wrong::Wrong;
use crate::harness::faults::{Freezing, Network, Wire, store_on};
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use fencepost::http::{Body, Problem, Request};
use fencepost::{Call, Deadline};
use functions::{inventory, place_order};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub struct Clerk {
    scene: Arc<Scene>,
    network: Arc<Network>,
    number: u64,
    wire: Wire,
    inventory: functions::inventory::App,
    orders: functions::place_order::App,
    wrong: Wrong,
}

impl Clerk {
    pub fn new(scene: &Arc<Scene>, network: &Arc<Network>, number: u64) -> Self {
        let clock = scene.clocks.draw();
        let wire = clock.wire(network);
        let store = store_on(network, &wire.client(), move || clock.now(EPOCH));
        let inventory = functions::inventory::App::new(store.table(PRODUCTS), store.idempotency(RECORDS));
        let orders = functions::place_order::App::new(store.table(ORDERS), store.table(PRODUCTS));
        let wrong = Wrong::new(&store);
        Clerk { scene: scene.clone(), network: network.clone(), number, wire, inventory, orders, wrong }
    }

    pub async fn work(self, requests: u64) {
        for _ in 0..requests {
            sleep(Duration::from_millis(self.network.below(80))).await;
            if let Some(days) = &self.scene.days {
                days.rest().await;
            }
            let what = self.scene.plan.pick(|bound| self.below(bound), &self.tags());
            let mut sent = self.send(what).await;
            // Some repeat at once what failed; the rest is repeated by others, or when the storm is over.
            while sent.status >= 500 && self.below(3) == 0 {
                let Some(again) = sent.what.to_repeat() else { break };
                sent = self.send(again).await;
            }
        }
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.network.below(u64::try_from(bound).expect("small"))).expect("small")
    }

    /// The tags of the orders that somebody was told of.
    fn tags(&self) -> Vec<(usize, String)> {
        let sent = self.scene.sent.lock().expect("no panic");
        let tag = |sent: &Sent| match (&sent.what, &sent.etag) {
            (What::Place(order), Some(tag)) => Some((*order, tag.clone())),
            _ => None,
        };
        sent.iter().filter_map(tag).collect()
    }

    /// One invocation, as Lambda makes it.
    pub async fn send(&self, what: What) -> Sent {
        let number = self.scene.numbers.fetch_add(1, Ordering::Relaxed);
        self.wire.works_on(number);
        let began = Instant::now();
        let call = Call::new(Deadline::within(Duration::from_millis(200 + self.network.below(1800))));
        let handled = Freezing::new(&self.network, self.handle(&what, &call)).await;
        let response = handled.unwrap_or_else(Problem::into_response);
        let header = |name: &str| response.headers().iter().find(|(other, _)| *other == name);
        let sent = Sent {
            number,
            client: self.number,
            what,
            began,
            ended: Instant::now(),
            status: response.status(),
            body: response.body().unwrap_or_default().to_owned(),
            etag: header("etag").map(|(_, tag)| tag.clone()),
            replayed: header("idempotency-replayed").is_some(),
            conflicts: call.tally().conflicts,
        };
        self.scene.sent.lock().expect("no panic").push(sent.clone());
        sent
    }

    async fn handle(&self, what: &What, call: &Call) -> Result<fencepost::http::Response, Problem> {
        let plan = &self.scene.plan;
        match (what, self.scene.rule) {
            (What::Restock(restock), Rule::RecordOutside) => return self.wrong.restock(plan, *restock, call).await,
            (What::Place(order), Rule::GuardRetried) => return self.wrong.place(plan, *order, call).await,
            _ => {}
        }
        let request = request(plan, what);
        match what {
            What::Place(_) => place_order::place_order(&self.orders, &request, call).await,
            What::Cancel(..) => place_order::cancel_order(&self.orders, &request, call).await,
            What::Restock(_) | What::Adjust(..) => inventory::adjust_stock(&self.inventory, &request, call).await,
        }
    }
}

fn request(plan: &Plan, what: &What) -> Request {
    let adjustments =
        |product: usize| ("/products/{productId}/adjustments", Some(("productId", plan.products[product].clone())));
    let ((template, parameter), body, header) = match what {
        What::Place(order) => {
            let line = |(product, quantity): &(usize, i64)| json!({"productId": plan.products[*product], "quantity": quantity});
            let lines: Vec<_> = plan.orders[*order].iter().map(line).collect();
            let body = json!({"userId": Plan::user(*order), "lines": lines});
            (("/orders", None), body, Some(("idempotency-key", Plan::order_key(*order))))
        }
        What::Cancel(order, tag) => {
            let parameter = Some(("orderId", plan.order_id(*order)));
            (("/orders/{orderId}/cancellation", parameter), Value::Null, tag.clone().map(|tag| ("if-match", tag)))
        }
        What::Restock(restock) => {
            let (product, by) = plan.restocks[*restock];
            let key = ("idempotency-key", Plan::restock_key(*restock));
            (adjustments(product), json!({"by": by}), Some(key))
        }
        What::Adjust(product, by) => (adjustments(*product), json!({"by": by}), None),
    };
    let text = if body.is_null() { String::new() } else { body.to_string() };
    Request {
        route: format!("POST {template}"),
        path_parameters: parameter.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        headers: header.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        body: Body { text, is_base64: false },
        caller: plan.caller.clone(),
        ..Request::default()
    }
}
