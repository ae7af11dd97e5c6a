//! The other program. It does not use Fencepost, and writes the same item in its own way.

use super::writer::Scene;
use super::writer::{Counts, FOREIGN, KEY, SWEEP, TABLE, version_of};
use crate::harness::faults::{Applied, Touched};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The other program's way of writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// It updates the attributes that it names, demands the version, and raises it by 1 to 3.
    Updates,
    /// It puts whole items of its own attributes, demands the version, and raises it by 1.
    Puts,
    /// It updates and deletes, demands the version in both, and never creates.
    Deletes,
    /// It also deletes without a condition, and creates again at version 1.
    Recreates,
    /// It puts the item that it read, with its change, and demands nothing.
    Clobbers,
    /// It sets attributes by the values that it read, and demands nothing. The version may fall.
    Overwrites,
    /// It puts the same item at version 1 again and again, and demands nothing.
    PutsRaw,
    /// It puts back all attributes of an earlier read, those of Fencepost included, and demands nothing.
    CopiesThrough,
}

impl Style {
    pub const ALL: [Style; 8] = [
        Style::Updates,
        Style::Puts,
        Style::Deletes,
        Style::Recreates,
        Style::Clobbers,
        Style::PutsRaw,
        Style::CopiesThrough,
        Style::Overwrites,
    ];

    /// Whether each of its writes demands the version that it read.
    pub fn is_checked(self) -> bool {
        matches!(self, Style::Updates | Style::Puts | Style::Deletes)
    }
}

/// Writes so many times, with a program's usual pause between a read and its write.
pub async fn work(scene: Arc<Scene>, style: Style, turns: u64) {
    for _ in 0..turns {
        let network = &scene.network;
        sleep(Duration::from_millis(network.below(80))).await;
        let row = network.engine.row(TABLE, KEY, &scene.name);
        let think = if style == Style::CopiesThrough { 300 } else { 25 };
        sleep(Duration::from_millis(network.below(think))).await;
        let number = FOREIGN + scene.numbers.fetch_add(1, Relaxed);
        if let Some((operation, request)) = write(&scene, style, number, &row) {
            send(&scene, number, operation, request);
        }
    }
}

/// Removes the tombstone after it has ended, as the operator's sweep does.
pub async fn sweep(scene: Arc<Scene>) {
    loop {
        sleep(Duration::from_millis(scene.network.below(1_200_000))).await;
        let request = json!({
            "ConditionExpression": "version = #buried AND endsAt <= :now",
            "ExpressionAttributeNames": {"#buried": "_buried"},
            "ExpressionAttributeValues": {":now": {"N": scene.now().to_string()}},
        });
        send(&scene, SWEEP, "DeleteItem", at_key(&scene, request));
    }
}

/// The next write after a read of this row. `None` if there is nothing to write to.
fn write(scene: &Scene, style: Style, number: u64, row: &Value) -> Option<(&'static str, Value)> {
    let network = &scene.network;
    let (version, read) = (version_of(row), Counts::of(row));
    let next = read.unwrap_or(Counts { operations: Vec::new(), count: 0 }).changed(number);
    let drawn = network.below(4);
    if !row.is_object() {
        let unchecked = json!({});
        let free = json!({"ConditionExpression": "attribute_not_exists(id)"});
        let condition = if style.is_checked() || style == Style::Recreates { free } else { unchecked };
        let create = ("PutItem", put(scene, &Counts::first(number), 1, condition));
        return (style != Style::Deletes).then_some(create);
    }
    Some(match style {
        Style::Deletes if drawn == 0 => ("DeleteItem", at_key(scene, at_version(row))),
        Style::Recreates if drawn <= 1 => ("DeleteItem", at_key(scene, json!({}))),
        Style::Updates | Style::Deletes | Style::Recreates | Style::Overwrites => {
            let by = if style == Style::Updates { 1 + network.below(3) } else { 1 };
            let unchecked = json!({"ExpressionAttributeValues": {}});
            let mut request = if style == Style::Overwrites { unchecked } else { at_version(row) };
            request["UpdateExpression"] = json!("SET operations = :operations, #count = :count, version = :next");
            request["ExpressionAttributeNames"] = json!({"#count": "count"});
            let values = &mut request["ExpressionAttributeValues"];
            (values[":operations"], values[":count"]) = (operations(&next), count(&next));
            values[":next"] = json!({"N": (version + by).to_string()});
            ("UpdateItem", at_key(scene, request))
        }
        Style::Puts => ("PutItem", put(scene, &next, version + 1, at_version(row))),
        Style::Clobbers => ("PutItem", put(scene, &next, version + 1, json!({}))),
        Style::PutsRaw => ("PutItem", put(scene, &Counts { operations: Vec::new(), count: 0 }, 1, json!({}))),
        Style::CopiesThrough => ("PutItem", json!({"TableName": TABLE, "Item": row})),
    })
}

/// Demands the version of the read, or its absence.
fn at_version(row: &Value) -> Value {
    if row.get("version").is_none() {
        let condition = "attribute_exists(id) AND attribute_not_exists(version)";
        return json!({"ConditionExpression": condition, "ExpressionAttributeValues": {}});
    }
    json!({"ConditionExpression": "version = :at", "ExpressionAttributeValues": {":at": row["version"]}})
}

fn at_key(scene: &Scene, mut request: Value) -> Value {
    request["TableName"] = json!(TABLE);
    request["Key"] = json!({KEY: {"S": scene.name}});
    request
}

fn put(scene: &Scene, item: &Counts, version: u64, mut request: Value) -> Value {
    request["TableName"] = json!(TABLE);
    request["Item"] = json!({
        KEY: {"S": scene.name},
        "operations": operations(item),
        "count": count(item),
        "version": {"N": version.to_string()},
    });
    request
}

fn operations(item: &Counts) -> Value {
    json!({"L": item.operations.iter().map(|number| json!({"N": number.to_string()})).collect::<Vec<_>>()})
}

fn count(item: &Counts) -> Value {
    json!({"N": item.count.to_string()})
}

/// Sends a write past all faults, and notes it if it was applied.
fn send(scene: &Scene, number: u64, operation: &'static str, mut request: Value) {
    let network = &scene.network;
    if request["ExpressionAttributeValues"].as_object().is_some_and(serde_json::Map::is_empty) {
        request.as_object_mut().expect("a request").remove("ExpressionAttributeValues");
    }
    let (status, answer) = network.engine.answer(operation, request.to_string().as_bytes());
    assert!(status == 200 || answer.contains("ConditionalCheckFailed"), "{request}: {answer}");
    if status == 200 {
        let row = network.engine.row(TABLE, KEY, &scene.name);
        let steps = network.engine.steps_of(operation, &request).into_iter();
        let rows = steps.map(|step| Touched { step, row: row.clone() }).collect();
        let applied = Applied { op: number, time: Instant::now(), rows, is_copy_of_refused: false };
        network.applied().push(applied);
    }
}

/// Puts the other program's first row: without a version, at 0 or at 3.
pub fn found(scene: &Scene) {
    let number = FOREIGN + scene.numbers.fetch_add(1, Relaxed);
    let mut request = put(scene, &Counts::first(number), 3, json!({}));
    match scene.network.below(3) {
        0 => request["Item"]["version"] = json!({"N": "0"}),
        1 => drop(request["Item"].as_object_mut().expect("an item").remove("version")),
        _ => {}
    }
    send(scene, number, "PutItem", request);
}
