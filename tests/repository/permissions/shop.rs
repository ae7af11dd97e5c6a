//! What inventory and place-order do: every route, with a key and without, where it changes something and where not.

use crate::harness::engine::{Engine, Use, store};
use fencepost::http::Problem;
use fencepost::http::{Body, Request};
use fencepost::{Call, Deadline, Store};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

const TABLES: [(&str, &str); 3] =
    [("Products", "productId"), ("Orders", "orderId"), ("IdempotencyRecords", "recordId")];

struct Shop {
    inventory: inventory::App,
    orders: place_order::App,
    succeeded: BTreeSet<String>,
}

impl Shop {
    /// Sends a request and expects this status; gives what is shown.
    async fn send(&mut self, status: u16, route: &str, id: &str, key: Option<&str>, body: Value) -> Value {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        let path = template.replace("{productId}", id).replace("{orderId}", id);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = Request { method: method.to_owned(), path, ..Request::default() };
        request.body = Body { text, is_base64: false };
        request.headers.extend(key.map(|key| ("idempotency-key".to_owned(), key.to_owned())));
        let call = Call::new(Deadline::within(Duration::from_secs(10)));
        let answer = if template.starts_with("/products") {
            Box::pin(inventory::handle(&self.inventory, &request, &call)).await
        } else {
            Box::pin(place_order::handle(&self.orders, &request, &call)).await
        };
        let answer = answer.unwrap_or_else(Problem::into_response);
        assert_eq!(answer.status(), status, "{route} {id} {key:?} {body}: {answer:?}");
        if status < 300 {
            self.succeeded.insert(route.to_owned());
        }
        serde_json::from_str(answer.body().unwrap_or("null")).expect("JSON")
    }
}

/// What inventory and what place-order use.
pub async fn used() -> (BTreeSet<Use>, BTreeSet<Use>) {
    const CREATE: &str = "PUT /products/{productId}";
    const ADJUST: &str = "POST /products/{productId}/adjustments";
    const PLACE: &str = "POST /orders";
    const CANCEL: &str = "POST /orders/{orderId}/cancellation";
    let engine = Engine::with_tables(&TABLES);
    let (of_inventory, of_orders) = (engine.watched_apart(), engine.watched_apart());
    let hours = Arc::new(AtomicU64::new(500_000));
    let clock = hours.clone();
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_hours(clock.load(SeqCst));
    let store = store(&of_inventory.client(), now, || fastrand::u64(..));
    let inventory = inventory::App::new(store.table("Products"), store.idempotency("IdempotencyRecords"));
    let store = Store::new(&of_orders.client());
    let orders = place_order::App::new(store.table("Orders"), store.table("Products"));
    let mut shop = Shop { inventory, orders, succeeded: BTreeSet::new() };

    shop.send(404, "GET /products/{productId}", "mug", None, Value::Null).await;
    shop.send(201, CREATE, "mug", None, json!({"stock": 10})).await;
    shop.send(409, CREATE, "mug", None, json!({"stock": 10})).await;
    shop.send(200, "GET /products/{productId}", "mug", None, Value::Null).await;
    for key in [None, Some("more")] {
        shop.send(200, ADJUST, "mug", key, json!({"by": 5})).await;
        shop.send(200, ADJUST, "mug", key, json!({"by": 5})).await;
        shop.send(409, ADJUST, "mug", Some("too-many"), json!({"by": -50})).await;
        shop.send(200, ADJUST, "mug", Some("none"), json!({"by": 0})).await;
        hours.fetch_add(26, SeqCst);
    }
    shop.send(200, ADJUST, "mug", Some("more"), json!({"by": 5})).await;

    let order = |id: &str, quantity: u32| json!({"userId": "u", "lines": [{"productId": id, "quantity": quantity}]});
    shop.send(409, PLACE, "", Some("none"), order("nothing", 1)).await;
    shop.send(409, PLACE, "", Some("many"), order("mug", 1000)).await;
    let placed = shop.send(201, PLACE, "", Some("k"), order("mug", 2)).await;
    shop.send(201, PLACE, "", Some("k"), order("mug", 2)).await;
    shop.send(422, PLACE, "", Some("k"), order("mug", 3)).await;
    let id = placed["orderId"].as_str().expect("an id");
    shop.send(200, "GET /orders/{orderId}", id, None, Value::Null).await;
    shop.send(200, CANCEL, id, None, Value::Null).await;
    shop.send(200, CANCEL, id, None, Value::Null).await;
    shop.send(404, CANCEL, "another", None, Value::Null).await;

    let routes =
        inventory::ROUTES.iter().map(|(route, _)| *route).chain(place_order::ROUTES.iter().map(|(route, _)| *route));
    assert_eq!(shop.succeeded, routes.map(str::to_owned).collect(), "every route was seen to do its work");
    (of_inventory.uses(), of_orders.uses())
}
