//! The orders of a user, page by page.

use super::world::{Shop, cancellation};
use crate::harness::events::{Event, load};
use serde_json::json;
use std::collections::BTreeSet;

fn order_of(user: &str, key: &str) -> Event {
    load("place-order-place").key(key).json(&json!({"userId": user, "lines": [{"productId": "mug", "quantity": 1}]}))
}

fn listing(query: &[(&str, &str)]) -> Event {
    load("place-order-list").asking(query.iter().copied())
}

/// One page: the ids of its orders with its cursor.
async fn page(shop: &Shop, query: &[(&str, &str)]) -> (Vec<String>, Option<String>) {
    let answer = shop.send(&listing(query)).await;
    assert_eq!((answer.status, answer.header("etag")), (200, None), "{answer:?}");
    let body = answer.json();
    let orders = body["orders"].as_array().expect("a list");
    let times: Vec<_> = orders.iter().map(|order| order["createdAt"].as_str().expect("a time")).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "newest first: {times:?}");
    let ids = orders.iter().map(|order| order["orderId"].as_str().expect("an id").to_owned()).collect();
    (ids, body["cursor"].as_str().map(str::to_owned))
}

/// All pages of a user, of at most so many orders.
async fn all(shop: &Shop, user: &str, limit: &str) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("userId", user), ("limit", limit)];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let (ids, next) = page(shop, &query).await;
        all.extend(ids);
        cursor = next;
        if cursor.is_none() {
            return all;
        }
    }
}

/// A shop in which `ann` has so many orders and `bob` has two. The ids of the orders of `ann`, newest first.
async fn shop_with(orders: usize) -> (Shop, Vec<String>) {
    let shop = Shop::with(&[("mug", 1000)]).await;
    let mut ids = Vec::new();
    for number in 0..orders {
        ids.push(shop.send(&order_of("ann", &format!("a-{number}"))).await.order());
    }
    for key in ["b-1", "b-2"] {
        shop.send(&order_of("bob", key)).await.shown(201);
    }
    ids.reverse();
    (shop, ids)
}

#[tokio::test]
async fn only_the_orders_of_a_user_are_listed_newest_first() {
    let (shop, ids) = shop_with(7).await;
    for limit in ["1", "3", "6", "7", "100"] {
        assert_eq!(all(&shop, "ann", limit).await, ids, "limit {limit}");
    }
    assert_eq!(page(&shop, &[("userId", "ann")]).await, (ids, None));
    assert_eq!(page(&shop, &[("userId", "carol")]).await, (vec![], None));
}

#[tokio::test]
async fn a_page_has_20_orders_unless_the_request_says_otherwise_and_costs_one_read() {
    let (shop, ids) = shop_with(23).await;
    shop.engine.take_log();
    let (listed, cursor) = page(&shop, &[("userId", "ann")]).await;
    assert_eq!((listed, shop.engine.take_counts()), (ids[..20].to_vec(), (1, 0)));
    let cursor = cursor.expect("three orders are left");
    let next = page(&shop, &[("userId", "ann"), ("limit", "100"), ("cursor", &cursor)]).await;
    assert_eq!(next, (ids[20..].to_vec(), None));
}

#[tokio::test]
async fn a_listed_order_is_the_order_as_it_is_shown() {
    let (shop, ids) = shop_with(2).await;
    shop.send(&cancellation(&ids[1])).await.shown(200);
    let listed = shop.send(&listing(&[("userId", "ann")])).await.json();
    for (at, id) in ids.iter().enumerate() {
        let order = shop.send(&super::world::shown_order(id)).await.json();
        assert_eq!(listed["orders"][at], order);
        assert_eq!(order["status"], ["PENDING", "CANCELLED"][at]);
    }
}

#[tokio::test]
async fn a_cursor_of_another_user_or_a_forged_one_is_bad_input() {
    let (shop, _) = shop_with(3).await;
    let mut cursors = BTreeSet::new();
    for user in ["ann", "bob"] {
        let (_, cursor) = page(&shop, &[("userId", user), ("limit", "1")]).await;
        cursors.insert((user, cursor.expect("another page")));
    }
    let refused = async |user: &str, cursor: &str| {
        let event = listing(&[("userId", user), ("cursor", cursor)]);
        shop.bad_input(&event, "invalid_cursor", "query:cursor").await;
    };
    for (user, cursor) in &cursors {
        refused(if *user == "ann" { "bob" } else { "ann" }, cursor).await;
        refused(user, &cursor[..cursor.len() - 1]).await;
    }
    for made_up in ["", "null", "é", &"A".repeat(8000)] {
        refused("ann", made_up).await;
    }
}
