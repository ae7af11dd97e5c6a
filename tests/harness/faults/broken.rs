//! The rules that a test can break on purpose, and how requests, answers and rows look without them.

use fencepost_test::{Engine, Network, Step, action_of};
use serde_json::{Map, Value, json};

/// A rule that is broken on purpose, to show that the histories notice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Broken {
    Nothing,
    /// Refusals show no write ids: the judge has no evidence.
    NoJudge,
    /// Refusals show the last writer's id alone.
    LastWriterOnly,
    /// A deleted row is gone at once: no tombstone.
    RowsDeleted,
    /// A lost answer is forgotten when the resend is throttled.
    ThrottlingClears,
    /// The steps of a transaction leave no write id behind.
    NoIdInTransactions,
    /// Nothing is refused because of a lower fencing token.
    NoFence,
    /// A transaction does not ask whether its required lease is held.
    NotRequired,
    /// The row of a lease disappears on release: its tokens start again from the first.
    LeasesDeleted,
    /// A renewal does not ask how often the lease was renewed.
    RenewalsUnchecked,
    /// A renewal does not ask whether the lease is held.
    HolderUnchecked,
    /// Cancellations hide the request's own traces: a failed condition of a step decides before the judge is asked
    /// whether the transaction landed.
    GuardBeforeJudge,
    /// All transactions of one operation have the token of its first.
    TokenReused,
    /// An add does not ask whether its row remembers it.
    AddOfAnyId,
    /// The window of an add has no upper bound.
    AddNeverLate,
    /// Rows forget each id after so many commits.
    Forgets {
        after: u64,
    },
    /// A burn stores no id.
    BurnLeavesNothing,
    /// A burn stores the id as an applied write does.
    BurnAsAdd,
    /// Burned writes are judged as applied ones.
    BurnsIgnored,
    /// A write has another id on every send but the first.
    FreshIds,
    /// The create on a tombstone forgets the memory of the row.
    RevivedWithoutMemory,
    /// Puts have no condition.
    NoCondition,
    /// The conditions of puts ask whether values are equal where they should ask for their order.
    OnlyEqual,
    /// A write that met one of another Region is answered as if it were applied.
    ConflictHidden,
    /// A client's transaction does not check the items that it only reads.
    Unchecked,
    /// Leaders take a lease as soon as it has ended by their own clocks.
    NoSkew,
    /// Clients create and delete an item although another program removes its row.
    CreatesToo,
}

const IS_NEW: &str = "attribute_not_exists(#writes.#id)";
const IS_IN_WINDOW: &str = "#version BETWEEN :first AND :last";
const IS_ANY: &str = "attribute_exists(#version)";
const ADDS: &str = "#writes.#id = #version";
const BURNS: &str = "#writes.#id = :zero - #version";

/// Every item in an answer: the one of a refusal or a read, and those of a cancellation.
fn items_of(answer: &mut Value) -> Vec<&mut Value> {
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

fn memory_of(item: &mut Value) -> Option<&mut Map<String, Value>> {
    item.get_mut("_writes")?.get_mut("M")?.as_object_mut()
}

/// The id of the last write in the memory of an item.
fn last_id_of(item: &Value) -> Option<String> {
    let before = |trace: &Value| trace["N"].as_str().and_then(|version| version.parse::<i64>().ok()).map(i64::abs);
    let traces = item["_writes"]["M"].as_object()?;
    traces.iter().max_by_key(|(_, trace)| before(trace)).map(|(id, _)| id.clone())
}

/// Removes the rows' memory of their writers from an answer, or their memory of the last one alone.
pub fn without_memory(answer: &mut Value, keep_last: bool) {
    for item in items_of(answer) {
        let last = last_id_of(item);
        if let (Some(last), Some(memory)) = (last, memory_of(item)) {
            memory.retain(|id, _| keep_last && *id == last);
        }
    }
}

/// Makes the updates of a transaction leave no id, and drops the placeholders that become unused.
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
pub fn drop_unused(write: &mut Value) {
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

/// The steps of a transaction, or the single write of another request.
fn steps_of(request: &mut Value) -> Vec<&mut Value> {
    if request.get("TransactItems").is_none() {
        return vec![request];
    }
    let steps = request["TransactItems"].as_array_mut().into_iter().flatten();
    steps.filter_map(Value::as_object_mut).flat_map(Map::values_mut).collect()
}

/// The version of a stored row.
fn version_of(row: &Value) -> u64 {
    row["_version"]["N"].as_str().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Leaves a rule of leases out of the conditions of a request's writes.
pub fn leave_out_of_leases(request: &mut Value, broken: Broken) {
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

/// The place in an update's expression where it leaves an id: `#writes.#id = :at`, with any names of placeholders.
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

/// Hides the request's own traces from a cancellation: the incarnations of its puts, and its write ids.
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

/// The write id of a step: the last one in a put item, or the one set by an update.
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

/// Replaces each comparison of order in a condition by one of equality.
pub fn with_equality(put: &mut Value) {
    if let Some(Value::String(condition)) = put.get_mut("ConditionExpression") {
        *condition = condition.replace("<=", "=").replace('<', "=");
    }
}

/// Leaves a rule out of the adds or the burns of a request.
pub fn leave_out(request: &mut Value, broken: Broken) {
    for step in steps_of(request) {
        let text = |member: &str| step[member].as_str().unwrap_or_default().to_owned();
        let (update, condition) = (text("UpdateExpression"), text("ConditionExpression"));
        let (adds, burns) = (update.contains(ADDS), update.contains(BURNS));
        let (update, condition) = match broken {
            Broken::AddOfAnyId if adds => (update, condition.replace(IS_NEW, IS_ANY)),
            Broken::AddNeverLate if adds => (update, condition.replace(IS_IN_WINDOW, "#version >= :first")),
            Broken::BurnLeavesNothing if burns => (update.replace(&format!(", {BURNS}"), ""), condition),
            Broken::BurnAsAdd if burns => (update.replace(BURNS, ADDS), condition),
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

/// Makes a row forget a part of its memory directly after a commit.
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
