use super::*;
use crate::product::{Status, new_product};
use fencepost::Record;
use std::time::{Duration, SystemTime};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_877_600 + seconds))
}

fn adjusted(stock: i64, by: i64) -> Product {
    match decide_adjust(&new_product(stock, 5, at(0)), by, at(9)) {
        Ok(Some(product)) => product,
        other => panic!("expected a write, not {other:?}"),
    }
}

#[test]
fn an_adjustment_moves_stock_status_and_updated_at_and_nothing_else() {
    let product = adjusted(10, -5);
    let expected = Product { stock: 5, status: Status::LowStock, updated_at: at(9), ..new_product(10, 5, at(0)) };
    assert_eq!(product, expected);
    assert_eq!(adjusted(5, -5).status, Status::OutOfStock);
    assert_eq!(adjusted(0, 6).status, Status::InStock);
}

#[test]
fn stock_is_never_below_0_and_the_refusal_says_what_is_missing() {
    let decision = decide_adjust(&new_product(3, 0, at(0)), -4, at(9));
    assert_eq!(decision, Err(Refusal::InsufficientStock { requested: 4, available: 3 }));
}

#[test]
fn stock_is_never_above_its_limit() {
    assert_eq!(adjusted(0, MAX_STOCK).stock, MAX_STOCK);
    assert_eq!(adjusted(MAX_STOCK, -MAX_STOCK).stock, 0);
    let decision = decide_adjust(&new_product(MAX_STOCK, 0, at(0)), 1, at(9));
    assert_eq!(decision, Err(Refusal::StockLimitReached { current: MAX_STOCK }));
}

#[test]
fn adding_nothing_writes_nothing() {
    assert_eq!(decide_adjust(&new_product(3, 5, at(0)), 0, at(9)), Ok(None));
}

#[test]
fn a_product_comes_back_from_its_attributes_as_it_was() {
    let product = adjusted(7, -3);
    let attributes = product.encode().expect("attributes");
    assert_eq!(attributes.len(), Product::ATTRIBUTES.len());
    assert!(attributes.keys().all(|name| Product::ATTRIBUTES.contains(&name.as_str())));
    assert_eq!(Product::decode(&attributes).expect("a product"), product);
}

#[test]
fn every_refusal_has_the_code_and_the_members_of_the_contract() {
    let id = Id::parse("p-1", "path:productId").expect("an id");
    for (refusal, code, member, value) in [
        (
            Refusal::InsufficientStock { requested: 4, available: 3 },
            "insufficient_stock",
            "lines",
            json!([{"productId": "p-1", "requested": 4, "available": 3}]),
        ),
        (Refusal::StockLimitReached { current: 8 }, "stock_limit_reached", "current", json!(8)),
    ] {
        let response = refusal.problem(&id).into_response();
        let body: serde_json::Value = serde_json::from_str(response.body().expect("a body")).expect("JSON");
        assert_eq!((response.status(), &body["code"], &body[member]), (409, &json!(code), &value));
    }
}
