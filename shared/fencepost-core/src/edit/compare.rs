//! What a condition says of an item. Where it is not sure how `DynamoDB` compares two values, the answer is `None`.

use super::bounds::whole;
use crate::condition::{Comparison, Condition, Demanded};
use crate::format::AttributeValue;
use crate::format::item::{Attributes, value_at};
use crate::format::number::compare;
use std::cmp::Ordering;
use std::mem;

/// Whether the item meets the condition. `None` if only `DynamoDB` tells.
pub(super) fn is_met(condition: &Condition, item: &Attributes) -> Option<bool> {
    meets(condition, item, is_as_demanded)
}

/// Whether the item probably meets the condition, by the values of decimals and of bytes too. A guess: `DynamoDB` decides.
#[must_use]
pub fn is_likely(condition: &Condition, item: &Attributes) -> bool {
    let likely = |demanded: &Demanded, value: Option<&AttributeValue>| {
        Some(is_as_demanded(demanded, value).unwrap_or_else(|| match (demanded, value) {
            (Demanded::Compared(comparison, AttributeValue::N(one)), Some(AttributeValue::N(number))) => {
                holds(*comparison, compare(number, one))
            }
            (Demanded::Compared(comparison, AttributeValue::B(one)), Some(AttributeValue::B(bytes))) => {
                holds(*comparison, bytes.cmp(one))
            }
            _ => false,
        }))
    };
    meets(condition, item, likely) == Some(true)
}

type Leaf = fn(&Demanded, Option<&AttributeValue>) -> Option<bool>;

fn meets(condition: &Condition, item: &Attributes, leaf: Leaf) -> Option<bool> {
    let all = |conditions: &[Condition], decides: bool| {
        let met: Vec<_> = conditions.iter().map(|condition| meets(condition, item, leaf)).collect();
        if met.contains(&Some(decides)) { Some(decides) } else { (!met.contains(&None)).then_some(!decides) }
    };
    match condition {
        Condition::At(path, demanded) => leaf(demanded, value_at(item, path)),
        Condition::Not(condition) => meets(condition, item, leaf).map(|is_met| !is_met),
        Condition::All(conditions) => all(conditions, false),
        Condition::Any(conditions) => all(conditions, true),
    }
}

fn is_as_demanded(demanded: &Demanded, value: Option<&AttributeValue>) -> Option<bool> {
    let (comparison, one, value) = match (demanded, value) {
        (Demanded::Missing, value) => return Some(value.is_none()),
        (Demanded::There, value) => return Some(value.is_some()),
        (Demanded::Type(name), value) => return Some(value.is_some_and(|value| type_of(value) == *name)),
        (Demanded::Compared(..), None) => return Some(false),
        (Demanded::Compared(comparison, one), Some(value)) => (*comparison, one, value),
    };
    if comparison == Comparison::Equal {
        return is_equal(one, value);
    }
    match (one, value) {
        _ if mem::discriminant(one) != mem::discriminant(value) => Some(false),
        (AttributeValue::S(one), AttributeValue::S(text)) => Some(holds(comparison, text.cmp(one))),
        (AttributeValue::N(one), AttributeValue::N(number)) => {
            Some(holds(comparison, whole(number)?.cmp(&whole(one)?)))
        }
        _ => None,
    }
}

fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
        Comparison::AtLeast => order.is_ge(),
        Comparison::More => order.is_gt(),
    }
}

/// Whether `DynamoDB` takes two values for equal. `None` if only it tells: of two numbers in other notations, two sets in
/// another order, and lists and maps with such values.
pub(super) fn is_equal(one: &AttributeValue, other: &AttributeValue) -> Option<bool> {
    match (one, other) {
        _ if one == other => Some(true),
        _ if mem::discriminant(one) != mem::discriminant(other) => Some(false),
        (AttributeValue::S(_) | AttributeValue::B(_) | AttributeValue::Bool(_), _) => Some(false),
        (AttributeValue::N(one), AttributeValue::N(other)) => Some(whole(one)? == whole(other)?),
        _ => None,
    }
}

/// The name of the type of a value, as in `attribute_type`.
fn type_of(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "S",
        AttributeValue::N(_) => "N",
        AttributeValue::B(_) => "B",
        AttributeValue::Bool(_) => "BOOL",
        AttributeValue::Null(_) => "NULL",
        AttributeValue::M(_) => "M",
        AttributeValue::L(_) => "L",
        AttributeValue::Ss(_) => "SS",
        AttributeValue::Ns(_) => "NS",
        AttributeValue::Bs(_) => "BS",
    }
}

/// The condition in words, for people.
pub(super) fn words(condition: &Condition) -> String {
    let list = |conditions: &[Condition], word: &str| conditions.iter().map(words).collect::<Vec<_>>().join(word);
    match condition {
        Condition::At(path, demanded) => {
            let path = path.join(".");
            match demanded {
                Demanded::Compared(comparison, value) => format!("{path} {} {}", comparison.sign(), brief(Some(value))),
                Demanded::There => format!("a value at {path}"),
                Demanded::Missing => format!("no value at {path}"),
                Demanded::Type(name) => format!("a value of the type {name} at {path}"),
            }
        }
        Condition::Not(condition) => format!("not ({})", words(condition)),
        Condition::All(conditions) => format!("({})", list(conditions, " and ")),
        Condition::Any(conditions) => format!("({})", list(conditions, " or ")),
    }
}

/// A value in few characters, for people.
#[must_use]
pub fn brief(value: Option<&AttributeValue>) -> String {
    const LONGEST: usize = 40;
    match value {
        None => "nothing".to_owned(),
        Some(AttributeValue::N(number)) => number.clone(),
        Some(AttributeValue::Bool(value)) => value.to_string(),
        Some(AttributeValue::Null(_)) => "null".to_owned(),
        Some(AttributeValue::S(text)) if text.chars().count() <= LONGEST => format!("{text:?}"),
        Some(AttributeValue::S(text)) => format!("{:?}...", text.chars().take(LONGEST).collect::<String>()),
        Some(AttributeValue::L(list)) => format!("a list of {}", list.len()),
        Some(AttributeValue::M(map)) => format!("a map of {}", map.len()),
        Some(value) => format!("a value of the type {}", type_of(value)),
    }
}
