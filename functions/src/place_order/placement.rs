//! The pure decisions on an order and its stock, and the order as clients see it. Time is an argument.

use crate::operation::{ID, Schema, TIMESTAMP};
use crate::order::{Line, Order, Status};
use crate::product::{MAX_STOCK, Product};
use fencepost::http::{Problem, Resource};
use fencepost::{Index, ItemVersion, Timestamp};
use serde::Serialize;
use serde_json::json;

/// The most lines of an order. With the order itself, they stay far below the 100 items of a transaction.
pub const MAX_LINES: usize = 50;
/// The largest quantity of one line.
pub const MAX_QUANTITY: i64 = 1_000_000;

/// The orders of a user by the time at which they were placed. Both attributes never change.
#[derive(Debug)]
pub struct ByUser;

impl Index for ByUser {
    type Record = Order;
    type Shown = Order;
    const NAME: &'static str = "byUser";
    const PARTITION_KEY: &'static str = "userId";
    const SORT_KEY: Option<&'static str> = Some("createdAt");
}

/// A request to place an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The id of the user who orders.
    pub user_id: String,
    /// The lines, each with another product.
    pub lines: Vec<Line>,
}

impl Order {
    /// Whether this is the requested order: the same user with the same lines in the same order.
    #[must_use]
    pub fn is_of(&self, placement: &Placement) -> bool {
        self.user_id == placement.user_id && self.lines == placement.lines
    }

    /// The order in the state in which it was placed.
    #[must_use]
    pub fn as_placed(&self) -> Self {
        Order { status: Status::Pending, cancelled_at: None, ..self.clone() }
    }
}

/// The schema of lines.
pub const LINES: Schema = Schema::Named(
    "Lines",
    &Schema::With(
        r#"{"description":"Each line has another product."}"#,
        &Schema::List(
            1,
            Some(MAX_LINES),
            &Schema::Object(&[("productId", ID), ("quantity", Schema::Whole(1, MAX_QUANTITY))]),
        ),
    ),
);

/// The schema of an order.
pub const ORDER: Schema = Schema::Named(
    "Order",
    &Schema::Object(&[
        ("orderId", ID),
        ("userId", ID),
        ("lines", LINES),
        ("status", Schema::OneOf(&["PENDING", "CANCELLED"])),
        ("createdAt", TIMESTAMP),
        ("cancelledAt?", TIMESTAMP),
    ]),
);

impl Resource for Order {
    const NOT_FOUND: (&'static str, &'static str) = ("order_not_found", "there is no order with this id");

    fn location(&self, id: &str) -> String {
        format!("/orders/{id}")
    }

    fn to_json(&self, id: &str, _at: ItemVersion) -> impl Serialize {
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

/// The items that are written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The order.
    pub order: Order,
    /// The products of the lines, in the order of the lines.
    pub products: Vec<Product>,
}

/// Why the current state refuses the request. Nothing is written then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// These ids have no products.
    ProductNotFound(Vec<String>),
    /// These lines ask for more than the stock.
    InsufficientStock(Vec<Short>),
    /// The stock of these products would be more than [`MAX_STOCK`].
    StockLimitReached(Vec<String>),
}

/// A line that asks for more than the stock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Short {
    /// The id of the product.
    pub product_id: String,
    /// The requested quantity.
    pub requested: i64,
    /// The stock.
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

/// Places an order: takes the quantity of each line from its product, all or nothing. `products` are those of the
/// lines.
///
/// # Errors
/// [`Refusal::ProductNotFound`] comes before [`Refusal::InsufficientStock`]. Each names all lines concerned, so that
/// the client can correct the order in one step.
pub fn decide_place(placement: &Placement, products: &[Option<Product>], now: Timestamp) -> Result<Effect, Refusal> {
    let lines = known(&placement.lines, products)?;
    let short = |(line, product): &(&Line, &Product)| Short {
        product_id: line.product_id.clone(),
        requested: line.quantity,
        available: product.stock,
    };
    let products = change_all(&lines, |line, product| product.with_more(-line.quantity, now))
        .map_err(|failed| Refusal::InsufficientStock(failed.iter().map(short).collect()))?;
    let Placement { user_id, lines } = placement.clone();
    let order =
        Order { user_id, lines, status: Status::Pending, created_at: now, cancelled_at: None, placed_version: None };
    Ok(Effect { order, products })
}

/// Cancels an order: gives the quantity of each line back to its product. An order that is already cancelled stays as
/// it is.
///
/// # Errors
/// [`Refusal::ProductNotFound`], [`Refusal::StockLimitReached`].
pub fn decide_cancel(order: &Order, products: &[Option<Product>], now: Timestamp) -> Result<Option<Effect>, Refusal> {
    if order.status == Status::Cancelled {
        return Ok(None);
    }
    let lines = known(&order.lines, products)?;
    let full = |(line, _): &(&Line, &Product)| line.product_id.clone();
    let products = change_all(&lines, |line, product| product.with_more(line.quantity, now))
        .map_err(|failed| Refusal::StockLimitReached(failed.iter().map(full).collect()))?;
    let order = Order { status: Status::Cancelled, cancelled_at: Some(now), ..order.clone() };
    Ok(Some(Effect { order, products }))
}

/// Pairs each line with its product, if all products exist.
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

/// Changes every product, or returns the lines of the products that cannot change.
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
