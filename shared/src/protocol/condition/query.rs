//! [`KeyRange`]: the rows of one partition that a query reads, with the text of its key condition.

use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;

/// The conditions on the sort key.
pub(crate) const EQUAL_TO: &str = "#sort = :sort";
pub(crate) const LESS_THAN: &str = "#sort < :sort";
pub(crate) const AT_MOST: &str = "#sort <= :sort";
pub(crate) const MORE_THAN: &str = "#sort > :sort";
pub(crate) const AT_LEAST: &str = "#sort >= :sort";
pub(crate) const BETWEEN: &str = "#sort BETWEEN :sort AND :end";
pub(crate) const BEGINS_WITH: &str = "begins_with(#sort, :sort)";

/// A bound on the sort key of a [`Query`](crate::Query).
#[derive(Clone, PartialEq, Debug)]
pub struct Sort {
    pub(crate) condition: &'static str,
    pub(crate) value: AttributeValue,
    /// The second value. Only [`BETWEEN`] names it.
    pub(crate) end: Option<AttributeValue>,
}

/// A key condition, with its names and values.
#[derive(Clone, Debug)]
pub(crate) struct KeyRange {
    pub condition: String,
    pub names: HashMap<String, String>,
    pub values: HashMap<String, AttributeValue>,
}

impl KeyRange {
    /// The values of the partition key and of the bound, in a fixed order.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = &AttributeValue> {
        [":partition", ":sort", ":end"].into_iter().filter_map(|name| self.values.get(name))
    }
}

/// The rows with this value of the partition key and a sort key within the bound, if there is one.
pub(crate) fn key_range(partition: (&str, &AttributeValue), sort: Option<(&str, &Sort)>) -> KeyRange {
    let (name, value) = partition;
    let mut range = KeyRange {
        condition: "#partition = :partition".to_owned(),
        names: HashMap::from([("#partition".to_owned(), name.to_owned())]),
        values: HashMap::from([(":partition".to_owned(), value.clone())]),
    };
    if let Some((name, bound)) = sort {
        range.condition = format!("{} AND {}", range.condition, bound.condition);
        range.names.insert("#sort".to_owned(), name.to_owned());
        range.values.insert(":sort".to_owned(), bound.value.clone());
        range.values.extend(bound.end.clone().map(|end| (":end".to_owned(), end)));
    }
    range
}
