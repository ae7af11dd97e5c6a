//! Transactions and batches through the real SDK, as far as the tests of this repository rely on them.

use super::{Engine, Use};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Get, KeysAndAttributes, Put,
    ReturnValuesOnConditionCheckFailure, TransactGetItem, TransactWriteItem, Update,
};
use serde_json::{Value, json};

fn engine() -> Engine {
    Engine::with_tables(&[("Products", "productId"), ("Orders", "orderId")])
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// Takes one from the stock of a product that must be there.
fn take_one(product: &str) -> TransactWriteItem {
    let update = Update::builder()
        .table_name("Products")
        .key("productId", text(product))
        .update_expression("SET #stock = #stock - :one")
        .condition_expression("#stock >= :one")
        .expression_attribute_names("#stock", "stock")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    TransactWriteItem::builder().update(update.expect("whole")).build()
}

/// Puts an order under a free key.
fn order(id: &str) -> TransactWriteItem {
    let put = Put::builder()
        .table_name("Orders")
        .item("orderId", text(id))
        .condition_expression("attribute_not_exists(orderId)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    TransactWriteItem::builder().put(put.expect("whole")).build()
}

async fn transact(
    client: &Client,
    token: &str,
    steps: impl IntoIterator<Item = TransactWriteItem>,
) -> Result<(), Box<TransactWriteItemsError>> {
    let steps = steps.into_iter().collect();
    let sent = client.transact_write_items().set_transact_items(Some(steps)).client_request_token(token).send().await;
    sent.map(drop).map_err(SdkError::into_service_error).map_err(Box::new)
}

fn reasons(cancelled: Result<(), Box<TransactWriteItemsError>>) -> Vec<CancellationReason> {
    match cancelled.map_err(|error| *error) {
        Err(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
            cancelled.cancellation_reasons.expect("one reason for each step")
        }
        other => panic!("not cancelled: {other:?}"),
    }
}

fn stock(engine: &Engine) -> Value {
    engine.row("Products", "productId", "p-1")["stock"]["N"].take()
}

fn with_stock(stock: u32) -> Engine {
    let engine = engine();
    let item = json!({"productId": {"S": "p-1"}, "stock": {"N": stock.to_string()}});
    engine.raw("PutItem", &json!({"TableName": "Products", "Item": item}));
    engine
}

#[tokio::test]
async fn a_transaction_is_applied_whole_or_cancelled_with_the_items_that_refused_it() {
    let engine = with_stock(2);
    let client = engine.client();
    transact(&client, "t-1", [take_one("p-1"), order("o-1")]).await.expect("both conditions hold");
    let rows = [("Products", "productId", "p-1"), ("Orders", "orderId", "o-1"), ("Orders", "orderId", "o-2")];
    let after = engine.snapshot(&rows);
    assert_eq!(after[0]["stock"]["N"], "1");
    assert_eq!((&after[1], &after[2]), (&json!({"orderId": {"S": "o-1"}}), &Value::Null));

    let reasons = reasons(transact(&client, "t-2", [take_one("p-1"), order("o-1")]).await);
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code.as_deref().expect("a code")).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed"]);
    assert_eq!(reasons[0].item, None, "a step that was not refused shows no item");
    assert_eq!(reasons[1].item.as_ref().expect("the item that is there")["orderId"], text("o-1"));
    assert_eq!(stock(&engine), "1", "nothing of it was applied");
    assert_eq!(engine.take_counts(), (0, 2), "what a test looks at behind the client's back is not counted");
}

#[tokio::test]
async fn a_token_is_replayed_until_it_is_forgotten_and_a_cancelled_one_is_not_remembered() {
    let engine = with_stock(5);
    let client = engine.client();
    for _ in 0..2 {
        transact(&client, "t-1", [take_one("p-1")]).await.expect("applied once, and then replayed");
        assert!(engine.remembers("t-1"));
        assert_eq!(stock(&engine), "4");
    }
    for left in ["3", "2"] {
        engine.forget_tokens();
        assert!(!engine.remembers("t-1"));
        transact(&client, "t-1", [take_one("p-1")]).await.expect("executed again");
        transact(&client, "t-1", [take_one("p-1")]).await.expect("replayed");
        assert_eq!(stock(&engine), left);
    }
    reasons(transact(&client, "t-2", [take_one("p-2")]).await);
    assert!(!engine.remembers("t-2"));
    let other = transact(&client, "t-1", [order("o-1")]).await.expect_err("another payload");
    assert!(matches!(*other, TransactWriteItemsError::IdempotentParameterMismatchException(_)), "{other:?}");
}

#[tokio::test]
async fn a_batch_and_a_snapshot_read_two_tables_and_permissions_are_those_of_the_steps() {
    let engine = with_stock(3);
    let client = engine.client();
    let check = ConditionCheck::builder().table_name("Products").key("productId", text("p-1"));
    let check = check.condition_expression("attribute_exists(productId)").build().expect("whole");
    let delete = Delete::builder().table_name("Orders").key("orderId", text("o-9")).build().expect("whole");
    let steps = [
        TransactWriteItem::builder().condition_check(check).build(),
        TransactWriteItem::builder().delete(delete).build(),
        order("o-1"),
    ];
    transact(&client, "t-1", steps).await.expect("every condition holds");

    let keys = |key: &str, ids: &[&str]| {
        let keys = ids.iter().map(|id| [(key.to_owned(), text(id))].into()).collect();
        KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build().expect("whole")
    };
    let batch = client.batch_get_item();
    let batch = batch.request_items("Products", keys("productId", &["p-1"]));
    let batch = batch.request_items("Orders", keys("orderId", &["o-1", "o-2"])).send().await.expect("an answer");
    let found = batch.responses.expect("responses");
    assert_eq!(found["Products"][0]["stock"], AttributeValue::N("3".to_owned()));
    assert_eq!(found["Orders"].len(), 1, "an absent item is left out");
    assert!(batch.unprocessed_keys.unwrap_or_default().is_empty());

    let get = Get::builder().table_name("Orders").key("orderId", text("o-1")).build().expect("whole");
    let get = TransactGetItem::builder().get(get).build();
    let got = client.transact_get_items().transact_items(get).send().await.expect("an answer");
    assert_eq!(got.responses.expect("responses")[0].item.as_ref().expect("it is there")["orderId"], text("o-1"));

    let used = |operation: &str, table: &str| Use { operation: operation.to_owned(), table: table.to_owned() };
    let expected = [
        used("ConditionCheckItem", "Products"),
        used("DeleteItem", "Orders"),
        used("PutItem", "Orders"),
        used("BatchGetItem", "Products"),
        used("BatchGetItem", "Orders"),
        used("GetItem", "Orders"),
    ];
    assert_eq!(engine.uses(), expected.into());
    assert_eq!(engine.take_counts(), (2, 1));
}
