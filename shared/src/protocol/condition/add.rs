//! Adds, and the burn that ends one.

use super::write::{Action, ConditionalWrite, MAX_EXPRESSION, MAX_NAME, Remember};
use crate::protocol::item::Attributes;
use crate::protocol::memory::WriteId;
use crate::protocol::row::{INCARNATION, PURGE_AT, VERSION, WRITES, bytes, number};
use crate::version::ItemVersion;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::collections::HashMap;
use std::fmt::Write as _;

const IS_ALIVE: &str = "attribute_not_exists(#purge)";
const IS_IN_WINDOW: &str =
    "#incarnation = :incarnation AND #version BETWEEN :first AND :last AND attribute_not_exists(#writes.#id)";

/// The effect and the demands of an add on a live item.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Addition {
    /// The numbers to change.
    pub numbers: Vec<AddedNumber>,
    /// Attributes to set beside them.
    pub set: Vec<(String, AttributeValue)>,
    /// Attributes that must have these values.
    pub equal: Vec<(String, AttributeValue)>,
    /// Attributes that must be missing.
    pub missing: Vec<String>,
}

/// One number that an add changes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct AddedNumber {
    /// The names that lead to the number, from the top of the item.
    pub path: Vec<String>,
    /// The number to add.
    pub by: String,
    /// The lowest current number that allows the add.
    pub low: String,
    /// The highest current number that allows the add.
    pub high: String,
}

/// The versions of one row at which a write may be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// The first version, and the row.
    pub from: ItemVersion,
    /// The number of versions.
    pub size: u64,
}

/// Adds to numbers of a live item at any version in the window. Raises the version and stores the id. Returns the new
/// row.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`.
pub(crate) fn add_within(
    key: Attributes,
    window: Window,
    remember: Remember<'_>,
    addition: &Addition,
) -> Option<ConditionalWrite> {
    let mut text = AddText::of(addition);
    text.enter(window, remember.id);
    text.set.push("#writes.#id = #version".to_owned());
    for (index, old) in remember.prune.iter().enumerate() {
        text.names.insert(format!("#p{index}"), old.name());
        text.remove.push(format!("#writes.#p{index}"));
    }
    Some(ConditionalWrite { returning: Some(ReturnValue::AllNew), ..text.build(key)? })
}

/// Adds to numbers of a live item at any version. Raises the version, but leaves no id, so nothing recognises the add
/// later.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`.
pub(crate) fn add_anywhere(key: Attributes, addition: &Addition) -> Option<ConditionalWrite> {
    AddText::of(addition).build(key)
}

/// Marks the write `id` as burned: no copy of it will be applied in this window. Changes nothing else of an item or a
/// tombstone. Returns the new row.
pub(crate) fn burn(key: Attributes, window: Window, id: WriteId) -> ConditionalWrite {
    let mut text = AddText::default();
    text.enter(window, id);
    text.values.insert(":zero".to_owned(), number(0));
    text.set.push("#writes.#id = :zero - #version".to_owned());
    ConditionalWrite { returning: Some(ReturnValue::AllNew), ..text.into_write(key) }
}

/// The parts of the expressions of an add.
#[derive(Default)]
struct AddText {
    set: Vec<String>,
    remove: Vec<String>,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl AddText {
    fn of(addition: &Addition) -> Self {
        let mut text = AddText::default();
        for (index, AddedNumber { path, by, low, high }) in addition.numbers.iter().enumerate() {
            let names: Vec<_> = (0..path.len()).map(|depth| format!("#n{index}_{depth}")).collect();
            text.names.extend(names.iter().cloned().zip(path.iter().cloned()));
            let number = names.join(".");
            text.set.push(format!("{number} = {number} + :by{index}"));
            text.conditions.push(format!("{number} BETWEEN :low{index} AND :high{index}"));
            for (placeholder, value) in [("by", by), ("low", low), ("high", high)] {
                text.values.insert(format!(":{placeholder}{index}"), AttributeValue::N(value.clone()));
            }
        }
        for (index, (name, value)) in addition.set.iter().enumerate() {
            text.set.push(format!("#s{index} = :s{index}"));
            text.names.insert(format!("#s{index}"), name.clone());
            text.values.insert(format!(":s{index}"), value.clone());
        }
        for (index, (name, value)) in addition.equal.iter().enumerate() {
            text.conditions.push(format!("#e{index} = :e{index}"));
            text.names.insert(format!("#e{index}"), name.clone());
            text.values.insert(format!(":e{index}"), value.clone());
        }
        for (index, name) in addition.missing.iter().enumerate() {
            text.conditions.push(format!("attribute_not_exists(#m{index})"));
            text.names.insert(format!("#m{index}"), name.clone());
        }
        text.conditions.push(IS_ALIVE.to_owned());
        text.names.insert("#purge".to_owned(), PURGE_AT.to_owned());
        text
    }

    /// Demands that the row is in the window and does not remember the id.
    fn enter(&mut self, window: Window, id: WriteId) {
        let first = window.from.version.get();
        let last = first.saturating_add(window.size - 1);
        self.conditions.push(IS_IN_WINDOW.to_owned());
        self.names.extend([
            ("#incarnation".to_owned(), INCARNATION.to_owned()),
            ("#writes".to_owned(), WRITES.to_owned()),
            ("#id".to_owned(), id.name()),
        ]);
        self.values.extend([
            (":incarnation".to_owned(), bytes(*window.from.incarnation.as_bytes())),
            (":first".to_owned(), number(first)),
            (":last".to_owned(), number(last)),
        ]);
    }

    /// The write, if its expressions are within the limits of `DynamoDB`.
    fn build(self, key: Attributes) -> Option<ConditionalWrite> {
        let write = self.into_write(key);
        let Action::Update { expression, .. } = &write.action else { return None };
        let fits = expression.len() <= MAX_EXPRESSION
            && write.condition.len() <= MAX_EXPRESSION
            && write.names.values().all(|name| name.len() <= MAX_NAME);
        fits.then_some(write)
    }

    fn into_write(mut self, key: Attributes) -> ConditionalWrite {
        self.set.insert(0, "#version = #version + :one".to_owned());
        self.names.insert("#version".to_owned(), VERSION.to_owned());
        self.values.insert(":one".to_owned(), number(1));
        let mut expression = format!("SET {}", self.set.join(", "));
        if !self.remove.is_empty() {
            let _ = write!(expression, " REMOVE {}", self.remove.join(", "));
        }
        let condition = self.conditions.join(" AND ");
        ConditionalWrite {
            action: Action::Update { key, expression },
            condition: condition.into(),
            names: self.names,
            values: self.values,
            returning: None,
        }
    }
}
