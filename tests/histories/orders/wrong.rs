//! Two callers with common mistakes. Each breaks one rule, and the histories must notice.

use super::plan::Plan;
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use fencepost::http::{Items, Problem, Response};
use fencepost::{Call, Error, Exists, Key, Reads, Record, Store, Table, UpdateError, Versioned};
use functions::inventory::adjustment::decide_adjust;
use functions::place_order::order::{Line, Order, Placement, decide_place};
use functions::product::Product;
use serde::{Deserialize, Serialize};
use serde_json::json;

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
