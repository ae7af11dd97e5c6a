//! A product, which `inventory` and `place-order` change. Time is an argument.

use crate::function::{Environment, Variable};
use crate::operation::{ID, Schema};
use crate::order::{ORDERS_TABLE, Order};
use fencepost::http::Problem;
use fencepost::{Edit, Holds, Record, Settings, Source, Store, Table, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table of products.
pub const PRODUCTS_TABLE: Variable = Variable::table("PRODUCTS_TABLE", "the table of products");

/// The table of products, of which the orders in the environment hold parts.
pub fn products_in(store: &Store, environment: &Environment) -> Result<Table<Product>, Source> {
    let orders: Table<Order> = store.table(ORDERS_TABLE.required(environment)?);
    Ok(store.table(PRODUCTS_TABLE.required(environment)?).held_for(&orders))
}

/// The largest stock of a product. It is far below 2^53, up to which JSON readers are exact. The sum of two fits too.
pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// The schema of a stock.
pub const STOCK: Schema = Schema::Named("Stock", &Schema::Whole(0, MAX_STOCK));

/// The schema of a stock level.
pub const STATUS: Schema = Schema::OneOf(&["out_of_stock", "low_stock", "in_stock"]);

/// The schema of the lines that ask for more than the stock.
pub const SHORT_LINES: Schema = Schema::Named(
    "ShortLines",
    &Schema::List(
        1,
        None,
        &Schema::Object(&[
            ("productId", ID),
            ("requested", Schema::Json(r#"{"type":"integer"}"#)),
            ("available", STOCK),
        ]),
    ),
);

/// The code and the meaning of a refusal by stock that is held for others.
pub const HELD: (&str, &str) = (
    "stock_held",
    "the stock is held for orders that are not decided yet; nothing was applied, the same request may succeed",
);

/// The problem of a change that met stock which is held for others.
#[must_use]
pub fn naming_held_stock(problem: Problem) -> Problem {
    match problem.code() {
        "held" => Problem::refused(HELD.0, HELD.1).retry_after(Duration::from_secs(1)),
        _ => problem,
    }
}

/// The value of one product. Its id is the key. Many orders may take one product at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Record)]
#[record(
    key = "productId",
    settings = Settings::own().remembered_writes(28).edit_window(20),
    holds = Holds::of("stock").with(Product::with_status)
)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// The stock: 0 to [`MAX_STOCK`].
    pub stock: i64,
    /// The stock at or below which the product runs low.
    pub low_stock_at: i64,
    /// The status, which follows from the two numbers. It is stored for other readers of the table.
    pub status: Status,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last write.
    pub updated_at: Timestamp,
}

/// The stock level of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The stock is 0.
    OutOfStock,
    /// The stock is at least 1 and at most `low_stock_at`.
    LowStock,
    /// The stock is higher than `low_stock_at`.
    InStock,
}

/// The status of a product with this stock.
#[must_use]
pub fn status_of(stock: i64, low_stock_at: i64) -> Status {
    match stock {
        ..=0 => Status::OutOfStock,
        _ if stock <= low_stock_at => Status::LowStock,
        _ => Status::InStock,
    }
}

/// Creates a product at this time.
#[must_use]
pub fn new_product(stock: i64, low_stock_at: i64, now: Timestamp) -> Product {
    Product { stock, low_stock_at, status: status_of(stock, low_stock_at), created_at: now, updated_at: now }
}

impl Product {
    /// The product with so much more, or less. `None` if its stock would be below 0 or above [`MAX_STOCK`].
    #[must_use]
    pub fn with_more(&self, by: i64, now: Timestamp) -> Option<Self> {
        let stock = self.stock.saturating_add(by);
        let status = status_of(stock, self.low_stock_at);
        (0..=MAX_STOCK).contains(&stock).then_some(Product { stock, status, updated_at: now, ..*self })
    }

    /// The same change as an edit, which needs no version. So it conflicts with no other edit.
    pub fn edit(&self, by: i64, now: Timestamp) -> Edit<Product> {
        let product = Self::FIELDS;
        // What was held for an order and given back may have passed the largest stock. It can be taken all the same.
        let add = if by < 0 { product.stock.add(by, 0..) } else { product.stock.add(by, 0..=MAX_STOCK) };
        self.with_status(add).stamp(&product.updated_at, now)
    }

    /// An edit that adds to the stock, with the status that follows.
    fn with_status(&self, edit: Edit<Product>) -> Edit<Product> {
        let (product, low) = (Self::FIELDS, self.low_stock_at);
        let bands = [
            (i64::MIN..=0, Status::OutOfStock),
            (1..=low, Status::LowStock),
            (low.saturating_add(1)..=i64::MAX, Status::InStock),
        ];
        edit.bands(&product.status, &product.stock, bands).only_if(product.low_stock_at.is(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_out_of_stock_at_0_and_low_up_to_its_own_threshold() {
        for (stock, low_stock_at, status) in [
            (0, 0, Status::OutOfStock),
            (0, 5, Status::OutOfStock),
            (1, 0, Status::InStock),
            (1, 1, Status::LowStock),
            (5, 5, Status::LowStock),
            (6, 5, Status::InStock),
            (MAX_STOCK, MAX_STOCK, Status::LowStock),
        ] {
            assert_eq!(status_of(stock, low_stock_at), status, "{stock} of {low_stock_at}");
        }
    }
}
