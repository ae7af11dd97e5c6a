//! The part of a product that orders need: its stock and its status.

use fencepost::timestamp::Timestamp;
use fencepost::{Add, Record};
use serde::{Deserialize, Serialize};

/// The largest stock of a product.
pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// The attributes of a product that orders use. A write sends only changed attributes, so the others, which `inventory`
/// keeps there, stay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// The stock: 0 to [`MAX_STOCK`].
    pub stock: i64,
    /// The stock at or below which the product runs low.
    pub low_stock_at: i64,
    /// The status, which follows from the two numbers.
    pub status: Status,
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
    const ATTRIBUTES: &'static [&'static str] = &["stock", "lowStockAt", "status", "updatedAt"];
    // `inventory` writes the same table, so it has the same numbers. A test compares the two.
    const REMEMBERED_WRITES: u64 = 64;
    const ADD_WINDOW: u64 = 32;
}

/// The status of a product with this stock.
///
/// `inventory` has the same rule, because functions never import each other and `fencepost` knows no products. A test
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
    /// Takes this quantity from the product. `None` if its stock is less.
    #[must_use]
    pub fn take(&self, quantity: i64, now: Timestamp) -> Option<Self> {
        self.with_stock(self.stock.saturating_sub(quantity), now)
    }

    /// Gives this quantity back to the product. `None` if its stock would be more than [`MAX_STOCK`].
    #[must_use]
    pub fn put_back(&self, quantity: i64, now: Timestamp) -> Option<Self> {
        self.with_stock(self.stock.saturating_add(quantity), now)
    }

    /// The change from this product to `next` as an add, so that it conflicts with no other order.
    #[must_use]
    pub fn add_up_to(&self, next: &Product) -> Add {
        let low = self.low_stock_at;
        let bands = [
            (i64::MIN..=0, Status::OutOfStock),
            (1..=low, Status::LowStock),
            (low.saturating_add(1)..=MAX_STOCK, Status::InStock),
        ];
        let add = Add::to("stock", next.stock - self.stock).within(0..=MAX_STOCK).bands("status", bands);
        add.only_if("lowStockAt", &low).set("updatedAt", &next.updated_at)
    }

    fn with_stock(&self, stock: i64, now: Timestamp) -> Option<Self> {
        let status = status_of(stock, self.low_stock_at);
        (0..=MAX_STOCK).contains(&stock).then_some(Product { stock, status, updated_at: now, ..*self })
    }
}
