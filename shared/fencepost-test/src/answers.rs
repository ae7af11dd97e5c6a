//! Answers of the service that the embedded engine never gives.

use crate::capacity::{Limit, Throttled};
use crate::connection::{Answer, Request, TRANSACTION};
use crate::engine::action_of;
use serde_json::{Map, Value, json};

/// An error of the service that says nothing but its name.
pub fn error(status: u16, code: &str) -> Answer {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    Answer { status, body: json!({"__type": kind, "message": "on purpose"}) }
}

/// A transaction is cancelled because of others in flight that some of its steps met.
pub fn cancelled_by_conflict(met: &[bool]) -> Answer {
    let reasons: Vec<_> = met.iter().map(|met| if *met { conflict() } else { json!({"Code": "None"}) }).collect();
    cancelled(&reasons)
}

const PROVISIONED: &str = "The level of configured provisioned throughput for the table was exceeded. \
    Consider increasing your provisioning level with the UpdateTable API.";
const ON_DEMAND: &str = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically \
    scaling your table or index so please try again shortly. If exceptions persist, check if you have a hot key: \
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html.";

/// A request is throttled. One of the three errors names its member with reasons in another case.
pub fn throttled(met: &[Throttled]) -> Answer {
    let (code, member, message) = match met.first() {
        Some(met) if met.is_provisioned => ("ProvisionedThroughputExceededException", "ThrottlingReasons", PROVISIONED),
        Some(met) if met.limit == Limit::Account => ("RequestLimitExceeded", "ThrottlingReasons", ON_DEMAND),
        _ => ("ThrottlingException", "throttlingReasons", ON_DEMAND),
    };
    let mut answer = error(400, code);
    answer.body["message"] = json!(message);
    answer.body[member] = met.iter().map(Throttled::reason).collect();
    answer
}

/// A transaction is cancelled because some of its steps met an exhausted capacity.
pub fn cancelled_by_throttling(met: &[Option<Throttled>]) -> Answer {
    let reason = |met: &Option<Throttled>| match met {
        None => json!({"Code": "None"}),
        Some(met) if met.is_provisioned => json!({"Code": "ProvisionedThroughputExceeded", "Message": PROVISIONED}),
        Some(_) => json!({"Code": "ThrottlingError", "Message": ON_DEMAND}),
    };
    cancelled(&met.iter().map(reason).collect::<Vec<_>>())
}

/// A transaction is cancelled, with one reason for each of its steps.
fn cancelled(reasons: &[Value]) -> Answer {
    let codes: Vec<_> = reasons.iter().filter_map(|reason| reason["Code"].as_str()).collect();
    let codes = codes.join(", ");
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"),
        "CancellationReasons": reasons,
    });
    Answer { status: 400, body }
}

/// A conditional write is refused although its row is unchanged. Where the request asks for the item, it is shown.
///
/// `row` reads the row of each step.
pub fn refused(request: &Request, row: impl Fn(usize) -> Value) -> Answer {
    let refuse = |write: &Value, step: usize, mut refusal: Value| {
        if write["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
            && let item @ Value::Object(_) = row(step)
        {
            refusal["Item"] = item;
        }
        refusal
    };
    if request.operation != TRANSACTION {
        let kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        let refusal = json!({"__type": kind, "message": "The conditional request failed"});
        return Answer { status: 400, body: refuse(&request.body, 0, refusal) };
    }
    let reason = |(number, step): (usize, &Value)| {
        let (_, write) = action_of(step);
        if write.get("ConditionExpression").is_none() {
            return json!({"Code": "None"});
        }
        let reason = json!({"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"});
        refuse(write, number, reason)
    };
    let steps = request.body["TransactItems"].as_array().into_iter().flatten();
    cancelled(&steps.enumerate().map(reason).collect::<Vec<_>>())
}

/// Whether a request or a step of it has a condition.
pub fn is_conditional(request: &Request) -> bool {
    let mut steps = request.body["TransactItems"].as_array().into_iter().flatten().map(|step| action_of(step).1);
    let is_conditional = |write: &Value| write.get("ConditionExpression").is_some();
    is_conditional(&request.body) || steps.any(is_conditional)
}

fn conflict() -> Value {
    json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"})
}

/// Shows transactions in flight in place of some of the reasons of a cancellation.
pub fn mix_reasons(answer: &mut Value, some_of: impl Fn(usize) -> Vec<bool>) {
    let Some(reasons) = answer.get_mut("CancellationReasons").and_then(Value::as_array_mut) else { return };
    let met = some_of(reasons.len());
    for (reason, met) in reasons.iter_mut().zip(met) {
        if met {
            *reason = conflict();
        }
    }
}

/// Takes some of the members out of a batch, and returns them in the shape of `UnprocessedKeys` or `UnprocessedItems`.
pub fn leave_out(request: &mut Value, some_of: impl Fn(usize) -> Vec<bool>) -> Value {
    let tables = request["RequestItems"].as_object_mut().expect("tables");
    let mut left_out = Map::new();
    let count = tables.values_mut().map(|wanted| members_of(wanted).len()).sum();
    let mut chosen = some_of(count).into_iter();
    for (table, wanted) in tables.iter_mut() {
        let out: Vec<_> = members_of(wanted).extract_if(.., |_| chosen.next() == Some(true)).collect();
        if !out.is_empty() {
            let mut same = wanted.clone();
            *members_of(&mut same) = out;
            left_out.insert(table.clone(), same);
        }
    }
    tables.retain(|_, wanted| !members_of(wanted).is_empty());
    Value::Object(left_out)
}

/// The keys or the writes of a batch in one table.
fn members_of(wanted: &mut Value) -> &mut Vec<Value> {
    let members = if wanted.is_array() { wanted } else { &mut wanted["Keys"] };
    members.as_array_mut().expect("members")
}
