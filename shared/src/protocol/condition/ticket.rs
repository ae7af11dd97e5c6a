//! The request for a ticket in the line at an item.

use super::write::{Action, ConditionalWrite};
use crate::names::Names;
use crate::protocol::item::Attributes;
use crate::protocol::row::{bytes, number};
use aws_sdk_dynamodb::types::ReturnValue;
use fencepost_core::Incarnation;
use std::collections::HashMap;

/// Takes a ticket from the row, if the row is of this incarnation, and returns the number of the last one. Neither the
/// version nor the value is changed. So no write and no judge notices.
pub(crate) fn take_ticket(key: Attributes, names: &Names, incarnation: Incarnation) -> ConditionalWrite {
    let placeholders = [("#given", names.given), ("#incarnation", names.incarnation)];
    ConditionalWrite {
        action: Action::Update { key, expression: "ADD #given :one".to_owned() },
        condition: "#incarnation = :incarnation".into(),
        names: placeholders.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into(),
        values: HashMap::from([
            (":one".to_owned(), number(1)),
            (":incarnation".to_owned(), bytes(incarnation.as_bytes())),
        ]),
        returning: Some(ReturnValue::UpdatedNew),
    }
}
