//! The only file with condition-expression text: the writes and checks that this crate sends.

use crate::row::{INCARNATION, PURGE_AT, VERSION, WRITES, bytes, number};
use crate::table::{Attributes, Diff};
use crate::version::ItemVersion;
use crate::write_id::{WriteId, slot_of};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::collections::HashMap;
use std::fmt::Write as _;

/// One conditional write, ready to be sent any number of times.
#[derive(Clone, Debug)]
pub(crate) struct ConditionalWrite {
    pub action: Action,
    pub condition: &'static str,
    pub names: HashMap<String, String>,
    pub values: HashMap<String, AttributeValue>,
    /// What of the row is returned when it is applied; nothing in a transaction.
    pub returning: Option<ReturnValue>,
}

/// What it does when its condition holds.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Replaces the whole item.
    Put { item: Attributes },
    /// Changes the attributes that the expression names.
    Update { key: Attributes, expression: String },
    /// Changes nothing; only in a transaction.
    Check { key: Attributes },
}

const IS_ABSENT: &str = "attribute_not_exists(#key)";
const IS_AT: &str = "#version = :at AND #incarnation = :incarnation";
const IS_ALIVE_AT: &str = "#version = :at AND #incarnation = :incarnation AND attribute_not_exists(#purge)";
const IS_WITHIN: &str = "#number BETWEEN :low AND :high AND attribute_not_exists(#purge)";

const IS_OLDER: &str = "attribute_not_exists(#key) OR #order < :order OR (#order = :order AND #name < :name)";
const IS_NOT_NEWER: &str = "attribute_not_exists(#key) OR #order < :order OR (#order = :order AND #name <= :name)";
const IS_NOT_LATER: &str = "attribute_not_exists(#key) OR #order <= :order";

/// The most that an update expression may take, in bytes (`DynamoDB` quota "expression length").
const MAX_EXPRESSION: usize = 4096;
/// The longest attribute name that an expression may name, in bytes.
const MAX_NAME: usize = 255;

/// Creates the row if the key has none.
pub(crate) fn put_if_absent(partition_key: &str, item: Attributes) -> ConditionalWrite {
    ConditionalWrite {
        action: Action::Put { item },
        condition: IS_ABSENT,
        names: HashMap::from([("#key".to_owned(), partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Replaces the row by `item`, which holds its next state, if it is still at `at`.
pub(crate) fn put_at(at: ItemVersion, item: Attributes) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Put { item }, condition: IS_AT, names, values, returning: None }
}

/// Applies `diff` to the row, moves its version on and leaves `id` in the slot, if it is still at `at`.
/// The row is alive afterwards.
///
/// `None` where the expression would be longer than `DynamoDB` takes: send the whole item instead.
pub(crate) fn update_at(key: Attributes, at: ItemVersion, id: WriteId, diff: &Diff) -> Option<ConditionalWrite> {
    update(key, at, id, diff, None)
}

/// Applies `diff` to the row and makes it a tombstone until `purge_at` (epoch seconds), if it is still
/// alive at `at`.
///
/// `None` where the expression would be longer than `DynamoDB` takes.
pub(crate) fn bury_at(
    key: Attributes,
    at: ItemVersion,
    id: WriteId,
    diff: &Diff,
    purge_at: u64,
) -> Option<ConditionalWrite> {
    update(key, at, id, diff, Some(purge_at))
}

fn update(
    key: Attributes,
    at: ItemVersion,
    id: WriteId,
    diff: &Diff,
    purge_at: Option<u64>,
) -> Option<ConditionalWrite> {
    if diff.set.keys().chain(&diff.remove).any(|name| name.len() > MAX_NAME) {
        return None;
    }
    let next = at.version.next();
    let (mut names, mut values) = placeholders_of(at);
    let mut name = |placeholder: String, name: &str| {
        names.insert(placeholder.clone(), name.to_owned());
        placeholder
    };
    name("#writes".to_owned(), WRITES);
    name("#slot".to_owned(), &slot_of(next).to_string());
    values.insert(":next".to_owned(), number(next.get()));
    values.insert(":id".to_owned(), bytes(*id.as_bytes()));
    let mut expression = "SET #version = :next, #writes.#slot = :id".to_owned();
    for (index, (attribute, value)) in diff.set.iter().enumerate() {
        let _ = write!(expression, ", {} = :s{index}", name(format!("#s{index}"), attribute));
        values.insert(format!(":s{index}"), value.clone());
    }
    let purge = name("#purge".to_owned(), PURGE_AT);
    let mut removed: Vec<_> =
        diff.remove.iter().enumerate().map(|(index, attribute)| name(format!("#r{index}"), attribute)).collect();
    let condition = if let Some(seconds) = purge_at {
        let _ = write!(expression, ", {purge} = :purge");
        values.insert(":purge".to_owned(), number(seconds));
        IS_ALIVE_AT
    } else {
        removed.push(purge);
        IS_AT
    };
    if !removed.is_empty() {
        let _ = write!(expression, " REMOVE {}", removed.join(", "));
    }
    let action = Action::Update { key, expression: expression.clone() };
    (expression.len() <= MAX_EXPRESSION).then_some(ConditionalWrite {
        action,
        condition,
        names,
        values,
        returning: None,
    })
}

/// Checks that the key has no row.
pub(crate) fn check_absent(partition_key: &str, key: Attributes) -> ConditionalWrite {
    ConditionalWrite {
        action: Action::Check { key },
        condition: IS_ABSENT,
        names: HashMap::from([("#key".to_owned(), partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Checks that the row is still at `at`.
pub(crate) fn check_at(key: Attributes, at: ItemVersion) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Check { key }, condition: IS_AT, names, values, returning: None }
}

/// Adds `by` to a number of a live item that is between `low` and `high` (both included), and moves its version on.
/// It leaves no id behind: nothing recognises it later.
pub(crate) fn add_between(key: Attributes, attribute: &str, by: i64, low: i128, high: i128) -> ConditionalWrite {
    let names = [("#number", attribute), ("#version", VERSION), ("#purge", PURGE_AT)];
    let values = [(":by", i128::from(by)), (":low", low), (":high", high), (":one", 1)];
    let expression = "SET #number = #number + :by, #version = #version + :one".to_owned();
    ConditionalWrite {
        action: Action::Update { key, expression },
        condition: IS_WITHIN,
        names: names.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into(),
        values: values
            .map(|(placeholder, value)| (placeholder.to_owned(), AttributeValue::N(value.to_string())))
            .into(),
        returning: None,
    }
}

/// The attributes that order the instances which follow each other under one key.
#[derive(Clone, Copy)]
pub(crate) struct Ordering {
    /// The partition key.
    pub key: &'static str,
    /// A number.
    pub order: &'static str,
    /// A string, which decides where the numbers are equal.
    pub name: &'static str,
}

/// Replaces the row by this instance, if the row is absent or of an older one.
pub(crate) fn put_if_newer(by: Ordering, item: Attributes) -> ConditionalWrite {
    in_order(by, item, IS_OLDER, None)
}

/// Replaces the row by what remembers this instance, if the row is absent, or of this instance or an older one. Without
/// a name it stands after every instance of its number. Returns the row that it has replaced.
pub(crate) fn put_unless_newer(by: Ordering, item: Attributes) -> ConditionalWrite {
    let condition = if item.contains_key(by.name) { IS_NOT_NEWER } else { IS_NOT_LATER };
    in_order(by, item, condition, Some(ReturnValue::AllOld))
}

fn in_order(
    by: Ordering,
    item: Attributes,
    condition: &'static str,
    returning: Option<ReturnValue>,
) -> ConditionalWrite {
    let mut names = HashMap::from([("#key".to_owned(), by.key.to_owned())]);
    let mut values = HashMap::new();
    for (name, value, attribute) in [("#order", ":order", by.order), ("#name", ":name", by.name)] {
        if let Some(mine) = item.get(attribute) {
            names.insert(name.to_owned(), attribute.to_owned());
            values.insert(value.to_owned(), mine.clone());
        }
    }
    ConditionalWrite { action: Action::Put { item }, condition, names, values, returning }
}

type Placeholders = (HashMap<String, String>, HashMap<String, AttributeValue>);

fn placeholders_of(at: ItemVersion) -> Placeholders {
    let names = [("#version", VERSION), ("#incarnation", INCARNATION)];
    let values = [(":at", number(at.version.get())), (":incarnation", bytes(*at.incarnation.as_bytes()))];
    (
        names.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into(),
        values.map(|(placeholder, value)| (placeholder.to_owned(), value)).into(),
    )
}
