//! A product and the pure decision on its stock. Time is an argument.

use fencepost::http::{Id, Problem, Resource};
use fencepost::timestamp::Timestamp;
use fencepost::{Add, Decision, ItemVersion, Record};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The largest stock of a product. It is far below 2^53, which JSON readers keep exactly, and the sum of two fits too.
pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// The value of one product. Its id is the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

impl Record for Product {
    const PARTITION_KEY: &'static str = "productId";
    const ATTRIBUTES: &'static [&'static str] = &["stock", "lowStockAt", "status", "createdAt", "updatedAt"];
    // `place-order` writes the same table, so it has the same numbers. A test compares the two.
    const REMEMBERED_WRITES: u64 = 64;
    const ADD_WINDOW: u64 = 32;
}

/// The status of a product with this stock. `place-order` has the same rule, and a test compares the two.
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

impl Resource for Product {
    const NOT_FOUND: (&'static str, &'static str) = ("product_not_found", "there is no product with this id");
    const EXISTS: (&'static str, &'static str) = ("product_exists", "there is a product with this id");

    fn location(&self, id: &str) -> String {
        format!("/products/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> impl Serialize {
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

/// Why the state of the product refuses an adjustment. Nothing is written then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The adjustment takes more than the stock.
    InsufficientStock {
        /// The quantity that the adjustment takes.
        requested: i64,
        /// The stock.
        available: i64,
    },
    /// The result would be more than [`MAX_STOCK`].
    StockLimitReached {
        /// The stock.
        current: i64,
    },
}

impl Refusal {
    /// The problem that a client gets, for the product with this id.
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

/// Adds to the stock, or takes from it. Writes nothing if `by` is 0.
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

/// The same adjustment as an add, which needs no version.
#[must_use]
pub fn adjustment_as_add(product: &Product, by: i64, now: Timestamp) -> Add {
    let low = product.low_stock_at;
    let bands = [
        (i64::MIN..=0, Status::OutOfStock),
        (1..=low, Status::LowStock),
        (low.saturating_add(1)..=MAX_STOCK, Status::InStock),
    ];
    let add = Add::to("stock", by).within(0..=MAX_STOCK).bands("status", bands);
    add.only_if("lowStockAt", &low).set("updatedAt", &now)
}

#[cfg(test)]
mod tests;
