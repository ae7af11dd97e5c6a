//! The key condition of a query: the rows of one partition, within a bound of the sort key.

use crate::format::AttributeValue;
use std::collections::HashMap;

pub const EQUAL_TO: &str = "#sort = :sort";
pub const LESS_THAN: &str = "#sort < :sort";
pub const AT_MOST: &str = "#sort <= :sort";
pub const MORE_THAN: &str = "#sort > :sort";
pub const AT_LEAST: &str = "#sort >= :sort";
pub const BETWEEN: &str = "#sort BETWEEN :sort AND :end";
pub const BEGINS_WITH: &str = "begins_with(#sort, :sort)";

/// A bound on the sort key of a query.
#[derive(Clone, PartialEq, Debug)]
pub struct SortBound {
    pub condition: &'static str,
    pub value: AttributeValue,
    /// The second value. Only [`BETWEEN`] names it.
    pub end: Option<AttributeValue>,
}

/// The text of a key condition, with its names and values.
pub fn key_condition(
    (name, value): &(&'static str, AttributeValue),
    sort: Option<&(&'static str, SortBound)>,
) -> (String, HashMap<String, String>, HashMap<String, AttributeValue>) {
    let mut condition = "#partition = :partition".to_owned();
    let mut names = HashMap::from([("#partition".to_owned(), (*name).to_owned())]);
    let mut values = HashMap::from([(":partition".to_owned(), value.clone())]);
    if let Some((name, bound)) = sort {
        condition = format!("{condition} AND {}", bound.condition);
        names.insert("#sort".to_owned(), (*name).to_owned());
        values.insert(":sort".to_owned(), bound.value.clone());
        values.extend(bound.end.clone().map(|end| (":end".to_owned(), end)));
    }
    (condition, names, values)
}
