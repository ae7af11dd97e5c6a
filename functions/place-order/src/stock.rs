//! A product as far as orders go: its stock, and what follows from it.

use fencepost::Record;
use fencepost::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

/// The most that there may be of a product.
pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// What orders know of a product. A write sends what changed, so whatever else `inventory` keeps there stays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// How many there are: 0 to [`MAX_STOCK`].
    pub stock: i64,
    /// At how many it counts as running low.
    pub low_stock_at: i64,
    /// What follows from the two.
    pub status: Status,
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
    const ATTRIBUTES: &'static [&'static str] = &["stock", "lowStockAt", "status", "updatedAt"];
}

/// The status of a product with this much in stock.
///
/// `inventory` has this rule too: functions never import each other, and `fencepost` knows no products. A test
/// compares the two.
#[must_use]
pub fn status_of(stock: i64, low_stock_at: i64) -> Status {
    match stock {
        ..=0 => Status::OutOfStock,
        _ if stock <= low_stock_at => Status::LowStock,
        _ => Status::InStock,
    }
}

impl Product {
    /// The product after this much was taken from it; `None` where there is less.
    #[must_use]
    pub fn take(&self, quantity: i64, now: Timestamp) -> Option<Self> {
        self.with_stock(self.stock.saturating_sub(quantity), now)
    }

    /// The product after this much came back; `None` where that would be more than [`MAX_STOCK`].
    #[must_use]
    pub fn put_back(&self, quantity: i64, now: Timestamp) -> Option<Self> {
        self.with_stock(self.stock.saturating_add(quantity), now)
    }

    fn with_stock(&self, stock: i64, now: Timestamp) -> Option<Self> {
        let status = status_of(stock, self.low_stock_at);
        (0..=MAX_STOCK).contains(&stock).then_some(Product { stock, status, updated_at: now, ..*self })
    }
}
