//! The units of requests, and the capacity that throttles those beyond it.

use crate::counter::{Failed, TABLE, add, add_at, codes, held, put, read, scene, transact, updating};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError as Refused;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, DeleteRequest, Get, KeysAndAttributes, Put, TransactGetItem, TransactWriteItem, WriteRequest,
};
use aws_sdk_dynamodb::{Client, error::ProvideErrorMetadata};
use fencepost_test::{Capacity, Dynamo, Units, size_of_item};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::sleep;

const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/Counters";

/// A counter of exactly so many bytes.
fn sized(id: &str, bytes: usize) -> Value {
    let mut item = json!({"id": {"S": id}, "n": {"N": "0"}, "version": {"N": "1"}, "filler": {"S": ""}});
    item["filler"]["S"] = json!("x".repeat(bytes - size_of_item(&item)));
    item
}

/// The counter `a` of so many bytes, and a count of units.
fn of_bytes(bytes: usize) -> Dynamo {
    let db = scene(1);
    db.put(TABLE, &sized("a", bytes));
    db.count_units();
    db
}

fn key(id: &str) -> HashMap<String, AttributeValue> {
    [("id".to_owned(), AttributeValue::S(id.to_owned()))].into()
}

/// The item `a` with a filler of so many bytes.
fn filled(filler: usize) -> HashMap<String, AttributeValue> {
    let mut item = key("a");
    item.insert("filler".to_owned(), AttributeValue::S("x".repeat(filler)));
    item
}

/// Reads `a`, eventually consistent.
async fn look(client: &Client) {
    client.get_item().table_name(TABLE).set_key(Some(key("a"))).send().await.expect("an answer");
}

/// The units of the requests of this operation.
fn of(db: &Dynamo, operation: &str) -> (f64, f64) {
    let Units { read, write } = db.log().of(operation).units();
    (read, write)
}

#[tokio::test(start_paused = true)]
async fn units_are_counted_by_started_blocks_and_twice_in_transactions() {
    for (bytes, writes, reads) in
        [(300, 1.0, 1.0), (900, 1.0, 1.0), (1_024, 1.0, 1.0), (1_025, 2.0, 1.0), (4_096, 4.0, 1.0), (4_097, 5.0, 2.0)]
    {
        let db = of_bytes(bytes);
        let client = db.client_without_retries();
        add(&client, "a").await.expect("no condition");
        assert_eq!(of(&db, "UpdateItem"), (0.0, writes), "{bytes} bytes");
        read(&client, "a").await.expect("an answer");
        assert_eq!(of(&db, "GetItem"), (reads, 0.0), "{bytes} bytes, consistent");
        look(&client).await;
        assert_eq!(of(&db, "GetItem"), (1.5 * reads, 0.0), "{bytes} bytes, eventually consistent");
        transact(&client, "t-1", &["a"], None).await.expect("no condition");
        assert_eq!(of(&db, "TransactWriteItems"), (0.0, 2.0 * writes), "{bytes} bytes");
        transact(&client, "t-1", &["a"], None).await.expect("a replay");
        assert_eq!(of(&db, "TransactWriteItems"), (2.0 * reads, 2.0 * writes), "a replay reads");
        let get = Get::builder().table_name(TABLE).set_key(Some(key("a"))).build().expect("whole");
        let get = TransactGetItem::builder().get(get).build();
        client.transact_get_items().transact_items(get).send().await.expect("an answer");
        assert_eq!(of(&db, "TransactGetItems"), (2.0 * reads, 0.0), "{bytes} bytes");
        assert_eq!(db.log().units_of(TABLE), db.log().units());
        assert_eq!(db.log().units_of("Others"), Units::default());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_costs_the_larger_of_the_item_before_and_after_and_a_missing_item_costs_one() {
    let db = of_bytes(2_500);
    let client = db.client_without_retries();
    for (filler, sum) in [(10, 3.0), (10, 4.0), (1_500, 6.0)] {
        client.put_item().table_name(TABLE).set_item(Some(filled(filler))).send().await.expect("no condition");
        assert_eq!(of(&db, "PutItem"), (0.0, sum), "{filler}");
    }
    let update = client.update_item().table_name(TABLE).set_key(Some(key("a"))).update_expression("SET filler = :more");
    let update = update.expression_attribute_values(":more", AttributeValue::S("x".repeat(3_500)));
    update.send().await.expect("no condition");
    assert_eq!(of(&db, "UpdateItem"), (0.0, 4.0));
    for sum in [4.0, 5.0] {
        client.delete_item().table_name(TABLE).set_key(Some(key("a"))).send().await.expect("no condition");
        assert_eq!(of(&db, "DeleteItem"), (0.0, sum), "it deletes 3.5 KB, then nothing");
    }
    look(&client).await;
    assert_eq!(of(&db, "GetItem"), (0.5, 0.0));
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_costs_units_and_an_invalid_one_does_not() {
    let db = of_bytes(1_500);
    let client = db.client_without_retries();
    add_at(&client, "a", 7).await.expect_err("the version is 1");
    assert_eq!(of(&db, "UpdateItem"), (0.0, 2.0));
    let (item, absent) = (|| Some(filled(2_500)), "attribute_not_exists(id)");
    let put = client.put_item().table_name(TABLE).set_item(item()).condition_expression(absent);
    put.send().await.expect_err("it is there");
    assert_eq!(of(&db, "PutItem"), (0.0, 3.0), "the size that it would have had");
    let put = Put::builder().table_name(TABLE).set_item(item()).condition_expression(absent);
    let put = TransactWriteItem::builder().put(put.build().expect("whole")).build();
    client
        .transact_write_items()
        .transact_items(updating("b", None))
        .transact_items(put)
        .send()
        .await
        .expect_err("refused");
    assert_eq!(of(&db, "TransactWriteItems"), (0.0, 2.0 + 6.0));
    let broken = client.update_item().table_name(TABLE).set_key(Some(key("a"))).update_expression("nonsense");
    broken.send().await.expect_err("invalid");
    assert_eq!(of(&db, "UpdateItem"), (0.0, 2.0), "as before");
}

#[tokio::test(start_paused = true)]
async fn batches_cost_by_their_members_and_a_scan_by_all_that_it_reads() {
    let db = of_bytes(3_000);
    db.put(TABLE, &sized("b", 3_000));
    let client = db.client_without_retries();
    let wanted = KeysAndAttributes::builder().set_keys(Some(vec![key("a"), key("b")])).consistent_read(true);
    client.batch_get_item().request_items(TABLE, wanted.build().expect("whole")).send().await.expect("an answer");
    assert_eq!(of(&db, "BatchGetItem"), (2.0, 0.0), "each item by itself");
    let scan = client.scan().table_name(TABLE).filter_expression("attribute_not_exists(id)").send().await;
    assert_eq!(scan.expect("an answer").consumed_capacity, None, "it was not asked for");
    assert_eq!(of(&db, "Scan"), (1.0, 0.0), "6,000 bytes together, eventually consistent");
    let delete = |id| {
        let delete = DeleteRequest::builder().set_key(Some(key(id))).build().expect("whole");
        WriteRequest::builder().delete_request(delete).build()
    };
    let batch = client.batch_write_item().request_items(TABLE, vec![delete("a"), delete("b")]);
    batch.send().await.expect("an answer");
    assert_eq!(of(&db, "BatchWriteItem"), (0.0, 6.0));
}

/// Adds so often at once. Gives how often it was let in.
async fn added(client: &Client, id: &'static str, count: usize) -> usize {
    let mut adds = tokio::task::JoinSet::new();
    for _ in 0..count {
        let client = client.clone();
        adds.spawn(async move { add(&client, id).await });
    }
    adds.join_all().await.iter().filter(|added| added.is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn each_item_has_the_units_of_a_second_and_gets_them_back_in_a_second() {
    let db = scene(1);
    put(&db, "b");
    db.capacity(Capacity::of_items().with_units(2.0, 10.0));
    db.network().hops(Duration::from_millis(1));
    let client = db.client_without_retries();
    sleep(Duration::from_mins(10)).await;
    assert_eq!(added(&client, "a", 20).await, 10, "what is kept is that of a second");
    assert_eq!(added(&client, "b", 20).await, 10, "of each item");
    assert!(read(&client, "a").await.is_ok(), "reads have their own");
    sleep(Duration::from_millis(494)).await;
    assert_eq!(added(&client, "a", 20).await, 5, "half a second after the first");
    assert_eq!(of(&db, "UpdateItem"), (0.0, 25.0), "what was throttled cost nothing");
}

#[tokio::test(start_paused = true)]
async fn a_debt_is_paid_before_the_next_request_is_let_in() {
    let db = of_bytes(4_500);
    db.network().hops(Duration::from_millis(1));
    db.capacity(Capacity::of_items().with_units(10.0, 2.0));
    let client = db.client_without_retries();
    add(&client, "a").await.expect("two units are left");
    sleep(Duration::from_millis(1_496)).await; // it arrives 1,498 ms after the first, which cost 5 units
    add(&client, "a").await.expect_err("it is throttled");
    sleep(Duration::from_millis(2)).await;
    add(&client, "a").await.expect("a little is left");
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_names_the_limit_and_the_table() {
    let provisioned = "ProvisionedThroughputExceededException";
    for (capacities, code, reason) in [
        (vec![Capacity::of_items()], "ThrottlingException", "KeyRangeThroughputExceeded"),
        (vec![Capacity::on_demand(TABLE, 1.0, 1.0)], "ThrottlingException", "MaxOnDemandThroughputExceeded"),
        (vec![Capacity::of_account()], "RequestLimitExceeded", "AccountLimitExceeded"),
        (vec![Capacity::provisioned(TABLE, 1.0, 1.0)], provisioned, "ProvisionedThroughputExceeded"),
        (vec![Capacity::of_items(), Capacity::provisioned(TABLE, 9.0, 9.0)], provisioned, "KeyRangeThroughputExceeded"),
    ] {
        let db = scene(1);
        db.capacity(Capacity::provisioned("Others", 0.0, 0.0));
        for (number, capacity) in capacities.into_iter().enumerate() {
            db.capacity(if number == 0 { capacity.with_units(0.0, 0.0) } else { capacity });
        }
        let client = db.client_without_retries();
        let update = client.update_item().table_name(TABLE).set_key(Some(key("a"))).update_expression("REMOVE filler");
        let error = update.send().await.expect_err("no capacity").into_service_error();
        let met = match &error {
            UpdateItemError::ThrottlingException(error) => error.throttling_reasons(),
            UpdateItemError::ProvisionedThroughputExceededException(error) => error.throttling_reasons(),
            UpdateItemError::RequestLimitExceeded(error) => error.throttling_reasons(),
            _ => panic!("{error:?}"),
        };
        assert_eq!((error.code(), met.len()), (Some(code), 1));
        assert_eq!((met[0].reason(), met[0].resource()), (Some(&*format!("TableWrite{reason}")), Some(ARN)));
        let get = client.get_item().table_name(TABLE).set_key(Some(key("a"))).send().await;
        let error = format!("{:?}", get.expect_err("no capacity").into_service_error());
        assert!(error.contains(&format!("TableRead{reason}")), "{error}");
        assert_eq!((held(&db, "a"), db.log().units()), (0, Units::default()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_cancelled_at_the_steps_without_capacity() {
    for (mode, code) in [
        (Capacity::on_demand(TABLE, 100.0, 100.0), "ThrottlingError"),
        (Capacity::provisioned(TABLE, 100.0, 100.0), "ProvisionedThroughputExceeded"),
    ] {
        let db = scene(1);
        db.capacity(Capacity::of_items().with_units(1.0, 1.0));
        db.capacity(mode);
        let client = db.client_without_retries();
        transact(&client, "t-1", &["a"], None).await.expect("a unit is left");
        let refused = transact(&client, "t-2", &["b", "a"], None).await.expect_err("a has no unit left");
        assert_eq!(codes(&refused), ["None", code]);
        assert_eq!((held(&db, "a"), db.row(TABLE, "b"), of(&db, "TransactWriteItems")), (1, Value::Null, (0.0, 2.0)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_occupies_its_items_from_its_arrival_to_its_answer() {
    let db = scene(1);
    db.network().hops(Duration::from_millis(1));
    db.count_units();
    let client = db.client_without_retries();
    let others = async {
        sleep(Duration::from_millis(19)).await; // 1.3 ms before the answer leaves
        tokio::join!(
            transact(&client, "t-2", &["b", "a"], None),
            transact(&client, "t-1", &["a"], None),
            add(&client, "a"),
            read(&client, "a")
        )
    };
    let first = async {
        transact(&client, "t-1", &["a"], None).await.expect("it came first");
        add(&client, "a").await.expect("it is done");
        transact(&client, "t-1", &["a"], None).await.expect("a replay");
    };
    let ((), (other, copy, write, read)) = tokio::join!(first, others);
    assert_eq!(codes(&other.expect_err("a is held")), ["None", "TransactionConflict"]);
    assert!(matches!(*copy.expect_err("the first is not done"), Refused::TransactionInProgressException(_)));
    assert_eq!(write, Err(Failed::With("TransactionConflictException".to_owned())));
    assert_eq!((read, held(&db, "a"), db.row(TABLE, "b")), (Ok(1), 2, Value::Null));
    assert_eq!((of(&db, "TransactWriteItems"), of(&db, "UpdateItem")), ((4.0, 6.0), (0.0, 2.0)), "refusals cost too");
}
