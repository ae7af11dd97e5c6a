//! A product, and what may become of its stock: pure decisions, told the time.

use fencepost::http::{Id, Problem, Resource};
use fencepost::timestamp::Timestamp;
use fencepost::{Decision, ItemVersion, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most that there may be of a product. Far below what JSON readers keep exactly (2^53), and sums of two fit.
pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// What is known of one product. Its id is the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// How many there are: 0 to [`MAX_STOCK`].
    pub stock: i64,
    /// At how many it counts as running low.
    pub low_stock_at: i64,
    /// What follows from the two, kept for whoever reads the table.
    pub status: Status,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was written last.
    pub updated_at: Timestamp,
}

/// How well a product is stocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is none.
    OutOfStock,
    /// There is some, but no more than `low_stock_at`.
    LowStock,
    /// There is enough.
    InStock,
}

impl Record for Product {
    const PARTITION_KEY: &'static str = "productId";
    const ATTRIBUTES: &'static [&'static str] = &["stock", "lowStockAt", "status", "createdAt", "updatedAt"];
}

/// The status of a product with this much in stock. `place-order` has this rule too; a test compares them.
#[must_use]
pub fn status_of(stock: i64, low_stock_at: i64) -> Status {
    match stock {
        ..=0 => Status::OutOfStock,
        _ if stock <= low_stock_at => Status::LowStock,
        _ => Status::InStock,
    }
}

/// A new product, created at this time.
#[must_use]
pub fn new_product(stock: i64, low_stock_at: i64, now: Timestamp) -> Product {
    Product { stock, low_stock_at, status: status_of(stock, low_stock_at), created_at: now, updated_at: now }
}

impl Resource for Product {
    const NOT_FOUND: (&'static str, &'static str) = ("product_not_found", "there is no product with this id");
    const EXISTS: (&'static str, &'static str) = ("product_exists", "there is a product with this id");

    fn location(&self, id: &str) -> String {
        format!("/products/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> Value {
        json!({
            "productId": id,
            "stock": self.stock,
            "lowStockAt": self.low_stock_at,
            "status": self.status,
            "version": at.version.get(),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        })
    }
}

/// Why an adjustment is refused by the state of the product. Nothing is written then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// More is to be taken than there is.
    InsufficientStock {
        /// How much is to be taken.
        requested: i64,
        /// How much there is.
        available: i64,
    },
    /// There would be more than [`MAX_STOCK`].
    StockLimitReached {
        /// How much there is.
        current: i64,
    },
}

impl Refusal {
    /// What a client is told of it, about the product with this id.
    #[must_use]
    pub fn problem(self, id: &Id) -> Problem {
        match self {
            Refusal::InsufficientStock { requested, available } => {
                let line = json!({ "productId": id.as_str(), "requested": requested, "available": available });
                Problem::refused("insufficient_stock", "there is less in stock than is to be taken")
                    .with("lines", json!([line]))
            }
            Refusal::StockLimitReached { current } => {
                Problem::refused("stock_limit_reached", format!("the stock of a product is at most {MAX_STOCK}"))
                    .with("current", current)
            }
        }
    }
}

/// Adds to the stock, or takes from it. Nothing added writes nothing.
#[must_use]
pub fn decide_adjust(product: &Product, by: i64, now: Timestamp) -> Decision<Product, Refusal> {
    if by == 0 {
        return Decision::Keep;
    }
    let stock = product.stock.saturating_add(by);
    if stock < 0 {
        let requested = by.saturating_neg();
        return Decision::Refuse(Refusal::InsufficientStock { requested, available: product.stock });
    }
    if stock > MAX_STOCK {
        return Decision::Refuse(Refusal::StockLimitReached { current: product.stock });
    }
    let status = status_of(stock, product.low_stock_at);
    Decision::Put(Product { stock, status, updated_at: now, ..product.clone() })
}

#[cfg(test)]
mod tests;
