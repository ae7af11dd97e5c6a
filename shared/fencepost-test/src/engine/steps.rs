//! The rows and actions of a request in the service's JSON protocol.

use serde_json::Value;

/// One action on one row, or on a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// By the name of the permission that it needs: `PutItem`, `ConditionCheckItem` …
    pub action: &'static str,
    /// The table.
    pub table: String,
    /// The partition key's value as text. Empty where the request names no row.
    pub id: String,
    /// The whole key, in `DynamoDB`'s JSON. `Null` where the request names no row.
    pub key: Value,
}

/// The members of a transaction's steps with the permissions that they need.
///
/// [IAM and transactions](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html)
const ACTIONS: &[(&str, &str)] = &[
    ("Put", "PutItem"),
    ("Update", "UpdateItem"),
    ("Delete", "DeleteItem"),
    ("ConditionCheck", "ConditionCheckItem"),
    ("Get", "GetItem"),
];

/// The operations on one row or one table, each of which is its own permission.
const SINGLE: &[&str] = &[
    "GetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "Query",
    "Scan",
    "CreateTable",
    "DescribeTable",
    "UpdateTable",
    "DeleteTable",
    "UpdateTimeToLive",
    "DescribeTimeToLive",
];

/// The operations that only read.
const READS: &[&str] = &[
    "GetItem",
    "BatchGetItem",
    "TransactGetItems",
    "Query",
    "Scan",
    "DescribeTable",
    "ListTables",
    "DescribeTimeToLive",
];

/// Whether an operation only reads. A statement in `PartiQL` counts as a write.
pub fn is_read(operation: &str) -> bool {
    READS.contains(&operation)
}

/// The action of a transaction's step and its request.
pub fn action_of(step: &Value) -> (&'static str, &Value) {
    let action = ACTIONS.iter().find_map(|(member, action)| Some((*action, step.get(member)?)));
    action.unwrap_or_else(|| panic!("no step of a transaction: {step}"))
}

/// Each step of a request: its action, its table, and where its key is.
fn parts_of<'a>(operation: &str, body: &'a Value) -> Vec<(&'static str, &'a str, Option<&'a Value>)> {
    let of_one = |action: &'static str, request: &'a Value| {
        let holder = request.get("Key").or_else(|| request.get("Item"));
        Some((action, request["TableName"].as_str()?, holder))
    };
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            let steps = body["TransactItems"].as_array().into_iter().flatten().map(action_of);
            steps.filter_map(|(action, request)| of_one(action, request)).collect()
        }
        "BatchGetItem" => members_of(body, |wanted| wanted["Keys"].as_array())
            .map(|(table, key)| ("BatchGetItem", table, Some(key)))
            .collect(),
        "BatchWriteItem" => {
            let key = |write: &'a Value| {
                write.get("PutRequest").map(|put| &put["Item"]).or_else(|| Some(&write.get("DeleteRequest")?["Key"]))
            };
            let writes = members_of(body, Value::as_array);
            writes.map(|(table, write)| ("BatchWriteItem", table, key(write))).collect()
        }
        _ => {
            let action = SINGLE.iter().find(|single| **single == operation);
            action.and_then(|action| of_one(action, body)).into_iter().collect()
        }
    }
}

/// The members of a batch, each with its table.
fn members_of<'a>(
    body: &'a Value,
    list: impl Fn(&'a Value) -> Option<&'a Vec<Value>> + 'a,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let tables = body["RequestItems"].as_object().into_iter().flatten();
    tables.flat_map(move |(table, of_table)| {
        list(of_table).into_iter().flatten().map(move |member| (table.as_str(), member))
    })
}

/// The action of each step of a request with its table or index, as a policy names it.
pub fn resources_of(operation: &str, body: &Value) -> Vec<(&'static str, String)> {
    let index = body["IndexName"].as_str().map(|index| format!("/index/{index}")).unwrap_or_default();
    parts_of(operation, body).into_iter().map(|(action, table, _)| (action, format!("{table}{index}"))).collect()
}

/// Each step of a request, where `keys_of` gives the attributes of a table's key, the partition key first.
pub fn steps_of(operation: &str, body: &Value, keys_of: impl Fn(&str) -> Vec<String>) -> Vec<Step> {
    let step = |(action, table, holder): (&'static str, &str, Option<&Value>)| {
        let names = if holder.is_some() { keys_of(table) } else { Vec::new() };
        let value = |name: &String| Some((name.clone(), holder?.get(name)?.clone()));
        let id = names.first().and_then(value).map(|(_, id)| text_of(&id)).unwrap_or_default();
        let key: serde_json::Map<_, _> = names.iter().filter_map(value).collect();
        let key = if key.is_empty() { Value::Null } else { Value::Object(key) };
        Step { action, table: table.to_owned(), id, key }
    };
    parts_of(operation, body).into_iter().map(step).collect()
}

/// A text, a number or a binary value of `DynamoDB`'s JSON as text.
fn text_of(value: &Value) -> String {
    let mut members = value.as_object().into_iter().flatten();
    members.find_map(|(_, value)| value.as_str()).unwrap_or_default().to_owned()
}
