//! [`KeyRange`]: the rows of one partition that a query reads, with the text of its key condition.

use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;

/// A bound on the sort key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum SortBound {
    EqualTo(AttributeValue),
    LessThan(AttributeValue),
    AtMost(AttributeValue),
    MoreThan(AttributeValue),
    AtLeast(AttributeValue),
    Between(AttributeValue, AttributeValue),
    BeginsWith(AttributeValue),
}

impl SortBound {
    /// The condition on the sort key.
    fn text(&self) -> &'static str {
        match self {
            SortBound::EqualTo(_) => "#sort = :sort",
            SortBound::LessThan(_) => "#sort < :sort",
            SortBound::AtMost(_) => "#sort <= :sort",
            SortBound::MoreThan(_) => "#sort > :sort",
            SortBound::AtLeast(_) => "#sort >= :sort",
            SortBound::Between(..) => "#sort BETWEEN :sort AND :end",
            SortBound::BeginsWith(_) => "begins_with(#sort, :sort)",
        }
    }

    /// The values that it names. Only `Between` has two.
    fn values(&self) -> (&AttributeValue, Option<&AttributeValue>) {
        match self {
            SortBound::EqualTo(value)
            | SortBound::LessThan(value)
            | SortBound::AtMost(value)
            | SortBound::MoreThan(value)
            | SortBound::AtLeast(value)
            | SortBound::BeginsWith(value) => (value, None),
            SortBound::Between(first, last) => (first, Some(last)),
        }
    }
}

/// A key condition, with the names and values that it uses.
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

/// The rows whose partition key has this value, and whose sort key keeps the bound, if there is one.
pub(crate) fn key_range(partition: (&str, &AttributeValue), sort: Option<(&str, &SortBound)>) -> KeyRange {
    let (name, value) = partition;
    let mut range = KeyRange {
        condition: "#partition = :partition".to_owned(),
        names: HashMap::from([("#partition".to_owned(), name.to_owned())]),
        values: HashMap::from([(":partition".to_owned(), value.clone())]),
    };
    if let Some((name, bound)) = sort {
        range.condition = format!("{} AND {}", range.condition, bound.text());
        range.names.insert("#sort".to_owned(), name.to_owned());
        let (first, last) = bound.values();
        range.values.insert(":sort".to_owned(), first.clone());
        range.values.extend(last.map(|last| (":end".to_owned(), last.clone())));
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i32) -> AttributeValue {
        AttributeValue::N(value.to_string())
    }

    #[test]
    fn a_range_names_and_has_only_what_its_condition_uses() {
        let whole = key_range(("sensor", &number(1)), None);
        assert_eq!(whole.condition, "#partition = :partition");
        assert_eq!((whole.names.len(), whole.values.len()), (1, 1));
        for (bound, text, values) in [
            (SortBound::EqualTo(number(1)), "#sort = :sort", 2),
            (SortBound::LessThan(number(1)), "#sort < :sort", 2),
            (SortBound::AtMost(number(1)), "#sort <= :sort", 2),
            (SortBound::MoreThan(number(1)), "#sort > :sort", 2),
            (SortBound::AtLeast(number(1)), "#sort >= :sort", 2),
            (SortBound::Between(number(1), number(2)), "#sort BETWEEN :sort AND :end", 3),
            (SortBound::BeginsWith(number(1)), "begins_with(#sort, :sort)", 2),
        ] {
            let range = key_range(("sensor", &number(1)), Some(("at", &bound)));
            assert_eq!(range.condition, format!("#partition = :partition AND {text}"));
            assert_eq!((range.names["#sort"].as_str(), range.names.len(), range.values.len()), ("at", 2, values));
        }
    }
}
