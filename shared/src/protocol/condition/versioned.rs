//! Writes and checks at a version, or on a key without a row.

use super::write::{Action, ConditionalWrite, IS_ABSENT, MAX_EXPRESSION, MAX_NAME, Remember};
use crate::protocol::item::{Attributes, Diff};
use crate::protocol::row::{INCARNATION, PURGE_AT, VERSION, WRITES, bytes, number};
use crate::version::{Incarnation, ItemVersion};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use std::fmt::Write as _;

const IS_AT: &str = "#version = :at AND #incarnation = :incarnation";
const IS_ALIVE_AT: &str = "#version = :at AND #incarnation = :incarnation AND attribute_not_exists(#purge)";

/// Creates the row if the key has none.
pub(crate) fn put_if_absent(partition_key: &str, item: Attributes) -> ConditionalWrite {
    ConditionalWrite {
        action: Action::Put { item },
        condition: IS_ABSENT.into(),
        names: HashMap::from([("#key".to_owned(), partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Replaces the row with `item`, its complete next state, if the row is still at `at`.
pub(crate) fn put_at(at: ItemVersion, item: Attributes) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Put { item }, condition: IS_AT.into(), names, values, returning: None }
}

/// Applies `diff` to the row, raises its version and stores the id, if the row is still at `at`. The row is live
/// afterwards.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`. Send the whole item instead.
pub(crate) fn update_at(
    key: Attributes,
    at: ItemVersion,
    remember: Remember<'_>,
    diff: &Diff,
) -> Option<ConditionalWrite> {
    update(key, at, remember, diff, None)
}

/// Applies `diff` to the row and makes it a tombstone until `purge_at` (epoch seconds), if the row is still live at
/// `at`.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`.
pub(crate) fn bury_at(
    key: Attributes,
    at: ItemVersion,
    remember: Remember<'_>,
    diff: &Diff,
    purge_at: u64,
) -> Option<ConditionalWrite> {
    update(key, at, remember, diff, Some(purge_at))
}

fn update(
    key: Attributes,
    at: ItemVersion,
    remember: Remember<'_>,
    diff: &Diff,
    purge_at: Option<u64>,
) -> Option<ConditionalWrite> {
    if diff.set.keys().chain(&diff.remove).any(|name| name.len() > MAX_NAME) {
        return None;
    }
    let (mut names, mut values) = placeholders_of(at);
    let mut name = |placeholder: String, name: &str| {
        names.insert(placeholder.clone(), name.to_owned());
        placeholder
    };
    name("#writes".to_owned(), WRITES);
    name("#id".to_owned(), &remember.id.name());
    values.insert(":next".to_owned(), number(at.version.next().get()));
    let mut expression = "SET #version = :next, #writes.#id = :at".to_owned();
    for (index, (attribute, value)) in diff.set.iter().enumerate() {
        let _ = write!(expression, ", {} = :s{index}", name(format!("#s{index}"), attribute));
        values.insert(format!(":s{index}"), value.clone());
    }
    let purge = name("#purge".to_owned(), PURGE_AT);
    let mut removed: Vec<_> =
        diff.remove.iter().enumerate().map(|(index, attribute)| name(format!("#r{index}"), attribute)).collect();
    for (index, old) in remember.prune.iter().enumerate() {
        removed.push(format!("#writes.{}", name(format!("#p{index}"), &old.name())));
    }
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
        condition: condition.into(),
        names,
        values,
        returning: None,
    })
}

/// Gives the row another incarnation, if it is still at `at`. Changes nothing else of an item or a tombstone.
pub(crate) fn restamp_at(key: Attributes, at: ItemVersion, incarnation: Incarnation) -> ConditionalWrite {
    let (names, mut values) = placeholders_of(at);
    values.insert(":new".to_owned(), bytes(*incarnation.as_bytes()));
    let action = Action::Update { key, expression: "SET #incarnation = :new".to_owned() };
    ConditionalWrite { action, condition: IS_AT.into(), names, values, returning: None }
}

/// Checks that the key has no row.
pub(crate) fn check_absent(partition_key: &str, key: Attributes) -> ConditionalWrite {
    ConditionalWrite {
        action: Action::Check { key },
        condition: IS_ABSENT.into(),
        names: HashMap::from([("#key".to_owned(), partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Checks that the row is still at `at`.
pub(crate) fn check_at(key: Attributes, at: ItemVersion) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Check { key }, condition: IS_AT.into(), names, values, returning: None }
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
