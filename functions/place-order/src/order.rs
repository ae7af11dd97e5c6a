//! An order, and what it does to the stock: pure decisions, told the time.

use crate::stock::{MAX_STOCK, Product};
use fencepost::http::{Problem, Resource};
use fencepost::timestamp::Timestamp;
use fencepost::{Decision, ItemVersion, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One order. Its id is the key.
///
/// Owner and lines never change, and cancellation only adds to the rest: so the first answer can be given again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Who ordered.
    pub user_id: String,
    /// What, in the order in which it was asked for.
    pub lines: Vec<Line>,
    /// What became of it.
    pub status: Status,
    /// When it was placed.
    pub created_at: Timestamp,
    /// When it was cancelled, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<Timestamp>,
}

/// How many of one product.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Which product.
    pub product_id: String,
    /// How many: 1 or more.
    pub quantity: i64,
}

/// What became of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// It was placed, and its stock is taken.
    Pending,
    /// It was cancelled, and its stock is back.
    Cancelled,
}

impl Record for Order {
    const PARTITION_KEY: &'static str = "orderId";
    const ATTRIBUTES: &'static [&'static str] = &["userId", "lines", "status", "createdAt", "cancelledAt"];
}

/// What a client asks for: the order that is to be placed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Who orders.
    pub user_id: String,
    /// What: distinct products.
    pub lines: Vec<Line>,
}

impl Order {
    /// Whether this is the order that was asked for: the same user and the same lines in the same order.
    #[must_use]
    pub fn is_of(&self, placement: &Placement) -> bool {
        self.user_id == placement.user_id && self.lines == placement.lines
    }

    /// The order as it was when it was placed.
    #[must_use]
    pub fn as_placed(&self) -> Self {
        Order { status: Status::Pending, cancelled_at: None, ..self.clone() }
    }
}

impl Resource for Order {
    const NOT_FOUND: (&'static str, &'static str) = ("order_not_found", "there is no order with this id");

    fn location(&self, id: &str) -> String {
        format!("/orders/{id}")
    }

    fn to_json(&self, id: &str, _at: ItemVersion) -> Value {
        let mut json = json!({
            "orderId": id,
            "userId": self.user_id,
            "lines": self.lines,
            "status": self.status,
            "createdAt": self.created_at,
        });
        if let Some(cancelled) = self.cancelled_at {
            json["cancelledAt"] = json!(cancelled);
        }
        json
    }
}

/// What is written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The order.
    pub order: Order,
    /// The product of each of its lines.
    pub products: Vec<Product>,
}

/// Why the state of things says no. Nothing is written then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There are no products with these ids.
    ProductNotFound(Vec<String>),
    /// More is asked for than there is.
    InsufficientStock(Vec<Short>),
    /// Of these products there would be more than [`MAX_STOCK`].
    StockLimitReached(Vec<String>),
}

/// A line that asks for more than there is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Short {
    /// Which product.
    pub product_id: String,
    /// How many are asked for.
    pub requested: i64,
    /// How many there are.
    pub available: i64,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ProductNotFound(products) => {
                Problem::refused("product_not_found", "there are no products with these ids").with("products", products)
            }
            Refusal::InsufficientStock(lines) => {
                Problem::refused("insufficient_stock", "there is less in stock than the order asks for")
                    .with("lines", json!(lines))
            }
            Refusal::StockLimitReached(products) => {
                Problem::refused("stock_limit_reached", format!("the stock of a product is at most {MAX_STOCK}"))
                    .with("products", products)
            }
        }
    }
}

/// Places an order: takes each line's quantity from its product, all or nothing. `products` are those of the lines.
///
/// # Errors
/// Missing products before short ones, and each time all of them: who corrects the order need not ask twice.
pub fn decide_place(placement: &Placement, products: &[Option<Product>], now: Timestamp) -> Result<Effect, Refusal> {
    let lines = known(&placement.lines, products)?;
    let short = |(line, product): &(&Line, &Product)| Short {
        product_id: line.product_id.clone(),
        requested: line.quantity,
        available: product.stock,
    };
    let products = change_all(&lines, |line, product| product.take(line.quantity, now))
        .map_err(|failed| Refusal::InsufficientStock(failed.iter().map(short).collect()))?;
    let Placement { user_id, lines } = placement.clone();
    let order = Order { user_id, lines, status: Status::Pending, created_at: now, cancelled_at: None };
    Ok(Effect { order, products })
}

/// Cancels an order: gives each line's quantity back to its product. One that is cancelled already stays as it is.
#[must_use]
pub fn decide_cancel(order: &Order, products: &[Option<Product>], now: Timestamp) -> Decision<Effect, Refusal> {
    if order.status == Status::Cancelled {
        return Decision::Keep;
    }
    let lines = match known(&order.lines, products) {
        Ok(lines) => lines,
        Err(refusal) => return Decision::Refuse(refusal),
    };
    match change_all(&lines, |line, product| product.put_back(line.quantity, now)) {
        Ok(products) => {
            let order = Order { status: Status::Cancelled, cancelled_at: Some(now), ..order.clone() };
            Decision::Put(Effect { order, products })
        }
        Err(failed) => {
            let full = failed.iter().map(|(line, _)| line.product_id.clone()).collect();
            Decision::Refuse(Refusal::StockLimitReached(full))
        }
    }
}

/// Each line with its product, if all are there.
fn known<'a>(lines: &'a [Line], products: &'a [Option<Product>]) -> Result<Vec<(&'a Line, &'a Product)>, Refusal> {
    let pairs = || lines.iter().zip(products);
    let missing: Vec<_> =
        pairs().filter(|(_, product)| product.is_none()).map(|(line, _)| line.product_id.clone()).collect();
    if missing.is_empty() {
        Ok(pairs().filter_map(|(line, product)| Some((line, product.as_ref()?))).collect())
    } else {
        Err(Refusal::ProductNotFound(missing))
    }
}

/// Every product changed, or else the lines where that cannot be.
fn change_all<'a>(
    lines: &[(&'a Line, &'a Product)],
    change: impl Fn(&Line, &Product) -> Option<Product>,
) -> Result<Vec<Product>, Vec<(&'a Line, &'a Product)>> {
    let mut changed = Vec::with_capacity(lines.len());
    let mut failed = Vec::new();
    for (line, product) in lines {
        match change(line, product) {
            Some(product) => changed.push(product),
            None => failed.push((*line, *product)),
        }
    }
    if failed.is_empty() { Ok(changed) } else { Err(failed) }
}

#[cfg(test)]
mod tests;
