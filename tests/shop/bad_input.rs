//! Bad input: every kind is a 4xx problem that names the field, and `DynamoDB` is not asked.

use super::world::{Shop, adjustment, cancellation, of_product, order, product};
use crate::harness::events::{Event, load};
use serde_json::{Value, json};

/// An order under a good key with this body.
fn wrong(body: &str) -> Event {
    order("k-1", &[]).text(body)
}

fn with_line(line: &str) -> Event {
    wrong(&format!(r#"{{"userId":"user-1","lines":[{{"productId":"a","quantity":1}},{line}]}}"#))
}

fn with_quantity(quantity: &str) -> Event {
    with_line(&format!(r#"{{"productId":"b","quantity":{quantity}}}"#))
}

#[tokio::test]
async fn an_order_without_a_good_key_is_refused() {
    let shop = Shop::with(&[("a", 10)]).await;
    let good = order("k-1", &[("a", 1)]);
    let field = "header:idempotency-key";
    let missing = good.clone().without_header("idempotency-key");
    shop.bad_input(&missing, "idempotency_key_required", field).await;
    for key in ["", " ", "two words", "a, b", "é", &"x".repeat(256)] {
        for event in [good.clone(), adjustment("a", 1)] {
            shop.bad_input(&event.key(key), "invalid_idempotency_key", field).await;
        }
        shop.bad_input(&cancellation("order-1").key(key), "idempotency_key_unsupported", field).await;
    }
    for key in ["!", &"x".repeat(255)] {
        shop.place(key, &[("a", 1)]).await.shown(201);
    }
    assert_eq!(shop.stock("a").await.0, 8);
}

#[tokio::test]
async fn an_order_has_1_to_50_lines_of_distinct_products() {
    let shop = Shop::with(&[("a", 10)]).await;
    let lines = |count: usize| {
        let line = |number| json!({"productId": format!("p-{number}"), "quantity": 1});
        json!({"userId": "user-1", "lines": (0..count).map(line).collect::<Vec<_>>()}).to_string()
    };
    for count in [0, 51, 1000] {
        shop.bad_input(&wrong(&lines(count)), "invalid_value", "/lines").await;
    }
    shop.send(&wrong(&lines(50))).await.says(409, "product_not_found");
    shop.bad_input(&wrong(r#"{"userId":"user-1"}"#), "missing_field", "/lines").await;
    for other in ["null", "{}", "\"a\"", "1"] {
        let body = format!(r#"{{"userId":"user-1","lines":{other}}}"#);
        shop.bad_input(&wrong(&body), "invalid_type", "/lines").await;
    }
    shop.bad_input(&with_line(r#"{"productId":"a","quantity":2}"#), "invalid_value", "/lines/1/productId").await;
}

#[tokio::test]
async fn a_quantity_is_a_whole_number_from_1_to_a_million() {
    let shop = Shop::with(&[("a", 10)]).await;
    let field = "/lines/1/quantity";
    for quantity in ["0", "-0", "-1", "0.5", "1.5", "1e-3", "1000001", "1000000000000000000", "1e18", "-1e18", "1e30"] {
        shop.bad_input(&with_quantity(quantity), "invalid_value", field).await;
    }
    for quantity in ["1e400", "123456789012345678901234567890123456789"] {
        shop.bad_input(&with_quantity(quantity), "number_out_of_range", field).await;
    }
    for quantity in ["null", "\"1\"", "true", "[1]", "{}"] {
        shop.bad_input(&with_quantity(quantity), "invalid_type", field).await;
    }
    shop.bad_input(&with_line(r#"{"productId":"b"}"#), "missing_field", field).await;
}

#[tokio::test]
async fn what_an_order_does_not_know_is_refused() {
    let shop = Shop::with(&[("a", 10)]).await;
    let line = r#"{"productId":"a","quantity":1}"#;
    for (name, code) in [("status", "unknown_field"), ("orderId", "unknown_field"), ("_version", "reserved_name")] {
        let body = format!(r#"{{"userId":"user-1","lines":[{line}],"{name}":1}}"#);
        shop.bad_input(&wrong(&body), code, &format!("/{name}")).await;
    }
    let more = r#"{"productId":"b","quantity":1,"price":0}"#;
    shop.bad_input(&with_line(more), "unknown_field", "/lines/1/price").await;
    for other in ["1", "null", "\"b\"", "[]"] {
        shop.bad_input(&with_line(other), "invalid_type", "/lines/1").await;
    }
    shop.bad_input(&cancellation("order-1").text(r#"{"why":"late"}"#), "unknown_field", "/why").await;
}

#[tokio::test]
async fn whoever_orders_and_whatever_is_ordered_has_an_id() {
    let shop = Shop::with(&[("a", 10)]).await;
    for id in ["", ".", "..", "a b", "a/b", "a%2Fb", "ä", "a\n", &"x".repeat(129)] {
        let id = json!(id);
        let body = format!(r#"{{"userId":{id},"lines":[{{"productId":"a","quantity":1}}]}}"#);
        shop.bad_input(&wrong(&body), "invalid_id", "/userId").await;
        let line = format!(r#"{{"productId":{id},"quantity":1}}"#);
        shop.bad_input(&with_line(&line), "invalid_id", "/lines/1/productId").await;
    }
    shop.bad_input(&wrong(r#"{"lines":[]}"#), "missing_field", "/userId").await;
    shop.bad_input(&wrong(r#"{"userId":7,"lines":[]}"#), "invalid_type", "/userId").await;
    for id in ["a%2Fb", "a b"] {
        shop.bad_input(&adjustment(id, 1), "invalid_id", "path:productId").await;
        shop.bad_input(&cancellation(id), "invalid_id", "path:orderId").await;
    }
}

#[tokio::test]
async fn the_stock_of_a_product_is_a_whole_number_from_0_to_10_to_the_15() {
    let shop = Shop::with(&[]).await;
    let create = |body: &str| of_product(load("inventory-create"), "b").text(body);
    for number in ["-1", "0.5", "1000000000000001", "1e18", "-1e15"] {
        shop.bad_input(&create(&format!(r#"{{"stock":{number}}}"#)), "invalid_value", "/stock").await;
        let low = format!(r#"{{"stock":1,"lowStockAt":{number}}}"#);
        shop.bad_input(&create(&low), "invalid_value", "/lowStockAt").await;
    }
    for (body, code, field) in [
        ("{}", "missing_field", "/stock"),
        (r#"{"stock":"1"}"#, "invalid_type", "/stock"),
        (r#"{"stock":1,"lowStockAt":null}"#, "invalid_type", "/lowStockAt"),
        (r#"{"stock":1,"status":"in_stock"}"#, "unknown_field", "/status"),
    ] {
        shop.bad_input(&create(body), code, field).await;
    }
    for stock in [0, 1_000_000_000_000_000_i64] {
        let event = product(&format!("p-{stock}"), &json!({"stock": stock}));
        assert_eq!(shop.send(&event).await.shown(201)["stock"], stock);
    }
}

#[tokio::test]
async fn an_adjustment_says_by_how_many_and_nothing_else() {
    let shop = Shop::with(&[("a", 10)]).await;
    for (body, code, field) in [
        ("{}", "missing_field", "/by"),
        (r#"{"by":"1"}"#, "invalid_type", "/by"),
        (r#"{"by":null}"#, "invalid_type", "/by"),
        (r#"{"by":0.5}"#, "invalid_value", "/by"),
        (r#"{"by":1000000000000001}"#, "invalid_value", "/by"),
        (r#"{"by":-1000000000000001}"#, "invalid_value", "/by"),
        (r#"{"by":1e400}"#, "number_out_of_range", "/by"),
        (r#"{"by":1,"min":0}"#, "unknown_field", "/min"),
        ("[]", "invalid_type", ""),
        ("", "invalid_json", ""),
    ] {
        for event in [adjustment("a", 1), adjustment("a", 1).key("k-1")] {
            shop.bad_input(&event.text(body), code, field).await;
        }
    }
    assert_eq!(shop.stock("a").await.0, 10);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let shop = Shop::with(&[("a", 10)]).await;
    for body in ["", "{", "nul", r#"{"userId":"user-1",}"#] {
        shop.bad_input(&wrong(body), "invalid_json", "").await;
    }
    let mut without = wrong("");
    without.0["body"] = Value::Null;
    shop.bad_input(&without, "invalid_json", "").await;
}

#[tokio::test]
async fn another_media_type_and_a_body_that_is_too_large_are_refused() {
    let shop = Shop::with(&[("a", 10)]).await;
    shop.engine.take_log();
    for event in [order("k-1", &[("a", 1)]), adjustment("a", 1), of_product(load("inventory-create"), "b")] {
        let answer = shop.send(&event.clone().header("content-type", "text/plain")).await;
        assert_eq!(answer.says(415, "unsupported_media_type")["field"], "header:content-type");
        let answer = shop.send(&event.text(&" ".repeat(512 * 1024 + 1))).await;
        answer.says(413, "too_large");
    }
    assert_eq!(shop.engine.take_counts(), (0, 0));
}
