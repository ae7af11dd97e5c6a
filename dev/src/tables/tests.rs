#![allow(clippy::disallowed_methods, reason = "tests ask the engine behind the crate's back")]

use super::*;
use crate::args::Engine;
use aws_sdk_dynamodb::types::AttributeValue;
use dynoxide::Database;
use tokio::net::TcpListener;

async fn dynamodb() -> DynamoDb {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(dynoxide::server::serve_on(listener, Database::memory().expect("SQLite in memory")));
    DynamoDb::start(&Engine { endpoint: Some(endpoint), ..Engine::default() }).await.expect("an address is enough")
}

fn part(name: &str, role: &str) -> KeyAttribute {
    KeyAttribute { name: name.to_owned(), role: role.to_owned(), kind: "S".to_owned() }
}

fn table(indexes: Vec<Index>) -> Table {
    Table { name: "Things".to_owned(), key: vec![part("thingId", "HASH")], indexes, ttl_attribute: None }
}

fn by_owner(sort: &str) -> Index {
    Index {
        name: "byOwner".to_owned(),
        key: vec![part("owner", "HASH"), part(sort, "RANGE")],
        projection: "INCLUDE".to_owned(),
        includes: vec!["colour".to_owned()],
    }
}

/// The things of an owner, by the index.
async fn listed(dynamodb: &DynamoDb) -> Vec<(String, usize)> {
    let query = dynamodb.client().await.query().table_name("Things").index_name("byOwner");
    let query = query.key_condition_expression("#o = :o").expression_attribute_names("#o", "owner");
    let answer = query.expression_attribute_values(":o", AttributeValue::S("ann".to_owned())).send().await;
    let items = answer.expect("an answer").items.unwrap_or_default();
    items.iter().map(|item| (item["thingId"].as_s().expect("text").clone(), item.len())).collect()
}

async fn put(dynamodb: &DynamoDb, id: &str) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = dynamodb.client().await.put_item().table_name("Things").item("thingId", text(id));
    let put = put.item("owner", text("ann")).item("at", text(id)).item("colour", text("red")).item("note", text("x"));
    put.send().await.expect("a write");
}

#[tokio::test]
async fn a_table_is_created_with_its_indexes_and_one_of_an_earlier_day_gets_them() {
    for first in [vec![by_owner("at")], vec![]] {
        let dynamodb = dynamodb().await;
        create(&dynamodb, &[table(first)]).await.expect("created");
        put(&dynamodb, "a").await;
        for _ in 0..2 {
            create(&dynamodb, &[table(vec![by_owner("at")])]).await.expect("the same or one index more");
        }
        put(&dynamodb, "b").await;
        // Its key, the key of the table and the included attributes: the note is not there.
        assert_eq!(listed(&dynamodb).await, [("a".to_owned(), 4), ("b".to_owned(), 4)]);
    }
}

#[tokio::test]
async fn an_index_with_another_key_is_refused_by_its_name() {
    let dynamodb = dynamodb().await;
    create(&dynamodb, &[table(vec![by_owner("at")])]).await.expect("created");
    let refused = create(&dynamodb, &[table(vec![by_owner("colour")])]).await.expect_err("another key").to_string();
    assert!(refused.contains("an index byOwner of Things with another key"), "{refused}");
}
