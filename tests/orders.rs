//! Products and orders together: `inventory` and `place-order` on one engine.

use crate::engine::{Engine, body_of, client_over, operation_of, response};
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::http::Response;
use fencepost::once::Once;
use fencepost::request::{Body, Request};
use fencepost::transact::Transactions;
use fencepost::{Call, Deadline, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const MOST: i64 = 1_000_000_000_000_000;

struct Shop {
    engine: Engine,
    inventory: inventory::App,
    orders: place_order::App,
}

#[derive(Debug)]
struct Answer(Response);

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(self.0.body().expect("a body")).expect("JSON")
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    /// What is shown with this status.
    fn shows(&self, status: u16) -> Value {
        assert_eq!(self.0.status(), status, "{self:?}");
        self.json()
    }

    /// What is said beside this status and this code.
    fn says(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.0.status(), self.0.outcome()), (status, code), "{self:?}");
        self.json()
    }

    fn id(&self) -> String {
        self.json()["orderId"].as_str().expect("an order").to_owned()
    }
}

impl Shop {
    async fn with(stocks: &[(&str, i64)]) -> Self {
        let tables = [("Products", "productId"), ("Orders", "orderId"), ("IdempotencyRecords", "recordId")];
        let engine = Engine::with_tables(&tables);
        let client = engine.client();
        let shop = Self::over(engine, &client);
        for (id, stock) in stocks {
            let product = json!({ "stock": stock, "lowStockAt": 5 });
            shop.send("PUT", &format!("/products/{id}"), &product, &[]).await.shows(201);
        }
        shop
    }

    /// Both functions, on the tables that are there, by this client.
    fn over(engine: Engine, client: &Client) -> Self {
        let once = Once::new(Transactions::new(client), Table::new(client, "IdempotencyRecords"));
        let inventory = inventory::App::new(Table::new(client, "Products"), once);
        let products = Table::new(client, "Products");
        let orders = place_order::App::new(Table::new(client, "Orders"), products, Transactions::new(client));
        Shop { engine, inventory, orders }
    }

    async fn send(&self, method: &str, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            body: Body { text, is_base64: false },
            caller: "shop".to_owned(),
            ..Request::default()
        };
        let call = Call::new(Deadline::within(Duration::from_secs(10)));
        let answer = if path.starts_with("/products") {
            Box::pin(inventory::handle(&self.inventory, &request, &call)).await
        } else {
            Box::pin(place_order::handle(&self.orders, &request, &call)).await
        };
        Answer(answer.unwrap_or_else(fencepost::http::Problem::into_response))
    }

    async fn place(&self, key: &str, lines: &[(&str, i64)]) -> Answer {
        let line = |(id, quantity): &(&str, i64)| json!({ "productId": id, "quantity": quantity });
        let lines: Vec<_> = lines.iter().map(line).collect();
        self.send("POST", "/orders", &json!({ "userId": "user-1", "lines": lines }), &[("idempotency-key", key)]).await
    }

    async fn cancel(&self, id: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("POST", &format!("/orders/{id}/cancellation"), &Value::Null, headers).await
    }

    async fn adjust(&self, id: &str, by: i64, headers: &[(&str, &str)]) -> Answer {
        self.send("POST", &format!("/products/{id}/adjustments"), &json!({ "by": by }), headers).await
    }

    /// Stock and status as they are shown.
    async fn stock(&self, id: &str) -> (i64, String) {
        let product = self.send("GET", &format!("/products/{id}"), &Value::Null, &[]).await.shows(200);
        let status = product["status"].as_str().expect("a status").to_owned();
        (product["stock"].as_i64().expect("a number"), status)
    }
}

fn stocked(stock: i64, status: &str) -> (i64, String) {
    (stock, status.to_owned())
}

#[tokio::test]
async fn a_product_is_created_shown_and_adjusted() {
    let shop = Shop::with(&[("a", 6)]).await;
    shop.send("PUT", "/products/a", &json!({ "stock": 1 }), &[]).await.says(409, "product_exists");
    let exists = shop.send("PUT", "/products/a", &json!({ "stock": 1 }), &[("if-none-match", "*")]).await;
    assert_eq!(exists.says(412, "version_conflict")["currentVersion"], 1);
    shop.engine.take_log();
    let adjusted = shop.adjust("a", -1, &[]).await;
    assert_eq!(shop.engine.take_counts(), (1, 1));
    let product = adjusted.shows(200);
    assert_eq!(
        (&product["stock"], &product["status"], &product["version"]),
        (&json!(5), &json!("low_stock"), &json!(2))
    );
    assert_eq!(shop.adjust("a", 0, &[]).await.shows(200), product);
    let short = shop.adjust("a", -6, &[]).await.says(409, "insufficient_stock");
    assert_eq!(short["lines"], json!([{ "productId": "a", "requested": 6, "available": 5 }]));
    assert_eq!(shop.adjust("a", MOST, &[]).await.says(409, "stock_limit_reached")["current"], 5);
    shop.adjust("b", 1, &[]).await.says(404, "product_not_found");
    let tag = adjusted.header("etag").expect("a tag").to_owned();
    shop.adjust("a", 1, &[("if-match", &tag)]).await.shows(200);
    shop.adjust("a", 1, &[("if-match", &tag)]).await.says(412, "version_conflict");
    assert_eq!(shop.stock("a").await, stocked(6, "in_stock"));
}

#[tokio::test]
async fn the_whole_range_of_stock_is_stored_and_read_again() {
    let shop = Shop::with(&[("a", MOST)]).await;
    assert_eq!(shop.stock("a").await.0, MOST);
    shop.adjust("a", -MOST, &[]).await.shows(200);
    assert_eq!(shop.stock("a").await, stocked(0, "out_of_stock"));
    shop.adjust("a", 100, &[]).await.shows(200);
    assert_eq!(shop.stock("a").await.0, 100);
}

#[tokio::test]
async fn an_adjustment_with_a_key_counts_once_and_is_answered_the_same_again() {
    let shop = Shop::with(&[("a", 6)]).await;
    let key = [("idempotency-key", "k-1")];
    let first = shop.adjust("a", -5, &key).await;
    assert_eq!(first.shows(200)["stock"], 1);
    shop.adjust("a", 10, &[]).await.shows(200);
    let again = shop.adjust("a", -5, &key).await;
    assert_eq!((again.0.body(), again.header("etag")), (first.0.body(), first.header("etag")));
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    shop.adjust("a", -4, &key).await.says(422, "idempotency_key_reused");
    assert_eq!(shop.stock("a").await.0, 11);
    shop.adjust("a", -12, &[("idempotency-key", "k-2")]).await.says(409, "insufficient_stock");
    shop.adjust("a", -11, &[("idempotency-key", "k-2")]).await.shows(200);
    shop.adjust("b", 1, &[("idempotency-key", "k-3")]).await.says(404, "product_not_found");
}

#[tokio::test]
async fn an_order_takes_its_stock_once_and_is_answered_the_same_again() {
    let shop = Shop::with(&[("a", 10), ("b", 2)]).await;
    shop.engine.take_log();
    let placed = shop.place("k-1", &[("b", 2), ("a", 4)]).await;
    let operations: Vec<_> = shop.engine.take_log().into_iter().map(|asked| asked.operation).collect();
    assert_eq!(operations, ["BatchGetItem", "TransactWriteItems"]);
    let order = placed.shows(201);
    assert_eq!((&order["status"], &order["userId"]), (&json!("PENDING"), &json!("user-1")));
    assert_eq!(order["lines"], json!([{ "productId": "b", "quantity": 2 }, { "productId": "a", "quantity": 4 }]));
    let id = placed.id();
    assert_eq!((id.len(), placed.header("location")), (32, Some(format!("/orders/{id}").as_str())));
    assert_eq!(shop.stock("a").await, stocked(6, "in_stock"));
    assert_eq!(shop.stock("b").await, stocked(0, "out_of_stock"));
    let read = shop.send("GET", &format!("/orders/{id}"), &Value::Null, &[]).await;
    assert_eq!((read.shows(200), read.header("etag")), (order, placed.header("etag")));
    let again = shop.place("k-1", &[("b", 2), ("a", 4)]).await;
    assert_eq!((again.0.status(), again.0.body()), (201, placed.0.body()));
    assert_eq!(again.header("etag"), placed.header("etag"));
    assert_eq!((placed.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    for other in [&[("a", 4), ("b", 2)][..], &[("b", 2)], &[("b", 2), ("a", 5)], &[("c", 1)]] {
        shop.place("k-1", other).await.says(422, "idempotency_key_reused");
    }
    assert_eq!(shop.stock("a").await.0, 6);
}

#[tokio::test]
async fn an_order_is_refused_with_all_that_is_missing_and_its_key_stays_open() {
    let shop = Shop::with(&[("a", 10), ("b", 2)]).await;
    let missing = shop.place("k-1", &[("x", 1), ("b", 3), ("y", 1)]).await.says(409, "product_not_found");
    assert_eq!(missing["products"], json!(["x", "y"]));
    let short = shop.place("k-1", &[("a", 11), ("b", 3)]).await.says(409, "insufficient_stock");
    let line =
        |id: &str, requested, available| json!({ "productId": id, "requested": requested, "available": available });
    assert_eq!(short["lines"], json!([line("a", 11, 10), line("b", 3, 2)]));
    assert_eq!((shop.stock("a").await.0, shop.stock("b").await.0), (10, 2));
    shop.place("k-1", &[("a", 1)]).await.shows(201);
    shop.send("POST", "/orders", &json!({ "userId": "u", "lines": [] }), &[])
        .await
        .says(400, "idempotency_key_required");
}

#[tokio::test]
async fn a_cancellation_gives_the_stock_back_once() {
    let shop = Shop::with(&[("a", 10), ("b", 2)]).await;
    let placed = shop.place("k-1", &[("a", 4), ("b", 2)]).await;
    let id = placed.id();
    let cancelled = shop.cancel(&id, &[("idempotency-key", "c-1")]).await;
    let order = cancelled.shows(200);
    assert_eq!(order["status"], "CANCELLED");
    assert!(order["cancelledAt"].is_string());
    assert_eq!(shop.stock("b").await, stocked(2, "low_stock"));
    for headers in [&[][..], &[("idempotency-key", "c-2")]] {
        let again = shop.cancel(&id, headers).await;
        assert_eq!((again.shows(200), again.header("etag")), (order.clone(), cancelled.header("etag")));
    }
    assert_eq!((shop.stock("a").await.0, shop.stock("b").await.0), (10, 2));
    let replayed = shop.place("k-1", &[("a", 4), ("b", 2)]).await;
    assert_eq!((replayed.0.status(), replayed.0.body()), (201, placed.0.body()));
    assert_eq!(replayed.header("etag"), placed.header("etag"));
    shop.cancel("no-such-order", &[]).await.says(404, "order_not_found");
}

#[tokio::test]
async fn a_cancellation_honours_if_match() {
    let shop = Shop::with(&[("a", 10)]).await;
    let placed = shop.place("k-1", &[("a", 4)]).await;
    let (id, first) = (placed.id(), placed.header("etag").expect("a tag"));
    let cancelled = shop.cancel(&id, &[("if-match", first)]).await;
    cancelled.shows(200);
    assert_eq!(shop.cancel(&id, &[("if-match", first)]).await.says(412, "version_conflict")["currentVersion"], 2);
    shop.cancel(&id, &[("if-match", cancelled.header("etag").expect("a tag"))]).await.shows(200);
    shop.cancel(&id, &[("if-match", "*")]).await.shows(200);
}

#[tokio::test]
async fn a_cancellation_that_would_pass_the_limit_is_refused_and_changes_nothing() {
    let shop = Shop::with(&[("a", 10), ("b", MOST)]).await;
    let id = shop.place("k-1", &[("a", 4), ("b", 2)]).await.id();
    shop.adjust("b", 1, &[]).await.shows(200);
    assert_eq!(shop.cancel(&id, &[]).await.says(409, "stock_limit_reached")["products"], json!(["b"]));
    assert_eq!((shop.stock("a").await.0, shop.stock("b").await.0), (6, MOST - 1));
    shop.adjust("b", -1, &[]).await.shows(200);
    shop.cancel(&id, &[]).await.shows(200);
}

#[tokio::test]
async fn what_inventory_alone_knows_survives_an_order() {
    let shop = Shop::with(&[("a", 10)]).await;
    let before = shop.engine.row("Products", "productId", "a");
    shop.place("k-1", &[("a", 10)]).await.shows(201);
    let after = shop.engine.row("Products", "productId", "a");
    for name in ["createdAt", "lowStockAt", "productId"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    assert_eq!((&after["stock"], &after["status"]), (&json!({ "N": "0" }), &json!({ "S": "out_of_stock" })));
}

#[tokio::test]
async fn an_order_of_50_lines_is_one_transaction() {
    let ids: Vec<_> = (0..50).map(|number| format!("p-{number}")).collect();
    let stocks: Vec<_> = ids.iter().map(|id| (id.as_str(), 3)).collect();
    let shop = Shop::with(&stocks).await;
    let id = shop.place("k-1", &stocks).await.id();
    assert_eq!(shop.stock("p-49").await, stocked(0, "out_of_stock"));
    shop.cancel(&id, &[]).await.shows(200);
    assert_eq!(shop.stock("p-49").await, stocked(3, "low_stock"));
}

/// Answers as if a batch had read the orders before, and the products after, everything else was done.
#[derive(Debug)]
struct OrdersReadBefore(Engine);

impl HttpConnector for OrdersReadBefore {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let operation = operation_of(&request);
        let (status, mut answer) = self.0.answer(&operation, &body_of(&request));
        if operation == "BatchGetItem" {
            let mut read: Value = serde_json::from_str(&answer).expect("JSON");
            read["Responses"]["Orders"] = json!([]);
            answer = read.to_string();
        }
        HttpConnectorFuture::ready(response(status, answer))
    }
}

#[tokio::test]
async fn an_order_sent_twice_at_once_is_not_refused_for_the_stock_that_it_took_itself() {
    let shop = Shop::with(&[("a", 4)]).await;
    let placed = shop.place("k-1", &[("a", 4)]).await;
    let twin = Shop::over(shop.engine.clone(), &client_over(OrdersReadBefore(shop.engine.clone())));
    let again = twin.place("k-1", &[("a", 4)]).await;
    assert_eq!((again.0.status(), again.0.body()), (201, placed.0.body()));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    twin.place("k-1", &[("a", 5)]).await.says(422, "idempotency_key_reused");
    twin.place("k-2", &[("a", 1)]).await.says(409, "insufficient_stock");
}
