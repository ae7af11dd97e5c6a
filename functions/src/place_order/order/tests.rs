use super::*;
use crate::product::{self, new_product};
use fencepost::{Incarnation, Version};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// An order as clients see it, without its version.
fn shown(order: &Order) -> Value {
    let at = ItemVersion { version: Version::ABSENT.next(), incarnation: Incarnation::from_bytes([0; 8]) };
    json!(order.to_json("o-1", at))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_877_600 + seconds))
}

fn product(stock: i64) -> Product {
    new_product(stock, 5, at(0))
}

fn placement(lines: &[(&str, i64)]) -> Placement {
    let line = |(id, quantity): &(&str, i64)| Line { product_id: (*id).to_owned(), quantity: *quantity };
    Placement { user_id: "user-1".to_owned(), lines: lines.iter().map(line).collect() }
}

fn placed(lines: &[(&str, i64)], stocks: &[Option<i64>]) -> Result<Effect, Refusal> {
    let products: Vec<_> = stocks.iter().map(|stock| stock.map(product)).collect();
    decide_place(&placement(lines), &products, at(9))
}

fn order(lines: &[(&str, i64)]) -> Order {
    let stocks = vec![Some(MAX_STOCK); lines.len()];
    placed(lines, &stocks).expect("an order").order
}

#[test]
fn an_order_takes_its_quantities_and_the_status_of_each_product_follows() {
    let effect = placed(&[("a", 4), ("b", 10), ("c", 1)], &[Some(10), Some(10), Some(5)]).expect("an order");
    let products: Vec<_> = effect.products.iter().map(|p| (p.stock, p.status, p.updated_at)).collect();
    let expected = [(6, product::Status::InStock), (0, product::Status::OutOfStock), (4, product::Status::LowStock)];
    assert_eq!(products, expected.map(|(stock, status)| (stock, status, at(9))));
    let Order { user_id, lines, status, created_at, cancelled_at, placed_version: _ } = effect.order;
    assert_eq!((user_id.as_str(), status, created_at, cancelled_at), ("user-1", Status::Pending, at(9), None));
    assert_eq!(lines, placement(&[("a", 4), ("b", 10), ("c", 1)]).lines);
}

#[test]
fn every_short_line_is_named_and_nothing_is_taken() {
    let refusal = placed(&[("a", 4), ("b", 11), ("c", 6)], &[Some(10), Some(10), Some(0)]).expect_err("refused");
    let short = |id: &str, requested, available| Short { product_id: id.to_owned(), requested, available };
    assert_eq!(refusal, Refusal::InsufficientStock(vec![short("b", 11, 10), short("c", 6, 0)]));
}

#[test]
fn missing_products_are_named_before_short_lines_in_the_order_of_the_lines() {
    let refusal = placed(&[("z", 1), ("b", 11), ("a", 6)], &[None, Some(10), None]).expect_err("refused");
    assert_eq!(refusal, Refusal::ProductNotFound(vec!["z".to_owned(), "a".to_owned()]));
}

#[test]
fn the_same_order_has_the_same_user_and_the_same_lines_in_the_same_order() {
    let order = order(&[("a", 1), ("b", 2)]);
    assert!(order.is_of(&placement(&[("a", 1), ("b", 2)])));
    for lines in [&[("b", 2), ("a", 1)][..], &[("a", 1)], &[("a", 1), ("b", 3)], &[("a", 1), ("c", 2)]] {
        assert!(!order.is_of(&placement(lines)), "{lines:?}");
    }
    let other = Placement { user_id: "user-2".to_owned(), ..placement(&[("a", 1), ("b", 2)]) };
    assert!(!order.is_of(&other));
}

#[test]
fn a_cancelled_order_still_knows_its_first_answer() {
    let order = order(&[("a", 1)]);
    let Ok(Some(effect)) = decide_cancel(&order, &[Some(product(0))], at(20)) else { panic!("expected a write") };
    assert_eq!((effect.order.status, effect.order.cancelled_at), (Status::Cancelled, Some(at(20))));
    assert_eq!(shown(&effect.order)["cancelledAt"], json!(at(20)));
    assert_eq!(shown(&effect.order.as_placed()).to_string(), shown(&order).to_string());
}

#[test]
fn a_cancellation_gives_the_stock_back_and_the_status_of_each_product_follows() {
    let cancelled = decide_cancel(&order(&[("a", 2), ("b", 6)]), &[Some(product(0)), Some(product(0))], at(20));
    let Ok(Some(effect)) = cancelled else { panic!("expected a write") };
    let products: Vec<_> = effect.products.iter().map(|p| (p.stock, p.status, p.updated_at)).collect();
    assert_eq!(products, [(2, product::Status::LowStock, at(20)), (6, product::Status::InStock, at(20))]);
}

#[test]
fn stock_comes_back_once_whatever_became_of_the_products() {
    let order = Order { status: Status::Cancelled, cancelled_at: Some(at(20)), ..order(&[("a", 2)]) };
    for stock in [None, Some(0), Some(MAX_STOCK)] {
        assert_eq!(decide_cancel(&order, &[stock.map(product)], at(30)), Ok(None));
    }
}

#[test]
fn a_cancellation_is_refused_where_the_stock_cannot_take_it_back() {
    let order = order(&[("a", 2), ("b", 3), ("c", 4)]);
    let refused = |stocks: [Option<i64>; 3]| decide_cancel(&order, &stocks.map(|stock| stock.map(product)), at(20));
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        refused([Some(MAX_STOCK), Some(1), Some(MAX_STOCK - 3)]),
        Err(Refusal::StockLimitReached(ids(&["a", "c"])))
    );
    assert_eq!(refused([Some(MAX_STOCK), None, None]), Err(Refusal::ProductNotFound(ids(&["b", "c"]))));
    assert!(matches!(refused([Some(MAX_STOCK - 2), Some(1), Some(1)]), Ok(Some(_))));
}

#[test]
fn records_come_back_from_their_attributes_as_they_were() {
    let mut order = order(&[("a", 1), ("b", 1_000_000)]);
    assert_eq!(Order::decode(&order.encode().expect("attributes")).expect("an order"), order);
    order.cancelled_at = Some(at(5));
    order.placed_version = Some(2);
    let attributes = order.encode().expect("attributes");
    assert_eq!(attributes.len(), Order::ATTRIBUTES.len());
    assert!(attributes.keys().all(|name| Order::ATTRIBUTES.contains(&name.as_str())));
    assert_eq!(Order::decode(&attributes).expect("an order"), order);
}

#[test]
fn every_refusal_has_the_code_and_the_members_of_the_contract() {
    let short = Short { product_id: "a".to_owned(), requested: 4, available: 3 };
    for (refusal, code, member, value) in [
        (Refusal::ProductNotFound(vec!["a".to_owned()]), "product_not_found", "products", json!(["a"])),
        (Refusal::StockLimitReached(vec!["a".to_owned()]), "stock_limit_reached", "products", json!(["a"])),
        (
            Refusal::InsufficientStock(vec![short]),
            "insufficient_stock",
            "lines",
            json!([{"productId": "a", "requested": 4, "available": 3}]),
        ),
    ] {
        let response = Problem::from(refusal).into_response();
        let body: Value = serde_json::from_str(response.body().expect("a body")).expect("JSON");
        assert_eq!((response.status(), &body["code"], &body[member]), (409, &json!(code), &value));
    }
}
