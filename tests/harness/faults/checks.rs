//! Each fate of a transaction and of a batch does to it what it says.

use super::broken::{Broken, network_that_breaks};
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemError, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError as Refused;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, KeysAndAttributes, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use fencepost_test::{Network, Rates, Wire};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(10);

fn network(rates: Rates, broken: Broken) -> Arc<Network> {
    let engine = Engine::embedded(&[("Products", "productId"), ("Orders", "orderId")]);
    network_that_breaks(&engine, rates, broken, fastrand::Rng::with_seed(7))
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// Puts an order, whether it is there or not.
fn put(id: &str) -> TransactWriteItem {
    let put = Put::builder().table_name("Orders").item("orderId", text(id)).build().expect("whole");
    TransactWriteItem::builder().put(put).build()
}

/// Puts an order under a free key.
fn order(id: &str) -> TransactWriteItem {
    let put = Put::builder().table_name("Orders").item("orderId", text(id));
    let put = put.condition_expression("attribute_not_exists(orderId)").build().expect("whole");
    TransactWriteItem::builder().put(put).build()
}

fn no_product() -> TransactWriteItem {
    let check = ConditionCheck::builder().table_name("Products").key("productId", text("p-1"));
    let check = check.condition_expression("attribute_not_exists(productId)").build().expect("whole");
    TransactWriteItem::builder().condition_check(check).build()
}

async fn transact(client: &Client, token: &str, steps: &[TransactWriteItem]) -> Result<(), Box<Refused>> {
    let request = client.transact_write_items().set_transact_items(Some(steps.to_vec())).client_request_token(token);
    let answer = timeout(SOON, request.send()).await.expect("an answer");
    answer.map(drop).map_err(|error| Box::new(error.into_service_error()))
}

/// The codes of the reasons of a cancellation.
fn codes(refused: Box<Refused>) -> Vec<String> {
    let Refused::TransactionCanceledException(cancelled) = *refused else { panic!("not cancelled: {refused:?}") };
    let reasons = cancelled.cancellation_reasons.expect("one reason for each step");
    reasons.into_iter().map(|reason| reason.code.expect("a code")).collect()
}

fn count(network: &Network) -> usize {
    network.applied().len()
}

#[tokio::test(start_paused = true)]
async fn an_applied_transaction_is_noted_once_with_every_row_and_its_replay_is_not() {
    let network = network(Rates::default(), Broken::Nothing);
    let wire = Wire::new(&network);
    let client = wire.client();
    wire.works_on(5);
    let steps = [no_product(), put("o-1"), put("o-2")];
    for applied in [1, 1, 2] {
        if applied == 2 {
            network.engine.forget_tokens();
        }
        transact(&client, "t-1", &steps).await.expect("the condition holds");
        assert_eq!(count(&network), applied);
    }
    let applied = network.applied()[0].clone();
    let touched: Vec<_> = applied.rows.iter().map(|row| (row.step.action, row.step.id.as_str())).collect();
    assert_eq!(touched, [("ConditionCheckItem", "p-1"), ("PutItem", "o-1"), ("PutItem", "o-2")]);
    assert_eq!(applied.left_in("Orders", "o-2"), Some(&json!({"orderId": {"S": "o-2"}})));
    assert_eq!((applied.op, applied.left_in("Products", "p-1")), (5, None), "a check leaves nothing");
}

#[tokio::test(start_paused = true)]
async fn a_second_copy_of_a_transaction_changes_nothing_until_its_token_is_forgotten() {
    let network = network(Rates { second_copy: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    transact(&client, "t-1", &[put("o-1")]).await.expect("no condition");
    sleep(Duration::from_mins(5)).await;
    assert_eq!((network.engine.take_counts(), count(&network)), ((0, 2), 1));
    transact(&client, "t-2", &[put("o-1")]).await.expect("no condition");
    network.engine.forget_tokens();
    sleep(Duration::from_mins(5)).await;
    assert_eq!(count(&network), 3);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_meets_others_says_at_which_steps_and_is_not_applied() {
    let network = network(Rates { transaction_conflict: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let codes = codes(transact(&client, "t-1", &[order("o-1"), order("o-2")]).await.expect_err("in conflict"));
        assert!(codes.iter().all(|code| ["None", "TransactionConflict"].contains(&code.as_str())), "{codes:?}");
        seen.insert(codes);
    }
    assert_eq!(seen.len(), 3, "every subset but the empty one: {seen:?}");
    assert_eq!(network.engine.take_counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_reasons_of_a_cancellation_may_be_mixed_with_transactions_in_flight() {
    let network = network(Rates { mixed_reasons: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    transact(&client, "t-1", &[order("o-1")]).await.expect("what is not cancelled is answered as it is");
    let mut seen = BTreeSet::new();
    for _ in 0..30 {
        seen.insert(codes(transact(&client, "t-2", &[order("o-1"), order("o-2")]).await.expect_err("it is there")));
    }
    let mixed = |one: &str, other: &str| vec![one.to_owned(), other.to_owned()];
    let expected = [
        mixed("TransactionConflict", "TransactionConflict"),
        mixed("ConditionalCheckFailed", "TransactionConflict"),
        mixed("TransactionConflict", "None"),
    ];
    assert_eq!(seen, expected.into());
}

#[tokio::test(start_paused = true)]
async fn a_transaction_in_progress_is_applied_a_little_later() {
    let network = network(Rates { in_progress: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    let refused = transact(&client, "t-1", &[order("o-1")]).await.expect_err("in progress");
    assert!(matches!(*refused, Refused::TransactionInProgressException(_)), "{refused:?}");
    assert_eq!(count(&network), 0);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(count(&network), 1);
}

#[tokio::test(start_paused = true)]
async fn only_a_token_that_came_before_is_said_to_mismatch() {
    let network = network(Rates { mismatch: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    transact(&client, "t-1", &[order("o-1")]).await.expect("the first of its token");
    let refused = transact(&client, "t-1", &[order("o-1")]).await.expect_err("the second");
    assert!(matches!(*refused, Refused::IdempotentParameterMismatchException(_)), "{refused:?}");
    assert_eq!(network.engine.take_counts(), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_transaction_whose_token_is_forgotten_is_executed_again() {
    let network = network(Rates { tokens_forgotten: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    transact(&client, "t-1", &[order("o-1")]).await.expect("a free key");
    let codes = codes(transact(&client, "t-1", &[order("o-1")]).await.expect_err("its own order is there"));
    assert_eq!((codes, count(&network)), (vec!["ConditionalCheckFailed".to_owned()], 1));
}

async fn read(client: &Client, consistent: bool) -> Option<Result<BatchGetItemOutput, SdkError<BatchGetItemError>>> {
    let keys = |key: &str, ids: &[&str]| {
        let keys = ids.iter().map(|id| [(key.to_owned(), text(id))].into()).collect();
        KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(consistent).build().expect("whole")
    };
    let request = client.batch_get_item().request_items("Orders", keys("orderId", &["o-1", "o-2"]));
    timeout(SOON, request.request_items("Products", keys("productId", &["p-1"])).send()).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_batch_comes_back_without_some_of_its_keys_and_names_them() {
    let network = network(Rates { unprocessed: 1000, ..Rates::default() }, Broken::Nothing);
    let client = Wire::new(&network).client();
    for (table, key, id) in
        [("Orders", "orderId", "o-1"), ("Orders", "orderId", "o-2"), ("Products", "productId", "p-1")]
    {
        network.engine.raw("PutItem", &json!({"TableName": table, "Item": {key: {"S": id}}}));
    }
    let mut seen = BTreeSet::new();
    for _ in 0..30 {
        match read(&client, true).await.expect("an answer") {
            Ok(answer) => {
                let found = answer.responses.expect("responses").values().map(Vec::len).sum::<usize>();
                let left_out = answer.unprocessed_keys.expect("some are left out");
                assert!(left_out.values().all(|wanted| wanted.consistent_read == Some(true)));
                assert_eq!(found + left_out.values().map(|wanted| wanted.keys.len()).sum::<usize>(), 3);
                seen.insert(found);
            }
            Err(error) => {
                let error = error.into_service_error();
                assert!(matches!(error, BatchGetItemError::ProvisionedThroughputExceededException(_)), "{error:?}");
                seen.insert(0);
            }
        }
    }
    assert_eq!(seen, BTreeSet::from([0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_may_be_stale_is_never_answered() {
    let network = network(Rates::default(), Broken::Nothing);
    let client = Wire::new(&network).client();
    assert!(read(&client, true).await.is_some_and(|answer| answer.is_ok()));
    for _ in 0..5 {
        assert!(read(&client, false).await.is_none_or(|answer| answer.is_err()));
    }
    assert_eq!(network.engine.take_counts(), (1, 0));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "one ClientRequestToken must never come with two payloads")]
async fn one_token_with_two_payloads_ends_the_history() {
    let network = network(Rates::default(), Broken::Nothing);
    let client = Wire::new(&network).client();
    transact(&client, "t-1", &[put("o-1")]).await.expect("no condition");
    let _ = transact(&client, "t-1", &[put("o-2")]).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "one ClientRequestToken must never come with two payloads")]
async fn a_token_reused_for_a_new_decision_ends_the_history() {
    let network = network(Rates::default(), Broken::TokenReused);
    let wire = Wire::new(&network);
    let client = wire.client();
    for (op, token, id) in [(1, "t-1", "o-1"), (1, "t-2", "o-1"), (2, "t-3", "o-2")] {
        wire.works_on(op);
        transact(&client, token, &[put(id)]).await.expect("no condition");
    }
    assert_eq!(count(&network), 2, "the second was a replay of the first");
    let _ = transact(&client, "t-4", &[put("o-3")]).await;
}

/// Raises the version of the order `o-1` from 2, and leaves a write id.
fn raise() -> TransactWriteItem {
    let names = [("#version", "_version"), ("#writes", "_writes"), ("#id", "AAAAAAAAAAA")];
    let values = [(":next", AttributeValue::N("3".into())), (":at", AttributeValue::N("2".into()))];
    let update = Update::builder()
        .table_name("Orders")
        .key("orderId", text("o-1"))
        .update_expression("SET #version = :next, #writes.#id = :at")
        .condition_expression("#version = :at")
        .set_expression_attribute_names(Some(names.map(|(key, name)| (key.to_owned(), name.to_owned())).into()))
        .set_expression_attribute_values(Some(HashMap::from(values.map(|(key, value)| (key.to_owned(), value)))));
    TransactWriteItem::builder().update(update.build().expect("whole")).build()
}

#[tokio::test(start_paused = true)]
async fn broken_on_purpose_the_steps_of_a_transaction_leave_no_write_id() {
    for (broken, ids) in [(Broken::Nothing, 1), (Broken::NoIdInTransactions, 0)] {
        let network = network(Rates::default(), broken);
        let item = json!({"orderId": {"S": "o-1"}, "_version": {"N": "2"}, "_writes": {"M": {}}});
        network.engine.raw("PutItem", &json!({"TableName": "Orders", "Item": item}));
        transact(&Wire::new(&network).client(), "t-1", &[raise()]).await.expect("the version is lower");
        let row = network.engine.row("Orders", "orderId", "o-1");
        assert_eq!(row["_version"]["N"], "3");
        assert_eq!(row["_writes"]["M"].as_object().map(serde_json::Map::len), Some(ids), "{broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn broken_on_purpose_a_cancellation_does_not_show_that_the_row_is_its_own() {
    let id = AttributeValue::B(Blob::new(*b"write id"));
    let put = Put::builder()
        .table_name("Orders")
        .item("orderId", text("o-1"))
        .item("_version", AttributeValue::N("1".to_owned()))
        .item("_incarnation", id.clone())
        .item("_writes", AttributeValue::M([("d3JpdGUgaWQ".to_owned(), AttributeValue::N("0".to_owned()))].into()))
        .condition_expression("attribute_not_exists(orderId)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    let steps = [TransactWriteItem::builder().put(put.build().expect("whole")).build()];
    for (broken, shown) in [(Broken::Nothing, true), (Broken::GuardBeforeJudge, false)] {
        let network = network(Rates { tokens_forgotten: 1000, ..Rates::default() }, broken);
        let client = Wire::new(&network).client();
        transact(&client, "t-1", &steps).await.expect("a free key");
        let item = refused_item(transact(&client, "t-1", &steps).await.expect_err("its own row is there"));
        assert_eq!(item["_incarnation"] == id, shown, "{broken:?}");
        assert_eq!(item["_writes"].as_m().expect("a memory").len(), usize::from(shown), "{broken:?}");
    }
}

/// The item that the first reason of a cancellation shows.
fn refused_item(refused: Box<Refused>) -> HashMap<String, AttributeValue> {
    let Refused::TransactionCanceledException(cancelled) = *refused else { panic!("not cancelled: {refused:?}") };
    cancelled.cancellation_reasons.expect("reasons").swap_remove(0).item.expect("ALL_OLD was asked for")
}
