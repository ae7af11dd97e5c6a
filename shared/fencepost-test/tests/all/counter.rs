//! A table of counters and programs that use it on the bare SDK.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError as Refused;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use fencepost_test::Dynamo;
use serde_json::json;

pub const TABLE: &str = "Counters";

/// The counter `a` at 0 and version 1.
pub fn scene(seed: u64) -> Dynamo {
    let db = Dynamo::with_seed(seed);
    db.create_table(TABLE, "id");
    put(&db, "a");
    db
}

pub fn put(db: &Dynamo, id: &str) {
    db.put(TABLE, &json!({"id": {"S": id}, "n": {"N": "0"}, "version": {"N": "1"}}));
}

/// The number of the counter.
pub fn held(db: &Dynamo, id: &str) -> i64 {
    db.number(TABLE, id, "n")
}

fn one() -> AttributeValue {
    AttributeValue::N("1".to_owned())
}

/// How a request failed: with an error of the service, or with no answer.
#[derive(Debug, PartialEq)]
pub enum Failed {
    With(String),
    WithoutAnswer(String),
}

fn failed<E: ProvideErrorMetadata>(error: &SdkError<E>) -> Failed {
    match error.code() {
        Some(code) => Failed::With(code.to_owned()),
        None => Failed::WithoutAnswer(error.to_string()),
    }
}

/// Adds one at any version.
pub async fn add(client: &Client, id: &str) -> Result<(), Failed> {
    let write = client.update_item().table_name(TABLE).key("id", AttributeValue::S(id.to_owned()));
    let write = write.update_expression("ADD n :one, version :one").expression_attribute_values(":one", one());
    write.send().await.map(drop).map_err(|error| failed(&error))
}

/// Adds one to the counter at this version. Gives the item that a refusal shows.
pub async fn add_at(client: &Client, id: &str, version: u64) -> Result<(), (Failed, Option<AttributeValue>)> {
    let write = client
        .update_item()
        .table_name(TABLE)
        .key("id", AttributeValue::S(id.to_owned()))
        .update_expression("ADD n :one, version :one")
        .condition_expression("version = :at")
        .expression_attribute_values(":one", one())
        .expression_attribute_values(":at", AttributeValue::N(version.to_string()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    write.send().await.map(drop).map_err(|error| {
        let refused = error.as_service_error().and_then(|error| match error {
            aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException(refused) => {
                refused.item()?.get("version").cloned()
            }
            _ => None,
        });
        (failed(&error), refused)
    })
}

/// The version of the counter.
pub async fn read(client: &Client, id: &str) -> Result<u64, Failed> {
    let read = client.get_item().table_name(TABLE).key("id", AttributeValue::S(id.to_owned())).consistent_read(true);
    let item = read.send().await.map_err(|error| failed(&error))?.item.expect("it is there");
    Ok(item["version"].as_n().expect("a number").parse().expect("a whole number"))
}

/// A transaction that adds one to each of these counters under this condition, or to none.
pub async fn transact(client: &Client, token: &str, ids: &[&str], condition: Option<&str>) -> Result<(), Box<Refused>> {
    let steps = ids.iter().map(|id| updating(id, condition)).collect();
    let sent = client.transact_write_items().set_transact_items(Some(steps)).client_request_token(token).send().await;
    sent.map(drop).map_err(|error| Box::new(error.into_service_error()))
}

pub fn updating(id: &str, condition: Option<&str>) -> TransactWriteItem {
    let update = Update::builder().table_name(TABLE).key("id", AttributeValue::S(id.to_owned()));
    let update = update.update_expression("ADD n :one").set_condition_expression(condition.map(ToOwned::to_owned));
    let update = update.expression_attribute_values(":one", one());
    TransactWriteItem::builder().update(update.build().expect("whole")).build()
}

/// The reasons of the steps of a cancelled transaction.
pub fn codes(refused: &Refused) -> Vec<&str> {
    let Refused::TransactionCanceledException(cancelled) = refused else { panic!("not cancelled: {refused:?}") };
    cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect()
}
