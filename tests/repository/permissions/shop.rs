//! What inventory and place-order do: every route, with a key and without, where it changes something and where not.

use super::drive::Drive;
use crate::harness::engine::Use;
use crate::harness::events::{Event, event_of};
use crate::harness::functions::Shop;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PRODUCT: &str = "GET /products/{productId}";

fn create(id: &str) -> Event {
    event_of("PUT /products/{productId}", id).json(&json!({"stock": 10}))
}

fn adjust(key: Option<&str>, by: i64) -> Event {
    let event = event_of("POST /products/{productId}/adjustments", "mug").json(&json!({"by": by}));
    key.into_iter().fold(event, Event::key)
}

fn place(key: &str, id: &str, quantity: u32) -> Event {
    let body = json!({"userId": "u", "lines": [{"productId": id, "quantity": quantity}]});
    event_of("POST /orders", "").key(key).json(&body)
}

fn cancel(id: &str) -> Event {
    event_of("POST /orders/{orderId}/cancellation", id).json(&json!({}))
}

/// What inventory and what place-order use.
pub async fn used() -> (BTreeSet<Use>, BTreeSet<Use>) {
    let mut shop = Drive::<Shop>::new();
    let product = event_of(PRODUCT, "mug");
    for (status, event) in [(404, &product), (201, &create("mug")), (409, &create("mug")), (200, &product)] {
        shop.send(status, event).await;
    }
    for key in [None, Some("more")] {
        shop.send(200, &adjust(key, 5)).await;
        shop.send(200, &adjust(key, 5)).await;
        shop.send(409, &adjust(Some("too-many"), -50)).await;
        shop.send(200, &adjust(Some("none"), 0)).await;
        shop.world.clock.set_forward(26 * 3_600_000);
    }
    shop.send(200, &adjust(Some("more"), 5)).await;

    shop.send(409, &place("none", "nothing", 1)).await;
    shop.send(409, &place("many", "mug", 1000)).await;
    let placed: Value = shop.send(201, &place("k", "mug", 2)).await;
    shop.send(201, &place("k", "mug", 2)).await;
    shop.send(422, &place("k", "mug", 3)).await;
    let id = placed["orderId"].as_str().expect("an id");
    shop.send(200, &event_of("GET /orders/{orderId}", id)).await;
    shop.send(200, &event_of("GET /orders", "").asking([("userId", "u")])).await;
    shop.send(200, &cancel(id)).await;
    shop.send(200, &cancel(id)).await;
    shop.send(404, &cancel("another")).await;

    shop.assert_succeeded(&["inventory", "place-order"]);
    (shop.uses_of("inventory"), shop.uses_of("place-order"))
}
