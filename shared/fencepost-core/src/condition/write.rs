//! [`ConditionalWrite`]: one write with its condition, and the fencing token that it may be under.

use crate::WriteId;
use crate::format::AttributeValue;
use crate::format::item::Attributes;
use crate::format::names::Names;
use crate::format::row::number;
use std::borrow::Cow;
use std::collections::HashMap;

/// The longest update expression, in bytes (`DynamoDB` quota "expression length").
pub(super) const MAX_EXPRESSION: usize = 4096;
pub(super) const MAX_NAME: usize = 255;
pub(super) const IS_ABSENT: &str = "attribute_not_exists(#key)";
const IS_NOT_FENCED: &str = "(attribute_not_exists(#fence) OR #fence <= :fence)";
const SET_FENCE: &str = "SET #fence = :fence, ";
const SET_SERVED: &str = "SET #served = :served, ";

/// The attributes that an applied write returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// Those of the new row.
    AllNew,
    /// Those of the replaced row.
    AllOld,
}

/// One conditional write. It can be sent any number of times.
#[derive(Clone, Debug)]
pub struct ConditionalWrite {
    pub action: Operation,
    pub condition: Cow<'static, str>,
    pub names: HashMap<String, String>,
    pub values: HashMap<String, AttributeValue>,
    /// The attributes returned by an applied write. A transaction returns none.
    pub returning: Option<Returned>,
}

impl ConditionalWrite {
    /// Makes an applied update return the new row. A put returns nothing: it holds the row already.
    pub fn show_new_row(&mut self) {
        if let Operation::Update { .. } = self.action {
            self.returning = Some(Returned::AllNew);
        }
    }

    /// Makes the write store this ticket as the last one served, if it leaves a row and has room for it.
    pub fn serve(&mut self, names: &Names, ticket: u64) {
        let has_room = self.action.also_set(names.served, SET_SERVED, ticket);
        if has_room && matches!(self.action, Operation::Update { .. }) {
            self.names.insert("#served".to_owned(), names.served.to_owned());
            self.values.insert(":served".to_owned(), number(ticket));
        }
    }

    /// The new row, if the write was applied and returned these attributes.
    pub fn new_row(&self, returned: Option<Attributes>) -> Option<Attributes> {
        match &self.action {
            Operation::Put { item } => Some(item.clone()),
            Operation::Update { .. } => returned,
            Operation::Delete { .. } | Operation::Check { .. } => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Operation {
    Put {
        item: Attributes,
    },
    Update {
        key: Attributes,
        expression: String,
    },
    Delete {
        key: Attributes,
    },
    /// Changes nothing. Only a transaction can have such a step.
    Check {
        key: Attributes,
    },
}

impl Operation {
    /// Sets one more attribute of the row that it leaves, if it leaves one. `clause` sets the attribute at the beginning
    /// of an update. Returns whether there was room for it.
    fn also_set(&mut self, name: &str, clause: &str, value: u64) -> bool {
        match self {
            Operation::Put { item } => {
                item.insert(name.to_owned(), number(value));
            }
            Operation::Update { expression, .. } => {
                let longer = expression.replacen("SET ", clause, 1);
                if longer.len() > MAX_EXPRESSION {
                    return false;
                }
                *expression = longer;
            }
            Operation::Delete { .. } | Operation::Check { .. } => {}
        }
        true
    }
}

/// The traces of a write in its row beside the value and the version.
#[derive(Clone, Copy)]
pub struct Commit<'a> {
    pub id: WriteId,
    pub prune: &'a [WriteId],
    /// The open attempts of the same change, as far as the row would remember them. The write burns them.
    pub burn: &'a [WriteId],
    pub fence: Option<u64>,
}

/// Puts the write under a fencing token, if there is one. A row with a higher token then refuses the write. An applied
/// write stores its token in the row.
pub fn fenced(write: ConditionalWrite, names: &Names, token: Option<u64>) -> Option<ConditionalWrite> {
    let Some(token) = token else { return Some(write) };
    let fence = names.fence.to_owned();
    let ConditionalWrite { mut action, condition, mut names, mut values, returning } = write;
    let condition = if condition == IS_ABSENT { condition } else { format!("{condition} AND {IS_NOT_FENCED}").into() };
    if condition.len() > MAX_EXPRESSION {
        return None;
    }
    if !action.also_set(&fence, SET_FENCE, token) {
        return None;
    }
    // A missing row has seen no token. DynamoDB refuses unused names and values.
    if condition != IS_ABSENT {
        names.insert("#fence".to_owned(), fence);
        values.insert(":fence".to_owned(), number(token));
    }
    Some(ConditionalWrite { action, condition, names, values, returning })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(action: Operation, condition: &'static str) -> ConditionalWrite {
        let condition = Cow::Borrowed(condition);
        ConditionalWrite { action, condition, names: HashMap::new(), values: HashMap::new(), returning: None }
    }

    #[test]
    fn a_token_is_stored_and_demanded_as_long_as_the_expression_has_room() {
        let longest = MAX_EXPRESSION - (SET_FENCE.len() - "SET ".len());
        for (bytes, fits) in [(40, true), (longest, true), (longest + 1, false)] {
            let expression = format!("SET {}", "x".repeat(bytes - "SET ".len()));
            let update = write(Operation::Update { key: Attributes::new(), expression }, "#version = :at");
            let fenced = fenced(update, &Names::DEFAULT, Some(7));
            assert_eq!(fenced.is_some(), fits, "{bytes}");
            let Some(ConditionalWrite {
                action: Operation::Update { expression, .. }, condition, names, values, ..
            }) = fenced
            else {
                continue;
            };
            assert!(expression.starts_with(SET_FENCE) && expression.len() <= MAX_EXPRESSION, "{expression}");
            assert_eq!(condition, format!("#version = :at AND {IS_NOT_FENCED}"));
            assert_eq!((names["#fence"].as_str(), &values[":fence"]), ("_fence", &number(7)));
        }
    }

    #[test]
    fn a_served_ticket_is_stored_by_each_write_that_leaves_a_row_and_has_room_for_it() {
        let served = |action| {
            let mut write = write(action, "");
            write.serve(&Names::DEFAULT, 7);
            write
        };
        let key = Attributes::new;
        let update = |bytes: usize| {
            let expression = format!("SET {}", "x".repeat(bytes - "SET ".len()));
            served(Operation::Update { key: key(), expression })
        };
        let longest = MAX_EXPRESSION - (SET_SERVED.len() - "SET ".len());
        let stored = update(longest);
        assert_eq!((stored.names["#served"].as_str(), &stored.values[":served"]), ("_served", &number(7)));
        assert!(matches!(stored.action, Operation::Update { expression, .. } if expression.starts_with(SET_SERVED)));
        let full = update(longest + 1);
        assert!(full.names.is_empty() && full.values.is_empty());
        assert!(matches!(full.action, Operation::Update { expression, .. } if expression.len() == longest + 1));
        let put = served(Operation::Put { item: key() });
        assert!(put.names.is_empty() && put.values.is_empty());
        assert!(matches!(put.action, Operation::Put { item } if item["_served"] == number(7)));
        let delete = served(Operation::Delete { key: key() });
        assert!(delete.names.is_empty() && delete.values.is_empty());
    }

    #[test]
    fn a_condition_that_has_no_room_for_the_demand_is_not_sent() {
        let longest = MAX_EXPRESSION - format!(" AND {IS_NOT_FENCED}").len();
        for (bytes, fits) in [(longest, true), (longest + 1, false)] {
            let check = write(Operation::Check { key: Attributes::new() }, "");
            let check = ConditionalWrite { condition: "x".repeat(bytes).into(), ..check };
            assert_eq!(fenced(check, &Names::DEFAULT, Some(7)).is_some(), fits, "{bytes}");
        }
    }

    #[test]
    fn a_create_stores_its_token_and_demands_none_of_a_row_that_is_not_there() {
        let create = write(Operation::Put { item: Attributes::new() }, IS_ABSENT);
        let create = fenced(create, &Names::DEFAULT, Some(7)).expect("it is short");
        assert_eq!((create.condition.as_ref(), create.names.len(), create.values.len()), (IS_ABSENT, 0, 0));
        let Operation::Put { item } = create.action else { panic!("a put") };
        assert_eq!(item["_fence"], number(7));
    }

    #[test]
    fn an_applied_update_shows_the_new_row_that_a_put_holds_already() {
        let [item, shown] = ["a", "b"].map(|name| Attributes::from([(name.to_owned(), number(1))]));
        let key = Attributes::new;
        for (action, returning, row) in [
            (Operation::Put { item: item.clone() }, None, Some(&item)),
            (Operation::Update { key: key(), expression: String::new() }, Some(Returned::AllNew), Some(&shown)),
            (Operation::Delete { key: key() }, None, None),
            (Operation::Check { key: key() }, None, None),
        ] {
            let mut write = write(action, IS_ABSENT);
            write.show_new_row();
            assert_eq!((write.returning, write.new_row(Some(shown.clone())).as_ref()), (returning, row));
        }
    }
}
