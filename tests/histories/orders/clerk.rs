//! One client. It draws its requests from the plan and sends them to both functions over a wire of its own. [`Wrong`]
//! makes two common mistakes. Each breaks one rule, and the histories must notice.

use super::plan::{Own, Plan, Scene, Sent, What};
use crate::harness::faults::{Broken, Freezing, Network};
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use crate::histories::scene::{Begun, Client};
use fencepost::http::{Body, Items, Problem, Request, Response};
use fencepost::{Call, Error, Exists, Key, Reads, Record, Store, Table, UpdateError, Versioned};
use functions::inventory::adjustment::decide_adjust;
use functions::place_order::order::{Line, Order, Placement, decide_place};
use functions::product::Product;
use functions::{inventory, place_order};
use serde::{Deserialize, Serialize};
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
        let Own { plan, broken, .. } = &**self.client.scene;
        match (what, broken) {
            (What::Restock(restock), Broken::RecordOutside) => return self.wrong.restock(plan, *restock, call).await,
            (What::Place(order), Broken::GuardRetried) => return self.wrong.place(plan, *order, call).await,
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

pub struct Wrong {
    store: Store,
    notes: Table<Note>,
    orders: Table<Order>,
    products: Table<Product>,
}

/// The caller's own record of a restock.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "recordId")]
struct Note {
    answer: Response,
}

impl Wrong {
    pub fn new(store: &Store) -> Self {
        Wrong {
            store: store.clone(),
            notes: store.table(RECORDS),
            orders: store.table(ORDERS),
            products: store.table(PRODUCTS),
        }
    }

    /// Looks for the record, changes the stock, then writes the record: three requests. A repeat may come between any
    /// two.
    pub async fn restock(&self, plan: &Plan, restock: usize, call: &Call) -> Result<Response, Problem> {
        let record = plan.record_id(restock);
        let record = Key::from(record.as_str());
        if let Some(note) = self.notes.in_call(call).get(&record).await? {
            return Ok(note.value.answer.replayed());
        }
        let (product, by) = plan.restocks[restock];
        let now = || self.store.now();
        let product = Key::from(plan.products[product].as_str());
        let decide = |product: &Product| decide_adjust(product, by, now());
        let answer = match self.products.in_call(call).update_with_retry(&product, decide).await {
            Ok(product) => Response::ok(product.at, &json!({"stock": product.value.stock})),
            Err(UpdateError::Failed(failure)) => return Err(Problem::from_keyed(failure)),
            Err(UpdateError::NotFound | UpdateError::Refused(_)) => {
                return Err(Problem::refused("insufficient_stock", "there is less"));
            }
        };
        match self.notes.in_call(call).create(&record, &Note { answer: answer.clone() }).await {
            Ok(_) => Ok(answer),
            Err(Error::Refused(Exists(note))) => Ok(note.value.answer.replayed()),
            Err(Error::Failed(failure)) => Err(Problem::from_keyed(failure)),
        }
    }

    /// Takes a used order id for bad luck, and tries another.
    pub async fn place(&self, plan: &Plan, order: usize, call: &Call) -> Result<Response, Problem> {
        let line = |(product, quantity): &(usize, i64)| Line {
            product_id: plan.products[*product].clone(),
            quantity: *quantity,
        };
        let lines: Vec<_> = plan.orders[order].iter().map(line).collect();
        let placement = Placement { user_id: Plan::user(order), lines };
        let mut id = plan.order_id(order);
        loop {
            let mut reads = Reads::new();
            let item = reads.later("order", &self.orders, id.as_str());
            let product = |line: &Line| reads.item(&line.product_id, &self.products, line.product_id.as_str());
            let products: Vec<_> = placement.lines.iter().map(product).collect();
            let store = self.store.in_call(call);
            let placed = store.transact_with_retry(reads, |attempt| {
                if attempt.get(item)?.is_some() {
                    return Err(Error::Refused(None));
                }
                let mut known = Vec::new();
                for product in &products {
                    known.push(attempt.get(*product)?.map(|product| product.value));
                }
                let effect = match decide_place(&placement, &known, self.store.now()) {
                    Ok(effect) => effect,
                    Err(refusal) => return Err(Error::Refused(Some(Problem::from(refusal)))),
                };
                for (product, changed) in products.iter().zip(&effect.products) {
                    attempt.update_at(*product, changed)?;
                }
                let at = attempt.put_if_absent(item, &effect.order)?;
                Ok(Items::created(&id, &Versioned { value: effect.order, at }))
            });
            match placed.await {
                Ok(answer) => return Ok(answer),
                Err(Error::Refused(Some(problem))) => return Err(problem),
                Err(Error::Refused(None)) => id = format!("{:032x}", fastrand::u128(..)),
                Err(Error::Failed(failure)) => return Err(Problem::from_keyed(failure)),
            }
        }
    }
}
