//! What a page asks for: the rows of one partition within a bound of the sort key, those that a filter lets through, and
//! which of their attributes.

use super::demand::Expression;
use super::edit::Condition;
use super::write::MAX_EXPRESSION;
use crate::format::AttributeValue;
use crate::format::item::Attributes;
use crate::format::layout::Layout;
use crate::format::number::compare;
use std::cmp::Ordering;
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

impl SortBound {
    /// Refuses a bound that `DynamoDB` rejects, because no key is within it.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), &'static str> {
        use AttributeValue::{B, N, S};
        let order = match (&self.value, &self.end) {
            (N(_), None) if self.condition == BEGINS_WITH => {
                return Err("it asks for the start of a number, and only texts and bytes have one");
            }
            (_, None) => return Ok(()),
            (S(first), Some(S(last))) => first.as_bytes().cmp(last.as_bytes()),
            (B(first), Some(B(last))) => first.cmp(last),
            (N(first), Some(N(last))) => compare(first, last),
            _ => return Err("it is between values of two types"),
        };
        if order == Ordering::Greater { Err("it is between two values of which the first is greater") } else { Ok(()) }
    }
}

/// The text of a key condition, with its names and values: the partition, of which an index may have several attributes,
/// and the bounds of as many attributes of the sort key.
pub fn key_condition(
    partition: &[(&'static str, AttributeValue)],
    sort: &[(&'static str, SortBound)],
) -> (String, HashMap<String, String>, Attributes) {
    let (mut texts, mut names, mut values) = (Vec::new(), HashMap::new(), Attributes::new());
    // The first of each has a placeholder without a number.
    let number = |index: usize| if index == 0 { String::new() } else { index.to_string() };
    for (index, (name, value)) in partition.iter().enumerate() {
        let of = format!("partition{}", number(index));
        texts.push(format!("#{of} = :{of}"));
        names.insert(format!("#{of}"), (*name).to_owned());
        values.insert(format!(":{of}"), value.clone());
    }
    for (index, (name, bound)) in sort.iter().enumerate() {
        let (of, end) = (format!("sort{}", number(index)), format!(":end{}", number(index)));
        let text = bound.condition.replace("#sort", &format!("#{of}")).replace(":sort", &format!(":{of}"));
        texts.push(text.replace(":end", &end));
        names.insert(format!("#{of}"), (*name).to_owned());
        values.insert(format!(":{of}"), bound.value.clone());
        values.extend(bound.end.clone().map(|value| (end, value)));
    }
    (texts.join(" AND "), names, values)
}

/// Which of the rows in the range of a page it shows, and what of them.
#[derive(Clone, Default, Debug)]
pub struct Selection {
    /// Shows the rows that meet this condition. It names no key of what is queried.
    pub condition: Option<Condition>,
    /// Shows live rows, and no tombstones.
    pub is_live: bool,
    /// Shows these attributes, or all if there are none.
    pub attributes: Vec<&'static str>,
}

/// The texts of a [`Selection`], with their names and values.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Selected {
    pub filter: Option<String>,
    pub projection: Option<String>,
    pub names: HashMap<String, String>,
    pub values: Attributes,
}

impl Selected {
    /// The rows with holds.
    #[must_use]
    pub fn with_holds(layout: &Layout) -> Self {
        let mut expression = Expression::default();
        let holds = expression.placeholder(layout.names.holds);
        expression.value(":nothing", AttributeValue::N("0".to_owned()));
        expression.demand(format!("size({holds}) > :nothing"));
        let (filter, names, values) = expression.demanded();
        Selected { filter: Some(filter), projection: None, names, values }
    }
}

impl Selection {
    /// The texts. `None` if they are longer than `DynamoDB` takes.
    #[must_use]
    pub fn selected(&self, layout: &Layout) -> Option<Selected> {
        let mut expression = Expression::default();
        if let Some(condition) = &self.condition {
            let text = expression.condition(condition, &mut 0);
            expression.demand(text);
        }
        if self.is_live {
            expression.demand_life(layout);
        }
        let shown: Vec<_> = self.attributes.iter().map(|name| expression.placeholder(name)).collect();
        let (filter, names, values) = expression.demanded();
        let [filter, projection] = [filter, shown.join(", ")].map(|text| Some(text).filter(|text| !text.is_empty()));
        let fits = [&filter, &projection].into_iter().flatten().all(|text| text.len() <= MAX_EXPRESSION);
        fits.then_some(Selected { filter, projection, names, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_no_key_is_within_are_refused() {
        let [n, s] = [AttributeValue::N, AttributeValue::S].map(|kind| move |text: &str| kind(text.to_owned()));
        let b = |bytes: &[u8]| AttributeValue::B(bytes.to_vec());
        let between = |value, end| SortBound { condition: BETWEEN, value, end: Some(end) }.check().is_ok();
        assert_eq!([between(n("9"), n("1e1")), between(n("10"), n("9.5"))], [true, false]);
        assert_eq!(
            [between(s("9"), s("10")), between(s("a"), s("a")), between(s("a"), s("\u{e9}"))],
            [false, true, true]
        );
        assert_eq!([between(b(&[1]), b(&[1, 0])), between(b(&[2]), b(&[1, 0]))], [true, false]);
        assert!(!between(s("1"), n("2")));
        let starts = |value| SortBound { condition: BEGINS_WITH, value, end: None }.check().is_ok();
        assert_eq!([starts(s("a")), starts(b(&[1])), starts(n("1"))], [true, true, false]);
        assert!(SortBound { condition: LESS_THAN, value: n("1"), end: None }.check().is_ok());
    }
}
