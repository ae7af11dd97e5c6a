//! The requests of orders and adjustments, as the engine counts them.

use super::world::{Shop, adjustment, order};
use crate::harness::clients::client_whose;
use crate::harness::engine::number;
use crate::harness::functions::{ORDERS, PRODUCTS};
use crate::harness::states::set_by_another;
use serde_json::{Value, json};

#[tokio::test]
async fn an_order_costs_one_read_and_one_write_for_itself_and_for_each_line_and_a_warm_one_the_writes() {
    for count in [1, 2, 5, 50] {
        let ids: Vec<_> = (0..count).map(|number| format!("p-{number}")).collect();
        let stocks: Vec<_> = ids.iter().map(|id| (id.as_str(), 60)).collect();
        let lines: Vec<_> = ids.iter().map(|id| (id.as_str(), 3)).collect();
        let engine = Shop::with(&stocks).await.engine;
        let shop = Shop::on(&engine);
        for (key, reads) in [("k-1", 1), ("k-2", 0)] {
            engine.take_log();
            shop.place(key, &lines).await.shown(201);
            let asked: Vec<_> = engine.take_log().into_iter().map(|asked| asked.operation).collect();
            let takes = ["UpdateItem"].repeat(count);
            assert_eq!(asked, [&["BatchGetItem"].repeat(reads)[..], &takes, &["PutItem"]].concat(), "{count} lines");
        }
        let cold = Shop::on(&engine);
        // The remembered products have the hold of the last order, and not that of the one before.
        for (key, shop, counts) in [("k-1", &cold, (1, 0)), ("k-2", &shop, (1, 0)), ("k-1", &shop, (0, 2 * count + 1))]
        {
            assert!(shop.place(key, &lines).await.is_replay());
            assert_eq!(engine.take_counts(), counts, "a replay of {count} lines");
        }
    }
}

#[tokio::test]
async fn an_order_that_changes_the_status_of_a_remembered_product_costs_what_others_do() {
    let engine = Shop::with(&[("a", 8)]).await.engine;
    let shop = Shop::on(&engine);
    for (key, quantity, writes) in [("k-1", 1, 2), ("k-2", 4, 2), ("k-3", 3, 2)] {
        engine.take_log();
        shop.place(key, &[("a", quantity)]).await.shown(201);
        assert_eq!(engine.take_counts().1, writes, "{key}: {:?}", shop.stock("a").await);
    }
    assert_eq!(shop.stock("a").await.1, "out_of_stock");
}

#[tokio::test]
async fn a_refused_order_costs_two_reads_and_no_write() {
    let shop = Shop::with(&[("a", 3)]).await;
    shop.engine.take_log();
    shop.place("k-1", &[("a", 4)]).await.says(409, "insufficient_stock");
    assert_eq!(shop.engine.take_counts(), (2, 0), "the second looks whether its twin has taken the stock");
}

/// A shop with 10 of `a` and of `b`. Another client adds one to `a` before each of so many of these writes.
async fn rivalled(conflicts: usize, before: &'static str) -> Shop {
    let engine = Shop::with(&[("a", 10), ("b", 10)]).await.engine;
    let client = client_whose(&engine, move |engine, writes, operation, body| {
        if operation == before && writes < conflicts {
            let stock = number(&engine.row(PRODUCTS, "productId", "a"), "stock") + 1;
            set_by_another(engine, PRODUCTS, "a", &[("stock", json!({"N": stock.to_string()}))]);
        }
        engine.answer(operation, body)
    });
    engine.take_log();
    Shop::on(&engine).reached_by(&client)
}

#[tokio::test(start_paused = true)]
async fn each_conflict_costs_one_more_transaction_and_a_read_at_most_and_an_order_has_none() {
    for conflicts in 0..=5 {
        for (event, is_order) in [(order("k-1", &[("b", 2), ("a", 2)]), true), (adjustment("a", -2).key("k-1"), false)]
        {
            let shop = rivalled(conflicts, if is_order { "UpdateItem" } else { "TransactWriteItems" }).await;
            assert!(shop.send(&event).await.status < 300);
            let (reads, writes) = shop.engine.take_counts();
            // An order sends two updates. The window of each lets the rival pass.
            let met = if is_order { conflicts.min(2) } else { conflicts };
            let wanted = if is_order { 3 } else { 1 + met };
            assert!(writes == wanted && (1..=wanted).contains(&reads), "{event:?}: {reads}, {writes}");
            let more = i64::try_from(met).expect("small");
            assert_eq!(shop.stock("a").await.0, 8 + more, "nothing of others is lost");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_turns_out_to_be_there_is_answered_and_its_stock_given_back() {
    let shop = Shop::with(&[("a", 10), ("b", 10)]).await;
    let lines = [("a", 2), ("b", 2)];
    let placed = shop.place("k-1", &lines).await;
    // The order is read as it was before it was placed, the products are read afterwards.
    let client = client_whose(&shop.engine, |engine, _, operation, body| {
        let (status, answer) = engine.answer(operation, body);
        if operation != "BatchGetItem" {
            return (status, answer);
        }
        let mut read: Value = serde_json::from_str(&answer).expect("JSON");
        read["Responses"][ORDERS] = json!([]);
        (status, read.to_string())
    });
    shop.engine.take_log();
    let again = shop.reached_by(&client).place("k-1", &lines).await;
    assert_eq!((again.status, &again.body, again.is_replay()), (201, &placed.body, true));
    assert_eq!(shop.engine.take_counts(), (1, 5), "takes both, meets the order, and gives both back");
}
