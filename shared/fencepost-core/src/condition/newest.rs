//! Writes over an older instance, never over a newer one.

use super::write::Returned;
use super::write::{ConditionalWrite, Operation};
use crate::format::item::Attributes;
use std::collections::HashMap;

const IS_OLDER: &str = "attribute_not_exists(#key) OR #order < :order OR (#order = :order AND #name < :name)";
const IS_NOT_NEWER: &str = "attribute_not_exists(#key) OR #order < :order OR (#order = :order AND #name <= :name)";
const IS_NOT_LATER: &str = "attribute_not_exists(#key) OR #order <= :order";

/// The partition key, the number that orders the instances of a key, and the name of an instance, which decides ties.
pub type OrderedBy = [&'static str; 3];

/// Replaces the row with this instance, if there is no row or the row holds an older instance.
pub fn put_if_newer(by: OrderedBy, item: Attributes) -> ConditionalWrite {
    in_order(by, item, IS_OLDER, None)
}

/// Replaces the row with the tombstone of this instance, if there is no row or the row holds this instance or an older
/// one. A tombstone without a name stands after every instance with its number. Returns the replaced row.
pub fn put_unless_newer(by: OrderedBy, item: Attributes) -> ConditionalWrite {
    let condition = if item.contains_key(by[2]) { IS_NOT_NEWER } else { IS_NOT_LATER };
    in_order(by, item, condition, Some(Returned::AllOld))
}

fn in_order(
    [key, order, name]: OrderedBy,
    item: Attributes,
    condition: &'static str,
    returning: Option<Returned>,
) -> ConditionalWrite {
    let mut names = HashMap::from([("#key".to_owned(), key.to_owned())]);
    let mut values = HashMap::new();
    for (placeholder, value, attribute) in [("#order", ":order", order), ("#name", ":name", name)] {
        if let Some(mine) = item.get(attribute) {
            names.insert(placeholder.to_owned(), attribute.to_owned());
            values.insert(value.to_owned(), mine.clone());
        }
    }
    ConditionalWrite { action: Operation::Put { item }, condition: condition.into(), names, values, returning }
}
