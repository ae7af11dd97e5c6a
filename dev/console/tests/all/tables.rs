//! What the console shows of the tables and the requests.

use super::world::{Answer, TABLE, World};
use serde_json::{Value, json};

/// The next message about the rows.
async fn rows(stream: &mut Answer) -> Value {
    let (name, data) = stream.event().await.expect("the stream goes on");
    assert_eq!(name, "rows");
    data
}

fn put(world: &World, id: &str, version: u64) {
    let incarnation = json!({"B": "AQEBAQEBAQE="});
    let item = json!({
        "deviceId": {"S": id}, "_version": {"N": version.to_string()}, "_incarnation": incarnation, "_writes": {"M": {}},
        "state": {"M": {"on": {"BOOL": true}}},
    });
    world.engine.raw("PutItem", &json!({"TableName": TABLE, "Item": item}));
}

#[tokio::test]
async fn a_row_that_anybody_changes_is_told_once_and_with_its_writer_if_that_is_known() {
    let world = World::new().await;
    put(&world, "lamp", 1);
    put(&world, "bulb", 1);
    let mut stream = world.get("/console/tables").await;
    let first = rows(&mut stream).await;
    assert_eq!((&first["all"], first["changed"].as_array().map(Vec::len)), (&json!(true), Some(2)));
    assert_eq!(first["tables"][0], json!({"name": TABLE, "rows": 2, "shown": 2, "more": false}));
    assert_eq!(first["changed"][0]["changedAt"], Value::Null, "nobody knows since when");

    let line = json!({
        "message": "request", "function": "device-state", "route": "PATCH /devices/{deviceId}/state", "key": "lamp",
        "status": 200, "version": 2, "changes": 1,
    });
    world.requests.take(line.to_string());
    put(&world, "lamp", 2);
    let second = rows(&mut stream).await;
    let changed = second["changed"].as_array().expect("rows");
    assert_eq!((changed.len(), &second["all"], &second["gone"]), (1, &json!(false), &json!([])));
    let lamp = &changed[0];
    assert_eq!((&lamp["key"], &lamp["version"], &lamp["kind"]), (&json!("lamp"), &json!(2), &json!("live")));
    assert_eq!(lamp["written"], "Version 2 was written by PATCH /devices/{deviceId}/state of device-state.");
    assert_eq!(lamp["attributes"], json!({"deviceId": "lamp", "state": {"on": true}}));
    assert!(lamp["changedAt"].is_u64() && lamp["incarnation"] == "AQEBAQEBAQE");

    world.engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"deviceId": {"S": "bulb"}}}));
    let third = rows(&mut stream).await;
    assert_eq!((&third["gone"], &third["changed"]), (&json!(["Devices {\"deviceId\":\"bulb\"}"]), &json!([])));
}

#[tokio::test]
async fn damaged_rows_are_explained_and_a_table_that_is_not_there_is_named() {
    let world = World::new().await;
    let item = json!({"deviceId": {"S": "x"}, "_version": {"S": "seven"}, "_incarnation": {"N": "1"}});
    world.engine.raw("PutItem", &json!({"TableName": TABLE, "Item": item}));
    let mut stream = world.get("/console/tables").await;
    let row = rows(&mut stream).await["changed"][0].clone();
    assert_eq!(row["kind"], "damaged");
    assert!(row["problems"][0].as_str().is_some_and(|problem| problem.ends_with('.')), "{row}");
    world.engine.raw("DeleteTable", &json!({"TableName": TABLE}));
    let gone = rows(&mut stream).await;
    assert!(gone["tables"][0]["error"].as_str().is_some_and(|why| why.contains("ResourceNotFound")), "{gone}");
    assert_eq!(gone["gone"], json!([]), "nobody knows what is there now");
}

#[tokio::test]
async fn of_many_rows_the_first_are_shown_and_more_is_said() {
    let world = World::new().await;
    for number in 0..=200 {
        put(&world, &format!("lamp-{number}"), 1);
    }
    let first = rows(&mut world.get("/console/tables").await).await;
    assert_eq!(first["tables"][0], json!({"name": TABLE, "rows": 200, "shown": 200, "more": true}));
    assert_eq!(first["changed"].as_array().map(Vec::len), Some(200));
}

#[tokio::test]
async fn requests_are_told_as_they_come_and_again_to_who_comes_later() {
    let world = World::new().await;
    let line = |key: &str| json!({"message": "request", "route": "GET /x", "key": key, "status": 200}).to_string();
    let mut early = world.get("/console/requests").await;
    assert_eq!(early.event().await, Some(("requests".to_owned(), json!([]))));
    world.requests.take(line("a"));
    let (_, told) = early.event().await.expect("a request");
    assert_eq!(told[0]["key"], "a");
    world.requests.take(line("b"));
    let mut late = world.get("/console/requests").await;
    let (_, told) = late.event().await.expect("requests");
    assert_eq!((&told[0]["key"], &told[1]["key"]), (&json!("a"), &json!("b")));
}
