//! The engine itself: tables of a program and the clock.

use crate::counter::scene;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use fencepost_test::{Dynamo, Use};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn a_program_creates_its_table_and_its_keys_are_in_the_log() {
    let db = Dynamo::with_seed(1);
    let client = db.client();
    let mut table = client.create_table().table_name("Events").billing_mode(BillingMode::PayPerRequest);
    for (name, kind, of) in
        [("day", KeyType::Hash, ScalarAttributeType::S), ("seq", KeyType::Range, ScalarAttributeType::N)]
    {
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind).build().expect("whole");
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().expect("whole");
        table = table.key_schema(key).attribute_definitions(attribute);
    }
    table.send().await.expect("a table");
    let lost = db.lose_answer().on("Events").about("monday").once();
    let key =
        |day: &str, seq: u64| [("day", AttributeValue::S(day.into())), ("seq", AttributeValue::N(seq.to_string()))];
    for (day, seq) in [("monday", 1), ("monday", 2), ("sunday", 1)] {
        let put = client.put_item().table_name("Events");
        put.set_item(Some(key(day, seq).map(|(name, value)| (name.to_owned(), value)).into()))
            .send()
            .await
            .expect("put");
    }
    let query = client.query().table_name("Events").key_condition_expression("#day = :day");
    let query = query.expression_attribute_names("#day", "day");
    let query = query.expression_attribute_values(":day", AttributeValue::S("monday".into()));
    assert_eq!(query.send().await.expect("a page").count, 2);
    let puts = db.log().of("PutItem").about("monday");
    assert_eq!((puts.len(), lost.struck()), (3, 1));
    assert_eq!(puts[2].steps[0].key, json!({"day": {"S": "monday"}, "seq": {"N": "2"}}));
    let used = |operation: &str| Use { operation: operation.to_owned(), table: "Events".to_owned() };
    assert_eq!(db.engine().uses(), ["CreateTable", "PutItem", "Query"].map(used).into());
}

#[tokio::test(start_paused = true)]
async fn the_engine_and_the_program_have_one_clock_and_what_ended_by_it_is_swept() {
    let db = scene(1);
    let ttl = json!({"Enabled": true, "AttributeName": "ttl"});
    db.engine().raw("UpdateTimeToLive", &json!({"TableName": "Counters", "TimeToLiveSpecification": ttl}));
    let ends = (db.now() + Duration::from_hours(1)).duration_since(SystemTime::UNIX_EPOCH).expect("after it").as_secs();
    db.put("Counters", &json!({"id": {"S": "b"}, "ttl": {"N": ends.to_string()}}));
    assert_eq!(db.engine().sweep(), 0);
    sleep(Duration::from_hours(2)).await;
    assert_eq!(db.engine().sweep(), 1);
    assert_eq!((db.row("Counters", "b"), db.row("Counters", "a").is_null()), (Value::Null, false));
}
