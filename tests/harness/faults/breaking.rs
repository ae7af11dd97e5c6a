//! What requests and answers look like when a rule is broken on purpose.

use super::broken::Broken;
use crate::harness::engine::action_of;
use serde_json::{Map, Value, json};

/// Every item that an answer shows: that of one row's refusal or read, and those of a cancellation.
pub(super) fn items_of(answer: &mut Value) -> Vec<&mut Value> {
    let Some(members) = answer.as_object_mut() else { return Vec::new() };
    let mut items = Vec::new();
    for (name, value) in members {
        match name.as_str() {
            "Item" => items.push(value),
            "CancellationReasons" => {
                let reasons = value.as_array_mut().into_iter().flatten();
                items.extend(reasons.filter_map(|reason| reason.get_mut("Item")));
            }
            _ => {}
        }
    }
    items
}

pub(super) fn memory_of(item: &mut Value) -> Option<&mut Map<String, Value>> {
    item.get_mut("_writes")?.get_mut("M")?.as_object_mut()
}

/// The id of the last write that an item remembers.
fn last_id_of(item: &Value) -> Option<String> {
    let before = |trace: &Value| trace["N"].as_str().and_then(|version| version.parse::<i64>().ok()).map(i64::abs);
    let traces = item["_writes"]["M"].as_object()?;
    traces.iter().max_by_key(|(_, trace)| before(trace)).map(|(id, _)| id.clone())
}

/// Makes the rows' memory of their writers missing in an answer, or that of the last one alone.
pub fn without_memory(answer: &mut Value, keep_last: bool) {
    for item in items_of(answer) {
        let last = last_id_of(item);
        if let (Some(last), Some(memory)) = (last, memory_of(item)) {
            memory.retain(|id, _| keep_last && *id == last);
        }
    }
}

/// Makes the updates of a transaction leave no id, and drops the placeholders that nothing names then.
pub fn without_ids(transaction: &mut Value) {
    for step in transaction["TransactItems"].as_array_mut().into_iter().flatten() {
        let Some(update) = step.get_mut("Update") else { continue };
        let Some((from, to)) = id_clause(update) else { continue };
        let expression = update["UpdateExpression"].as_str().unwrap_or_default();
        let (before, after) = (&expression[..from], &expression[to..]);
        let kept = match (before.strip_suffix(", "), after.strip_prefix(", ")) {
            (Some(before), _) => format!("{before}{after}"),
            (None, Some(after)) => format!("{before}{after}"),
            (None, None) => after.trim_start().to_owned(),
        };
        update["UpdateExpression"] = json!(kept);
        drop_unused(update);
    }
}

/// Drops the placeholders that neither expression names.
pub(super) fn drop_unused(write: &mut Value) {
    let text = |member: &str| write[member].as_str().unwrap_or_default().to_owned();
    let named = format!("{} {}", text("UpdateExpression"), text("ConditionExpression"));
    for member in ["ExpressionAttributeNames", "ExpressionAttributeValues"] {
        let Some(placeholders) = write.get_mut(member).and_then(Value::as_object_mut) else { continue };
        placeholders.retain(|placeholder, _| words(&named).any(|word| word == placeholder));
        if placeholders.is_empty() {
            write.as_object_mut().and_then(|write| write.remove(member));
        }
    }
}

/// The steps of a transaction, or the one write that the request is.
pub(super) fn steps_of(request: &mut Value) -> Vec<&mut Value> {
    if request.get("TransactItems").is_none() {
        return vec![request];
    }
    let steps = request["TransactItems"].as_array_mut().into_iter().flatten();
    steps.filter_map(Value::as_object_mut).flat_map(Map::values_mut).collect()
}

/// The version of a stored row.
pub(super) fn version_of(row: &Value) -> u64 {
    row["_version"]["N"].as_str().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Leaves a rule of leases out of the conditions of a request's writes.
pub fn without_rule(request: &mut Value, broken: Broken) {
    const HELD: &str = "#token = :token AND attribute_exists(#holder)";
    for step in steps_of(request) {
        let Some(condition) = step["ConditionExpression"].as_str() else { continue };
        let renews = step["UpdateExpression"].as_str().is_some_and(|update| update.starts_with("SET #renewals"));
        let left = match broken {
            Broken::NoFence => condition.replace(" AND (attribute_not_exists(#fence) OR #fence <= :fence)", ""),
            Broken::NotRequired if condition == HELD => {
                "attribute_exists(#holder) OR attribute_not_exists(#holder)".to_owned()
            }
            Broken::RenewalsUnchecked if renews => condition.replace(" AND #renewals = :at", ""),
            Broken::HolderUnchecked if renews => condition.replace(" AND attribute_exists(#holder)", ""),
            _ => continue,
        };
        step["ConditionExpression"] = json!(left);
        drop_unused(step);
    }
}

/// Where an update's expression leaves an id: `#writes.#id = :at`, whatever the placeholders are called.
fn id_clause(update: &Value) -> Option<(usize, usize)> {
    let names = update["ExpressionAttributeNames"].as_object()?;
    let (placeholder, _) = names.iter().find(|(_, name)| *name == "_writes")?;
    let expression = update["UpdateExpression"].as_str()?;
    let from = expression.find(&format!("{placeholder}."))?;
    let rest = &expression[from..];
    let ends = [",", " REMOVE ", " ADD ", " DELETE "].into_iter().filter_map(|end| rest.find(end));
    Some((from, from + ends.min().unwrap_or(rest.len())))
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|letter: char| !letter.is_alphanumeric() && !['_', '#', ':'].contains(&letter))
}

/// Hides from a cancellation what the request itself left in the items: the incarnations of its puts, and its write
/// ids.
pub fn without_own_traces(answer: &mut Value, request: &Value) {
    let steps = request["TransactItems"].as_array().into_iter().flatten();
    let actions: Vec<_> = steps.map(|step| action_of(step).1).collect();
    let ids: Vec<_> = actions.iter().filter_map(|action| write_id_of(action)).collect();
    let reasons = answer.get_mut("CancellationReasons").and_then(Value::as_array_mut).into_iter().flatten();
    for (reason, action) in reasons.zip(actions) {
        let Some(item) = reason.get_mut("Item") else { continue };
        if let Some(mine) = action.get("Item").and_then(|item| item.get("_incarnation"))
            && item.get("_incarnation") == Some(mine)
        {
            item["_incarnation"] = json!({"B": "AAAAAAAAAAA="});
        }
        if let Some(memory) = memory_of(item) {
            memory.retain(|id, _| !ids.contains(id));
        }
    }
}

/// The write id that a step leaves: the last of the item that it puts, or the one that it sets.
fn write_id_of(action: &Value) -> Option<String> {
    if let Some(item) = action.get("Item") {
        return last_id_of(item);
    }
    let (from, to) = id_clause(action)?;
    let (path, _) = action["UpdateExpression"].as_str()?[from..to].split_once(" = ")?;
    let (_, placeholder) = path.split_once('.')?;
    action["ExpressionAttributeNames"][placeholder].as_str().map(str::to_owned)
}

/// Takes the condition of a put away.
pub fn without_condition(put: &mut Value) {
    for member in ["ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"] {
        put.as_object_mut().and_then(|put| put.remove(member));
    }
}

/// Makes a condition ask for equality wherever it asks for an order.
pub fn with_equality(put: &mut Value) {
    if let Some(Value::String(condition)) = put.get_mut("ConditionExpression") {
        *condition = condition.replace("<=", "=").replace('<', "=");
    }
}

#[test]
fn a_condition_is_taken_away_or_made_equality() {
    let put = json!({
        "Item": {"id": {"S": "a"}},
        "ConditionExpression": "attribute_not_exists(#key) OR #a <= :a AND #b < :b",
        "ExpressionAttributeNames": {"#key": "id", "#a": "a", "#b": "b"},
        "ExpressionAttributeValues": {":a": {"N": "1"}, ":b": {"N": "2"}},
    });
    let mut equal = put.clone();
    with_equality(&mut equal);
    assert_eq!(equal["ConditionExpression"], "attribute_not_exists(#key) OR #a = :a AND #b = :b");
    let mut free = put;
    without_condition(&mut free);
    assert_eq!(free, json!({"Item": {"id": {"S": "a"}}}));
}

#[test]
fn a_rule_of_leases_is_left_out_with_its_placeholders() {
    let write = |update: &str, condition: &str, names: &[&str], values: &[&str]| {
        let names: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!("a"))).collect();
        let values: Map<_, _> = values.iter().map(|value| ((*value).to_owned(), json!({"N": "1"}))).collect();
        let mut write = json!({"UpdateExpression": update, "ConditionExpression": condition});
        write["ExpressionAttributeNames"] = Value::Object(names);
        if !values.is_empty() {
            write["ExpressionAttributeValues"] = Value::Object(values);
        }
        write
    };
    let renewal = "SET #renewals = #renewals + :one";
    let held = "#token = :token AND attribute_exists(#holder)";
    let fenced = "#version = :at AND (attribute_not_exists(#fence) OR #fence <= :fence)";
    let either = "attribute_exists(#holder) OR attribute_not_exists(#holder)";
    for (broken, before, after) in [
        (
            Broken::NoFence,
            write("SET #n = :n", fenced, &["#n", "#version", "#fence"], &[":n", ":at", ":fence"]),
            write("SET #n = :n", "#version = :at", &["#n", "#version"], &[":n", ":at"]),
        ),
        (
            Broken::NotRequired,
            write("", held, &["#token", "#holder"], &[":token"]),
            write("", either, &["#holder"], &[]),
        ),
        (
            Broken::RenewalsUnchecked,
            write(
                renewal,
                &format!("{held} AND #renewals = :at"),
                &["#renewals", "#holder"],
                &[":one", ":token", ":at"],
            ),
            write(renewal, held, &["#renewals", "#holder"], &[":one", ":token"]),
        ),
        (
            Broken::HolderUnchecked,
            write(renewal, held, &["#renewals", "#token", "#holder"], &[":one", ":token"]),
            write(renewal, "#token = :token", &["#renewals", "#token"], &[":one", ":token"]),
        ),
    ] {
        let mut alone = before.clone();
        without_rule(&mut alone, broken);
        assert_eq!(alone, after, "{broken:?}");
        let mut transaction = json!({"TransactItems": [{"Update": before}]});
        without_rule(&mut transaction, broken);
        assert_eq!(transaction["TransactItems"][0]["Update"], after, "{broken:?}");
        without_rule(&mut alone, Broken::Nothing);
        assert_eq!(alone, after, "nothing is broken");
    }
}

#[test]
fn a_transaction_without_ids_names_nothing_that_it_does_not_use() {
    let with = |expression: &str, names: Value, values: Value| {
        json!({"TransactItems": [{"Update": {
            "UpdateExpression": expression,
            "ConditionExpression": "#version = :at",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }}]})
    };
    let names = json!({"#version": "_version", "#writes": "_writes", "#id": "x", "#s1": "a", "#s10": "b", "#p": "p"});
    let left = json!({"#version": "_version", "#s1": "a", "#s10": "b", "#p": "p"});
    let values = json!({":at": {"N": "2"}, ":next": {"N": "3"}, ":s1": {"N": "1"}});
    for (before, after) in [
        (
            "SET #version = :next, #writes.#id = :at, #s1 = :s1, #s10 = :s1 REMOVE #p",
            "SET #version = :next, #s1 = :s1, #s10 = :s1 REMOVE #p",
        ),
        ("SET #writes.#id = :at, #version = :next, #s1 = :s1, #s10 = #p", "SET #version = :next, #s1 = :s1, #s10 = #p"),
        (
            "SET #s1 = :s1, #s10 = #p, #version = :next, #writes.#id = :at REMOVE #p",
            "SET #s1 = :s1, #s10 = #p, #version = :next REMOVE #p",
        ),
    ] {
        let mut transaction = with(before, names.clone(), values.clone());
        without_ids(&mut transaction);
        assert_eq!(transaction, with(after, left.clone(), values.clone()));
    }
}

#[test]
fn a_cancellation_without_its_own_traces_shows_those_of_others() {
    let row = |incarnation: &str, version: &str, memory: Value| json!({"_incarnation": {"B": incarnation}, "_version": {"N": version}, "_writes": {"M": memory}});
    let before = |version: &str| json!({"N": version});
    let update = json!({
        "UpdateExpression": "SET #version = :next, #writes.#id = :at",
        "ExpressionAttributeNames": {"#version": "_version", "#writes": "_writes", "#id": "mine"},
        "ExpressionAttributeValues": {":next": {"N": "3"}, ":at": {"N": "2"}},
    });
    let request = json!({"TransactItems": [
        {"Put": {"Item": row("bWluZQ==", "1", json!({"mine": before("0")}))}},
        {"Update": update},
        {"ConditionCheck": {}},
    ]});
    let reason = |item: Value| json!({"Code": "ConditionalCheckFailed", "Item": item});
    let mut answer = json!({"CancellationReasons": [
        reason(row("bWluZQ==", "2", json!({"mine": before("0"), "other": before("1")}))),
        reason(row("b3RoZXI=", "4", json!({"mine": before("2"), "other": before("3")}))),
        {"Code": "None"},
    ]});
    without_own_traces(&mut answer, &request);
    let expected = json!({"CancellationReasons": [
        reason(row("AAAAAAAAAAA=", "2", json!({"other": before("1")}))),
        reason(row("b3RoZXI=", "4", json!({"other": before("3")}))),
        {"Code": "None"},
    ]});
    assert_eq!(answer, expected);
}
