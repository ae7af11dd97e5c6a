//! `inventory` and `place-order` on one engine, with their events.

use crate::harness::answers::Answer;
use crate::harness::events::{Event, load};
pub use crate::harness::events::{cancellation, order, order_id};
use crate::harness::functions;
use crate::harness::world::World;
use serde_json::{Value, json};

pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// Both functions and their engine. No two looks at the clock give the same time.
pub type Shop = World<functions::Shop>;

impl Shop {
    /// Both functions on an engine of their own with these products, which run low at 5.
    pub async fn with(stocks: &[(&str, i64)]) -> Self {
        let shop = Self::new();
        for (id, stock) in stocks {
            shop.send(&product(id, &json!({"stock": stock, "lowStockAt": 5}))).await.shown(201);
        }
        shop
    }

    pub async fn place(&self, key: &str, lines: &[(&str, i64)]) -> Answer {
        self.send(&order(key, lines)).await
    }

    /// Stock and status as they are shown.
    pub async fn stock(&self, id: &str) -> (i64, String) {
        let product = self.send(&load("inventory-get").of("productId", id)).await.shown(200);
        (product["stock"].as_i64().expect("a number"), product["status"].as_str().expect("a status").to_owned())
    }
}

/// Creates a product.
pub fn product(id: &str, body: &Value) -> Event {
    load("inventory-create").of("productId", id).json(body)
}

/// Adjusts a product, without a key.
pub fn adjustment(id: &str, by: i64) -> Event {
    load("inventory-adjust").of("productId", id).json(&json!({"by": by}))
}

pub fn shown_order(id: &str) -> Event {
    load("place-order-get").of("orderId", id)
}

impl Answer {
    /// The id of the order in the answer.
    pub fn order(&self) -> String {
        self.json()["orderId"].as_str().expect("an order").to_owned()
    }
}
