//! Orders after a restore: their late copies, and their tags.

use crate::harness::events::{Event, load};
use crate::harness::functions::{Functions, ORDERS, Shop};
use crate::harness::restore::{Moment, SentWrites, rows};
use crate::harness::world::World;
use serde_json::json;

type TestShop = World<Shop>;

/// A shop with 10 of `mug-blue`.
async fn shop() -> TestShop {
    let shop = TestShop::new();
    let body = json!({"stock": 10, "lowStockAt": 2});
    shop.send(&load("inventory-create").of("productId", "mug-blue").json(&body)).await.shown(201);
    shop
}

/// An order of two mugs.
fn order() -> Event {
    load("place-order-place").key("k-1")
}

async fn stock(shop: &TestShop) -> i64 {
    let product = shop.send(&load("inventory-get").of("productId", "mug-blue")).await.shown(200);
    product["stock"].as_i64().expect("a number")
}

/// An order is one create and adds without a version. It names no incarnation.
#[tokio::test]
async fn a_late_copy_of_an_order_is_applied_in_tables_of_the_same_names_and_not_in_new_ones() {
    let shop = shop().await;
    let moment = Moment::of(&shop.engine);
    let sent = SentWrites::default();
    shop.reached_by(&sent.client(&shop.engine)).send(&order()).await.shown(201);

    let elsewhere = moment.elsewhere(Shop::TABLES);
    moment.follow_runbook(&elsewhere).await;
    assert!(!sent.deliver_last(&shop.engine), "the old tables have the order already");
    assert_eq!((rows(&elsewhere, ORDERS).len(), stock(&shop.moved_to(&elsewhere)).await), (0, 10));

    for runbook in [false, true] {
        moment.restore_all(&shop.engine);
        if runbook {
            moment.follow_runbook(&shop.engine).await;
        }
        assert!(sent.deliver_last(&shop.engine), "rows that are put back under the old names need the 15 minutes");
        assert_eq!((rows(&shop.engine, ORDERS).len(), stock(&TestShop::on(&shop.engine)).await), (1, 8));
    }
}

/// A cancellation is an update of the order and adds without a version: the order's incarnation ends it.
#[tokio::test]
async fn a_late_copy_of_a_cancellation_gives_stock_back_and_is_refused_with_the_runbook() {
    for runbook in [false, true] {
        let shop = shop().await;
        let placed = shop.send(&order()).await.shown(201);
        let moment = Moment::of(&shop.engine);
        let sent = SentWrites::default();
        let cancel = load("place-order-cancel").of("orderId", placed["orderId"].as_str().expect("an id"));
        shop.reached_by(&sent.client(&shop.engine)).send(&cancel).await.shown(200);
        moment.restore_all(&shop.engine);
        if runbook {
            moment.follow_runbook(&shop.engine).await;
        }
        assert_eq!(sent.deliver_last(&shop.engine), !runbook);
        assert_eq!(stock(&TestShop::on(&shop.engine)).await, if runbook { 8 } else { 10 });
    }
}

#[tokio::test]
async fn a_repeated_order_from_before_the_moment_is_shown_with_the_new_tag_and_a_later_one_is_placed_again() {
    let shop = shop().await;
    let first = shop.send(&order()).await;
    let moment = Moment::of(&shop.engine);
    shop.send(&order().key("k-2")).await.shown(201);
    let restored = moment.elsewhere(Shop::TABLES);
    moment.follow_runbook(&restored).await;
    let shop = shop.moved_to(&restored);
    assert_eq!(stock(&shop).await, 8);
    let again = shop.send(&order()).await;
    assert_eq!((again.shown(201), again.is_replay()), (first.json(), true));
    assert_ne!(again.etag(), first.etag());
    let shown =
        shop.send(&load("place-order-get").of("orderId", first.json()["orderId"].as_str().expect("an id"))).await;
    assert_eq!(again.etag(), shown.etag(), "the order was not changed since, so its tag is the current one");
    assert!(!shop.send(&order().key("k-2")).await.is_replay(), "its order was gone");
    assert_eq!(stock(&shop).await, 6);
}
