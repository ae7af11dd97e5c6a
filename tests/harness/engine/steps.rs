//! What a request of the service's JSON protocol does to which rows.

use serde_json::Value;

/// One action on one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// By the name of the permission that it needs: `PutItem`, `ConditionCheckItem` …
    pub action: &'static str,
    pub table: String,
    /// The partition key's value.
    pub id: String,
}

/// The members of a transaction's steps, and the permissions that they need.
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
const SINGLE: &[&str] = &["GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "DescribeTable"];

/// Whether an operation only reads.
pub fn is_read(operation: &str) -> bool {
    ["GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan", "DescribeTable"].contains(&operation)
}

/// The action of a transaction's step and what it is applied to.
pub fn action_of(step: &Value) -> (&'static str, &Value) {
    let action = ACTIONS.iter().find_map(|(member, action)| Some((*action, step.get(member)?)));
    action.unwrap_or_else(|| panic!("no step of a transaction: {step}"))
}

/// Each step of a request: its action, its table, and where its key is.
fn parts_of<'a>(operation: &str, body: &'a Value) -> Vec<(&'static str, &'a str, Option<&'a Value>)> {
    let of_one = |action: &'static str, request: &'a Value| {
        let table = request["TableName"].as_str().expect("a table");
        (action, table, request.get("Key").or_else(|| request.get("Item")))
    };
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            let steps = body["TransactItems"].as_array().expect("steps").iter().map(action_of);
            steps.map(|(action, request)| of_one(action, request)).collect()
        }
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().expect("tables").iter();
            let keys = tables.flat_map(|(table, wanted)| {
                wanted["Keys"].as_array().expect("keys").iter().map(move |key| (table.as_str(), key))
            });
            keys.map(|(table, key)| ("BatchGetItem", table, Some(key))).collect()
        }
        _ => {
            let action = SINGLE.iter().find(|single| **single == operation);
            vec![of_one(action.unwrap_or_else(|| panic!("the tests do not know the steps of {operation}")), body)]
        }
    }
}

/// The action of each step of a request, and its table, or the index of a table as a policy names it.
pub fn resources_of(operation: &str, body: &Value) -> Vec<(&'static str, String)> {
    let index = body["IndexName"].as_str().map(|index| format!("/index/{index}")).unwrap_or_default();
    parts_of(operation, body).into_iter().map(|(action, table, _)| (action, format!("{table}{index}"))).collect()
}

/// Each step of a request, where `key_of` says the partition key of a table.
pub fn steps_of<'a>(operation: &str, body: &Value, key_of: impl Fn(&str) -> &'a str) -> Vec<Step> {
    let step = |(action, table, holder): (&'static str, &str, Option<&Value>)| {
        let id = holder.and_then(|holder| holder[key_of(table)]["S"].as_str()).unwrap_or_default();
        Step { action, table: table.to_owned(), id: id.to_owned() }
    };
    parts_of(operation, body).into_iter().map(step).collect()
}
