//! Every route and every answer of the two functions.

use super::world::{MAX_STOCK, Shop, adjustment, cancellation, order, order_id, product, shown_order};
use crate::harness::clients::{client_whose, lost};
use crate::harness::events::{Event, load};
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

fn stocked(stock: i64, status: &str) -> (i64, String) {
    (stock, status.to_owned())
}

#[tokio::test]
async fn a_product_is_created_shown_and_adjusted() {
    let shop = Shop::with(&[("a", 6)]).await;
    let created = shop.send(&product("c", &json!({"stock": 5}))).await.shown(201);
    assert_eq!((&created["lowStockAt"], &created["status"]), (&json!(0), &json!("in_stock")));
    shop.send(&product("a", &json!({"stock": 1}))).await.says(409, "product_exists");
    let exists = shop.send(&product("a", &json!({"stock": 1})).header("if-none-match", "*")).await;
    assert_eq!(exists.says(412, "version_conflict")["currentVersion"], 1);
    shop.engine.take_log();
    let adjusted = shop.send(&adjustment("a", -1)).await;
    assert_eq!(shop.engine.take_counts(), (0, 1), "it was seen when it was created");
    let product = adjusted.shown(200);
    assert_eq!(
        (&product["stock"], &product["status"], &product["version"]),
        (&json!(5), &json!("low_stock"), &json!(2))
    );
    assert!(product["updatedAt"].as_str() > product["createdAt"].as_str(), "{product}");
    assert_eq!(shop.send(&adjustment("a", 0)).await.shown(200), product);
    let short = shop.send(&adjustment("a", -6)).await.says(409, "insufficient_stock");
    assert_eq!(short["lines"], json!([{ "productId": "a", "requested": 6, "available": 5 }]));
    assert_eq!(shop.send(&adjustment("a", MAX_STOCK)).await.says(409, "stock_limit_reached")["current"], 5);
    shop.send(&adjustment("b", 1)).await.says(404, "product_not_found");
    let tag = adjusted.header("etag").expect("a tag").to_owned();
    shop.send(&adjustment("a", 1).header("if-match", &tag)).await.shown(200);
    shop.send(&adjustment("a", 1).header("if-match", &tag)).await.says(412, "version_conflict");
    assert_eq!(shop.stock("a").await, stocked(6, "in_stock"));
    shop.send(&adjustment("a", 2).key("k-1")).await.shown(200);
    shop.send(&adjustment("a", 3).key("k-1")).await.says(422, "idempotency_key_reused");
}

#[tokio::test]
async fn an_order_takes_its_stock_once_and_is_answered_the_same_again() {
    let shop = Shop::with(&[("a", 10), ("b", 2)]).await;
    let placed = shop.place("k-1", &[("b", 2), ("a", 4)]).await;
    let order = placed.shown(201);
    assert_eq!((&order["status"], &order["userId"]), (&json!("PENDING"), &json!("user-1")));
    assert_eq!(order["lines"], json!([{ "productId": "b", "quantity": 2 }, { "productId": "a", "quantity": 4 }]));
    let id = placed.order();
    assert_eq!((id.len(), placed.header("location")), (32, Some(format!("/orders/{id}").as_str())));
    assert_eq!(shop.stock("a").await, stocked(6, "in_stock"));
    assert_eq!(shop.stock("b").await, stocked(0, "out_of_stock"));
    let read = shop.send(&shown_order(&id)).await;
    assert_eq!((read.shown(200), read.header("etag")), (order.clone(), placed.header("etag")));
    for id in ["a", "b"] {
        let row = shop.engine.row(PRODUCTS, "productId", id);
        assert_eq!(row["updatedAt"]["S"], order["createdAt"], "of one moment");
    }
    let again = shop.place("k-1", &[("b", 2), ("a", 4)]).await;
    assert_eq!((again.status, &again.body), (201, &placed.body));
    assert_eq!(again.header("etag"), placed.header("etag"));
    assert_eq!((placed.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    for other in [&[("a", 4), ("b", 2)][..], &[("b", 2)], &[("b", 2), ("a", 5)], &[("c", 1)]] {
        shop.place("k-1", other).await.says(422, "idempotency_key_reused");
    }
    assert_eq!(shop.stock("a").await.0, 6);
}

#[tokio::test]
async fn the_key_of_an_order_decides_before_its_condition() {
    let shop = Shop::with(&[("a", 10)]).await;
    let event = order("k-1", &[("a", 1)]).header("if-none-match", "*");
    let (placed, again) = (shop.send(&event).await, shop.send(&event).await);
    assert_eq!((placed.status, again.status, &again.body), (201, 201, &placed.body));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(shop.stock("a").await.0, 9);
}

#[tokio::test]
async fn users_and_callers_do_not_share_their_keys() {
    let shop = Shop::with(&[("a", 10)]).await;
    let lines = [("a", 1)];
    let mine = order("k-1", &lines);
    let user_2 = mine.clone().text(r#"{"userId":"user-2","lines":[{"productId":"a","quantity":1}]}"#);
    let elsewhere = mine.clone().by("arn:aws:iam::123456789012:role/other");
    let subject = |subject: &str| {
        let claims = json!({"iss": "https://issuer.example.com/", "sub": subject});
        mine.clone().authorized(&json!({"jwt": {"claims": claims, "scopes": null}}))
    };
    let (ann, bob) = (subject("ann"), subject("bob"));
    let mut ids = BTreeSet::new();
    for event in [&mine, &user_2, &elsewhere, &ann, &bob, &order("k-2", &lines)] {
        let placed = shop.send(event).await;
        assert!(!placed.is_replay());
        ids.insert(placed.shown(201)["orderId"].to_string());
    }
    assert_eq!((ids.len(), shop.stock("a").await.0), (6, 4));
    for event in [&mine, &user_2, &elsewhere, &ann, &bob] {
        assert!(shop.send(event).await.is_replay());
    }
    assert_eq!(shop.stock("a").await.0, 4);
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
    shop.place("k-1", &[("a", 1)]).await.shown(201);
}

#[tokio::test]
async fn a_cancellation_gives_the_stock_back_once() {
    let shop = Shop::with(&[("a", 10), ("b", 2)]).await;
    let placed = shop.place("k-1", &[("a", 4), ("b", 2)]).await;
    let id = placed.order();
    shop.send(&cancellation(&id).key("c-1")).await.says(400, "idempotency_key_unsupported");
    let cancelled = shop.send(&cancellation(&id)).await;
    let order = cancelled.shown(200);
    assert_eq!(order["status"], "CANCELLED");
    assert!(order["cancelledAt"].is_string());
    assert_eq!(shop.stock("b").await, stocked(2, "low_stock"));
    let again = shop.send(&cancellation(&id).text(" { } ")).await;
    assert_eq!((again.shown(200), again.header("etag")), (order.clone(), cancelled.header("etag")));
    assert_eq!((shop.stock("a").await.0, shop.stock("b").await.0), (10, 2));
    let replayed = shop.place("k-1", &[("a", 4), ("b", 2)]).await;
    assert_eq!((replayed.status, &replayed.body), (201, &placed.body));
    assert_eq!(replayed.header("etag"), placed.header("etag"));
    shop.send(&cancellation("no-such-order")).await.says(404, "order_not_found");
}

#[tokio::test]
async fn a_cancellation_that_would_pass_the_limit_is_refused_and_changes_nothing() {
    let shop = Shop::with(&[("a", 10), ("b", MAX_STOCK)]).await;
    let id = shop.place("k-1", &[("a", 4), ("b", 2)]).await.order();
    shop.send(&adjustment("b", 1)).await.shown(200);
    assert_eq!(shop.send(&cancellation(&id)).await.says(409, "stock_limit_reached")["products"], json!(["b"]));
    assert_eq!((shop.stock("a").await.0, shop.stock("b").await.0), (6, MAX_STOCK - 1));
    let row = shop.engine.row(PRODUCTS, "productId", "b");
    shop.engine.raw("DeleteItem", &json!({"TableName": PRODUCTS, "Key": {"productId": {"S": "b"}}}));
    assert_eq!(shop.send(&cancellation(&id)).await.says(409, "product_not_found")["products"], json!(["b"]));
    shop.engine.raw("PutItem", &json!({"TableName": PRODUCTS, "Item": row}));
    shop.send(&adjustment("b", -1)).await.shown(200);
    shop.send(&cancellation(&id)).await.shown(200);
}

/// Answers as if the first batch had read the rows of one table before the first request was applied, and all others after it.
#[tokio::test]
async fn a_request_sent_twice_at_once_is_not_refused_for_its_own_effect() {
    for (stock, event, table) in [
        (4, order("k-1", &[("a", 4)]), ORDERS),
        (4, adjustment("a", -4).key("k-1"), RECORDS),
        (MAX_STOCK, cancellation(&order_id("k-0")), ORDERS),
    ] {
        let shop = Shop::with(&[("a", stock)]).await;
        let mut before = Vec::new();
        if stock == MAX_STOCK {
            shop.place("k-0", &[("a", 2)]).await.shown(201);
            before.push(shop.engine.row(table, "orderId", &order_id("k-0")));
        }
        let first = shop.send(&event).await;
        let has_read_batch = AtomicBool::new(false);
        let stale = client_whose(&shop.engine, move |engine, _, operation, body| {
            let (status, answer) = engine.answer(operation, body);
            let mut read: Value = serde_json::from_str(&answer).expect("JSON");
            match (operation, before.first()) {
                ("GetItem", Some(row)) if !has_read_batch.load(SeqCst) => read["Item"] = row.clone(),
                ("BatchGetItem", _) if !has_read_batch.swap(true, SeqCst) => read["Responses"][table] = json!(before),
                _ => {}
            }
            (status, read.to_string())
        });
        let twin = shop.reached_by(&stale);
        let again = twin.send(&event).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{event:?}");
        if stock == MAX_STOCK {
            assert_eq!(shop.stock("a").await.0, MAX_STOCK);
        } else {
            twin.send(&event.key("k-2")).await.says(409, "insufficient_stock");
        }
        if table == ORDERS && stock < MAX_STOCK {
            twin.place("k-1", &[("a", 5)]).await.says(422, "idempotency_key_reused");
        }
    }
}

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
async fn only_the_orders_of_a_user_are_listed_newest_first_in_pages_of_20_or_as_asked_and_each_as_it_is_shown() {
    let (shop, ids) = shop_with(23).await;
    for limit in ["1", "7", "22", "23", "100"] {
        assert_eq!(all(&shop, "ann", limit).await, ids, "limit {limit}");
    }
    assert_eq!(page(&shop, &[("userId", "carol")]).await, (vec![], None));
    shop.engine.take_log();
    let (listed, cursor) = page(&shop, &[("userId", "ann")]).await;
    assert_eq!((listed, shop.engine.take_counts()), (ids[..20].to_vec(), (1, 0)));
    let cursor = cursor.expect("three orders are left");
    let next = page(&shop, &[("userId", "ann"), ("limit", "100"), ("cursor", &cursor)]).await;
    assert_eq!(next, (ids[20..].to_vec(), None));

    shop.send(&cancellation(&ids[1])).await.shown(200);
    let listed = shop.send(&listing(&[("userId", "ann")])).await.json();
    for (at, status) in ["PENDING", "CANCELLED"].into_iter().enumerate() {
        let order = shop.send(&shown_order(&ids[at])).await.json();
        assert_eq!((&listed["orders"][at], &order["status"]), (&order, &json!(status)));
    }
}

#[tokio::test]
async fn a_cursor_of_another_user_or_a_forged_one_is_bad_input() {
    let (shop, _) = shop_with(3).await;
    let (_, cursor) = page(&shop, &[("userId", "ann"), ("limit", "1")]).await;
    let cursor = cursor.expect("another page");
    let (cut, long) = (&cursor[..cursor.len() - 1], "A".repeat(8000));
    for (user, cursor) in [("bob", &*cursor), ("ann", cut), ("ann", ""), ("ann", "null"), ("ann", "é"), ("ann", &*long)]
    {
        let event = listing(&[("userId", user), ("cursor", cursor)]);
        shop.bad_input(&event, "invalid_cursor", "query:cursor").await;
    }
}

/// Before its refusal, the order is read once more. If this read fails, an earlier copy may have placed it.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_cannot_be_looked_at_again_does_not_say_that_nothing_was_ever_applied() {
    let shop = Shop::with(&[("a", 1)]).await;
    let blind = client_whose(&shop.engine, |engine, _, operation, body| {
        if operation == "GetItem" {
            return lost();
        }
        engine.answer(operation, body)
    });
    let blind = shop.reached_by(&blind);
    for too_much in [order("k-1", &[("a", 2)]), adjustment("a", -2).key("k-1")] {
        let problem = blind.send(&too_much).await.says(503, "unavailable");
        let detail = problem["detail"].as_str().expect("a detail");
        let earlier = "this request applied nothing; an earlier one with the same Idempotency-Key";
        assert!(detail.contains(earlier), "{too_much:?}: {detail}");
    }
}
