//! What requests, rows and answers look like when a rule of adds, of burns or of the memory of a row is broken on purpose.

use super::breaking::{drop_unused, items_of, memory_of, steps_of, version_of};
use super::broken::Broken;
use fencepost_test::{Engine, Network, Step};
use serde_json::{Value, json};

const IS_NEW: &str = "attribute_not_exists(#writes.#id)";
const IS_IN_WINDOW: &str = "#version BETWEEN :first AND :last";
const IS_SAME_ROW: &str = "#incarnation = :incarnation";
const IS_ANY: &str = "attribute_exists(#version)";
const ADDS: &str = "#writes.#id = #version";
const BURNS: &str = "#writes.#id = :zero - #version";

/// Leaves a rule out of the adds, the burns or the versioned writes of a request.
pub fn without_rule(request: &mut Value, broken: Broken) {
    for step in steps_of(request) {
        let text = |member: &str| step[member].as_str().unwrap_or_default().to_owned();
        let (update, condition) = (text("UpdateExpression"), text("ConditionExpression"));
        let (adds, burns) = (update.contains(ADDS), update.contains(BURNS));
        let (update, condition) = match broken {
            Broken::AddOfAnyId if adds => (update, condition.replace(IS_NEW, IS_ANY)),
            Broken::AddNeverLate if adds => (update, condition.replace(IS_IN_WINDOW, "#version >= :first")),
            Broken::AddNeverEarly if adds => (update, condition.replace(IS_IN_WINDOW, "#version <= :last")),
            Broken::BurnOfAnyId if burns => (update, condition.replace(IS_NEW, IS_ANY)),
            Broken::BurnLeavesNothing if burns => (update.replace(&format!(", {BURNS}"), ""), condition),
            Broken::BurnAtAnyVersion if burns => (update, condition.replace(IS_IN_WINDOW, IS_ANY)),
            Broken::BurnAsAdd if burns => (update.replace(BURNS, ADDS), condition),
            Broken::AnyIncarnation if condition.contains(IS_SAME_ROW) => {
                (update, condition.replace(IS_SAME_ROW, IS_ANY))
            }
            _ => continue,
        };
        if !update.is_empty() {
            step["UpdateExpression"] = json!(update);
        }
        step["ConditionExpression"] = json!(condition);
        drop_unused(step);
    }
}

/// Gives a write another id on every send but the first.
pub fn with_fresh_id(update: &mut Value, network: &Network, was_sent: impl Fn(&str) -> bool) {
    if let Some(id) = update.get_mut("ExpressionAttributeNames").and_then(|names| names.get_mut("#id"))
        && was_sent(id.as_str().unwrap_or_default())
    {
        *id = json!(format!("F{:09}A", network.below(1_000_000_000)));
    }
}

/// Makes a row that a commit has just left forget what it should remember.
pub fn forget(engine: &Engine, broken: Broken, step: &Step, before: &Value) {
    let mut row = engine.row_at(&step.table, &step.key);
    let (version, was_deleted) = (version_of(&row), before.get("_purgeAt").is_some());
    let Some(memory) = memory_of(&mut row) else { return };
    let trace = |trace: &Value| {
        let version = trace["N"].as_str().and_then(|version| version.parse::<i64>().ok());
        version.unwrap_or_default().unsigned_abs()
    };
    memory.retain(|_, left| match broken {
        Broken::Forgets { after } => trace(left) + after > version,
        Broken::RevivedWithoutMemory => !was_deleted || trace(left) == version - 1,
        _ => true,
    });
    let request = json!({
        "TableName": step.table,
        "Key": step.key,
        "UpdateExpression": "SET #writes = :left",
        "ExpressionAttributeNames": {"#writes": "_writes"},
        "ExpressionAttributeValues": {":left": row["_writes"]},
    });
    engine.raw("UpdateItem", &request);
}

/// Shows burned writes as applied ones.
pub fn without_burns(answer: &mut Value) {
    for item in items_of(answer) {
        for trace in memory_of(item).into_iter().flat_map(|memory| memory.values_mut()) {
            let version = trace["N"].as_str().unwrap_or_default().trim_start_matches('-').to_owned();
            *trace = json!({"N": version});
        }
    }
}

#[test]
fn a_rule_is_left_out_of_adds_or_of_burns_alone() {
    let whole = format!("{IS_SAME_ROW} AND {IS_IN_WINDOW} AND {IS_NEW}");
    let write = |update: &str, condition: &str| {
        let mut write = json!({
            "UpdateExpression": format!("SET #version = #version + :one, {update}"),
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {
                "#version": "_version", "#incarnation": "_incarnation", "#writes": "_writes", "#id": "id",
            },
            "ExpressionAttributeValues": {
                ":one": {"N": "1"}, ":zero": {"N": "0"}, ":first": {"N": "3"}, ":last": {"N": "6"},
                ":incarnation": {"B": "bWluZQ=="},
            },
        });
        drop_unused(&mut write);
        write
    };
    let (add, burn) = (write(ADDS, &whole), write(BURNS, &whole));
    let replaced = |rule: &str, by: &str| whole.replace(rule, by);
    for (broken, added, burned) in [
        (Broken::AddOfAnyId, write(ADDS, &replaced(IS_NEW, IS_ANY)), burn.clone()),
        (Broken::AddNeverLate, write(ADDS, &replaced(IS_IN_WINDOW, "#version >= :first")), burn.clone()),
        (Broken::AddNeverEarly, write(ADDS, &replaced(IS_IN_WINDOW, "#version <= :last")), burn.clone()),
        (Broken::BurnOfAnyId, add.clone(), write(BURNS, &replaced(IS_NEW, IS_ANY))),
        (Broken::BurnAtAnyVersion, add.clone(), write(BURNS, &replaced(IS_IN_WINDOW, IS_ANY))),
        (Broken::BurnAsAdd, add.clone(), write(ADDS, &whole)),
    ] {
        let mut both = json!({"TransactItems": [{"Update": add}, {"Update": burn}]});
        without_rule(&mut both, broken);
        assert_eq!(both, json!({"TransactItems": [{"Update": added}, {"Update": burned}]}), "{broken:?}");
    }
}
