//! The request for a ticket in the line at an item.

use super::write::Returned;
use super::write::{ConditionalWrite, Operation};
use crate::Incarnation;
use crate::format::item::Attributes;
use crate::format::names::Names;
use crate::format::row::{bytes, number};
use std::collections::HashMap;

/// Takes a ticket from the row, if the row is of this incarnation, and returns the row, with the number of the last one.
/// Neither the version nor the value is changed. So no write and no judge notices.
pub fn take_ticket(key: Attributes, names: &Names, incarnation: Incarnation) -> ConditionalWrite {
    let placeholders = [("#given", names.given), ("#incarnation", names.incarnation)];
    ConditionalWrite {
        action: Operation::Update { key, expression: "ADD #given :one".to_owned() },
        condition: "#incarnation = :incarnation".into(),
        names: placeholders.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into(),
        values: HashMap::from([
            (":one".to_owned(), number(1)),
            (":incarnation".to_owned(), bytes(incarnation.as_bytes())),
        ]),
        returning: Some(Returned::AllNew),
    }
}
