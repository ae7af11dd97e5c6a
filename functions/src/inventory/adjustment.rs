//! The adjustment of a product, its pure decision and the product as clients see it. Time is an argument.

use crate::operation::{ID, Schema, TIMESTAMP, VERSION};
use crate::product::{MAX_STOCK, Product, STATUS, STOCK};
use fencepost::http::{Id, Problem, Resource};
use fencepost::{ItemVersion, Timestamp};
use serde::Serialize;
use serde_json::json;

/// The schema of a product.
pub const PRODUCT: Schema = Schema::Named(
    "Product",
    &Schema::Object(&[
        ("productId", ID),
        ("stock", STOCK),
        ("lowStockAt", STOCK),
        ("status", STATUS),
        ("version", VERSION),
        ("createdAt", TIMESTAMP),
        ("updatedAt", TIMESTAMP),
    ]),
);

/// The schema of a product with what is held of it.
pub const HELD_PRODUCT: Schema = Schema::Named(
    "HeldProduct",
    &Schema::Object(&[
        ("productId", ID),
        ("stock", Schema::With(r#"{"description":"What can be ordered now."}"#, &STOCK)),
        (
            "held",
            Schema::Json(
                r#"{"type":"integer","minimum":0,"description":"What orders have taken and the product was not told the end of. Most of them are placed. At most this much may come back to the stock."}"#,
            ),
        ),
        ("lowStockAt", STOCK),
        ("status", STATUS),
        ("version", VERSION),
        ("createdAt", TIMESTAMP),
        ("updatedAt", TIMESTAMP),
    ]),
);

/// A product with what is held of it, as clients see it.
#[derive(Serialize)]
pub struct HeldProduct<T> {
    /// The product.
    #[serde(flatten)]
    pub product: T,
    /// What orders have taken and the product was not told the end of.
    pub held: i128,
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
///
/// # Errors
/// [`Refusal::InsufficientStock`], [`Refusal::StockLimitReached`].
pub fn decide_adjust(product: &Product, by: i64, now: Timestamp) -> Result<Option<Product>, Refusal> {
    if by == 0 {
        return Ok(None);
    }
    match product.with_more(by, now) {
        Some(product) => Ok(Some(product)),
        None if product.stock.saturating_add(by) < 0 => {
            let requested = by.saturating_neg();
            Err(Refusal::InsufficientStock { requested, available: product.stock })
        }
        None => Err(Refusal::StockLimitReached { current: product.stock }),
    }
}
