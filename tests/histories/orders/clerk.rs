//! One client. It draws its requests from the plan and sends them to both functions over a wire of its own.

use super::plan::{Plan, What};
use super::scene::{Own, Rule, Scene, Sent};
use super::wrong::Wrong;
use crate::harness::faults::{Freezing, Network};
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use crate::histories::scene::{Begun, Client};
use fencepost::Call;
use fencepost::http::{Body, Problem, Request};
use functions::{inventory, place_order};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

pub struct Clerk {
    client: Client<Own, Sent>,
    inventory: functions::inventory::App,
    orders: functions::place_order::App,
    wrong: Wrong,
}

impl Clerk {
    pub fn new(scene: &Arc<Scene>, network: &Arc<Network>, number: u64) -> Self {
        let client = Client::new(scene, network, number);
        let store = client.open();
        let inventory = functions::inventory::App::new(store.table(PRODUCTS), store.idempotency(RECORDS));
        let orders = functions::place_order::App::new(store.table(ORDERS), store.table(PRODUCTS));
        let wrong = Wrong::new(&store);
        Clerk { client, inventory, orders, wrong }
    }

    pub async fn work(self, requests: u64) {
        for _ in 0..requests {
            self.client.pause(80).await;
            if let Some(days) = &self.client.scene.days {
                days.rest().await;
            }
            let what = self.client.scene.plan.pick(|bound| self.client.pick(bound), &self.tags());
            let mut sent = self.send(what).await;
            // Some failures are repeated at once, the others by other clerks or after the storm.
            while sent.status >= 500 && self.client.below(3) == 0 {
                let Some(again) = sent.what.to_repeat() else { break };
                sent = self.send(again).await;
            }
        }
    }

    /// The tags of the orders in answers so far.
    fn tags(&self) -> Vec<(usize, String)> {
        let sent = self.client.scene.done.lock().expect("no panic");
        let tag = |sent: &Sent| match (&sent.what, &sent.etag) {
            (What::Place(order), Some(tag)) => Some((*order, tag.clone())),
            _ => None,
        };
        sent.iter().filter_map(tag).collect()
    }

    /// One invocation, as Lambda makes it.
    pub async fn send(&self, what: What) -> Sent {
        let Begun { number, began, call } = self.client.begin(1800);
        let handled = Freezing::new(&self.client.network, self.handle(&what, &call)).await;
        let response = handled.unwrap_or_else(Problem::into_response);
        let header = |name: &str| response.headers().iter().find(|(other, _)| *other == name);
        let sent = Sent {
            number,
            client: self.client.number,
            what,
            began,
            ended: Instant::now(),
            status: response.status(),
            body: response.body().unwrap_or_default().to_owned(),
            etag: header("etag").map(|(_, tag)| tag.clone()),
            replayed: header("idempotency-replayed").is_some(),
            conflicts: call.tally().conflicts,
        };
        self.client.scene.note(sent.clone());
        sent
    }

    async fn handle(&self, what: &What, call: &Call) -> Result<fencepost::http::Response, Problem> {
        let Own { plan, rule, .. } = &**self.client.scene;
        match (what, rule) {
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
