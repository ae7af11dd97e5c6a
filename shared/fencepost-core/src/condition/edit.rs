//! Edits, and burns of edits.

use super::demand::{Demand, Expression};
use super::write::Returned;
use super::write::{Commit, ConditionalWrite, fenced};
use crate::format::AttributeValue;
use crate::format::item::Attributes;
use crate::format::layout::{Layout, MOST_HOLDS};
use crate::format::row::{Row, number};
use crate::{Base, SentWrite};
use crate::{ItemVersion, WriteId};
use std::collections::HashMap;

/// A path of names to a value, from the top of the item.
pub type Path = Vec<String>;

/// The parts of an edit.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Clauses {
    pub numbers: Vec<AddedNumber>,
    pub set: Vec<(Path, AttributeValue)>,
    pub remove: Vec<Path>,
    /// Set along with the rest. Alone, they are no change.
    pub stamps: Vec<(String, AttributeValue)>,
    /// Lists, and what is appended to them.
    pub append: Vec<(Path, AttributeValue)>,
    pub demands: Vec<Condition>,
    /// Demands an item that `set` and `remove` would change.
    pub is_to_change: bool,
    /// What becomes of the holds of the item along with the rest.
    pub holds: Holds,
}

/// What an edit does to the holds of its item. A hold is named by the attempt that took it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Holds {
    /// A hold to place, if the row has room for it.
    pub place: Option<(String, AttributeValue)>,
    /// A hold to remove.
    pub free: Option<String>,
    /// Holds to remove if they are there: their attempts have placed their rows.
    pub clear: Vec<String>,
}

impl Holds {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Holds::default()
    }
}

impl Clauses {
    /// Those that decide whether an item takes the edit. The new values do not, unless they have to differ.
    #[must_use]
    pub fn conditions(&self) -> Clauses {
        let Clauses { numbers, set, remove, demands, is_to_change, holds, .. } = self.clone();
        let is_list = |(_, value): &(Path, AttributeValue)| matches!(value, AttributeValue::L(_));
        let (set, remove) = if is_to_change {
            (set, remove)
        } else {
            // A list demands that no set is stored there.
            (set.into_iter().filter(is_list).collect(), Vec::new())
        };
        let holds = Holds { clear: Vec::new(), ..holds };
        Clauses { numbers, set, remove, demands, is_to_change, holds, ..Clauses::default() }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct AddedNumber {
    pub path: Path,
    pub by: String,
    pub low: String,
    pub high: String,
}

/// What an item must be like to take an edit.
#[derive(Clone, PartialEq, Debug)]
pub enum Condition {
    /// The value at a path is as demanded.
    At(Path, Demanded),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Condition {
    /// The number of levels: one more than that of the deepest part.
    pub fn levels(&self) -> usize {
        match self {
            Condition::At(..) => 1,
            Condition::Not(part) => 1 + part.levels(),
            Condition::All(parts) | Condition::Any(parts) => {
                1 + parts.iter().map(Condition::levels).max().unwrap_or_default()
            }
        }
    }
}

/// A demand on the value at a path. A missing value meets only [`Demanded::Missing`].
#[derive(Clone, PartialEq, Debug)]
pub enum Demanded {
    /// A comparison with this value, which has the same type.
    Compared(Comparison, AttributeValue),
    There,
    Missing,
    /// A value of the type with this name.
    Type(&'static str),
}

/// How a stored value compares to the demanded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Equal,
    Less,
    AtMost,
    AtLeast,
    More,
}

impl Comparison {
    /// The sign of the comparison.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::AtLeast => ">=",
            Comparison::More => ">",
        }
    }
}

impl Condition {
    /// The conditions of which this one is made, with the paths to their values.
    pub fn leaves(&self) -> Vec<(&Path, &Demanded)> {
        match self {
            Condition::At(path, demanded) => vec![(path, demanded)],
            Condition::Not(condition) => condition.leaves(),
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().flat_map(Condition::leaves).collect()
            }
        }
    }
}

/// Edits a live item in the demanded window, and stores the id. Adopts a foreign row. Returns the new row.
pub fn edit_within(
    key: Attributes,
    demand: &Demand<'_>,
    commit: &Commit<'_>,
    clauses: &Clauses,
) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.edit(clauses, demand.layout());
    expression.demand_window(demand, commit.id);
    let layout = demand.layout();
    if layout.marks_by_version() && (demand.is_foreign() || layout.demands_values()) {
        // A mark of a later version must not become that of the row when the version rises.
        expression.remove("#buried");
        if layout.marks_by_time() {
            expression.remove("#purge");
        }
    }
    if demand.is_foreign() {
        expression.commit_at(demand, commit);
    } else {
        expression.demand_room(demand);
        expression.raise_version();
        expression.set("#writes.#id = #version");
        expression.prune(commit.prune);
        expression.burn_earlier(demand.names(), commit.burn);
    }
    let write = ConditionalWrite { returning: Some(Returned::AllNew), ..expression.update(key)? };
    fenced(write, demand.names(), commit.fence)
}

/// Edits a live item at any version. Leaves no id. So the edit cannot be recognised later.
pub fn edit_anywhere(key: Attributes, layout: &Layout, clauses: &Clauses) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.edit(clauses, layout);
    // A missing row has no mark of a tombstone either.
    expression.name("#key", layout.partition_key);
    expression.demand("attribute_exists(#key)");
    expression.name("#version", layout.names.version);
    // A row that another program wrote may have no version yet.
    expression.value(":one", number(1));
    expression.value(":zero", number(0));
    expression.set("#version = if_not_exists(#version, :zero) + :one");
    expression.update(key)
}

/// Marks a write as burned: no copy of it will be applied in this window. Leaves the rest of an item or a tombstone as
/// it is. Also burns `others`, earlier attempts of the same change. Returns the new row. There is no burn of a write
/// that adopts its row.
///
/// `known` is the row as last seen, if any. Where the version marks a tombstone, the burn keeps the mark, and therefore
/// demands an unchanged row.
///
/// `None` also if `known` is not the row of the write, or is older.
pub fn burn(
    key: Attributes,
    layout: &Layout,
    sent: &SentWrite,
    others: &[WriteId],
    known: Option<&Row>,
) -> Option<ConditionalWrite> {
    let Base::Row { version, window, incarnation } = sent.on else { return None };
    let demand = match known {
        Some(row) if row.at.incarnation != incarnation || row.at.version < version => return None,
        Some(row) => Demand::of(layout, row),
        None => Demand::at(layout, ItemVersion { version, incarnation })?,
    };
    let demand = &if window == 1 { demand } else { demand.in_window() };
    let is_tombstone = known.is_some_and(|row| row.is_tombstone);
    if demand.is_foreign() {
        return None;
    }
    let mut expression = Expression::default();
    expression.demand_window(demand, sent.id);
    expression.raise_version();
    expression.value(":zero", number(0));
    expression.set("#writes.#id = :zero - #version");
    expression.burn_earlier(demand.names(), others);
    if demand.layout().marks_by_version() && is_tombstone {
        expression.demand_mark(demand.names());
        expression.set("#buried = #version + :one");
    } else if demand.layout().marks_by_version() {
        expression.demand_life(demand.layout());
        if demand.layout().demands_values() {
            // A mark of a later version must not become that of the row when the version rises.
            expression.remove("#buried");
        }
    }
    Some(ConditionalWrite { returning: Some(Returned::AllNew), ..expression.update(key)? })
}

impl Expression {
    fn raise_version(&mut self) {
        self.value(":one", number(1));
        self.set("#version = #version + :one");
    }

    fn edit(&mut self, clauses: &Clauses, layout: &Layout) {
        let Clauses { numbers, set, remove, stamps, append, demands, is_to_change, holds } = clauses;
        let mut changes = Vec::new();
        for (index, AddedNumber { path, by, low, high }) in numbers.iter().enumerate() {
            let number = self.path(path);
            self.set(format!("{number} = {number} + :by{index}"));
            self.demand(format!("{number} BETWEEN :low{index} AND :high{index}"));
            for (placeholder, value) in [("by", by), ("low", low), ("high", high)] {
                self.value(format!(":{placeholder}{index}"), AttributeValue::N(value.clone()));
            }
        }
        for (index, (path, value)) in set.iter().enumerate() {
            let path = self.path(path);
            self.value(format!(":s{index}"), value.clone());
            self.set(format!("{path} = :s{index}"));
            changes.push(format!("attribute_not_exists({path}) OR {path} <> :s{index}"));
            if matches!(value, AttributeValue::L(_)) {
                // A set stays a set. The row that refuses the list tells its kind.
                let kinds = ["SS", "NS", "BS"].map(|kind| {
                    self.value(format!(":{kind}"), AttributeValue::S(kind.to_owned()));
                    format!("attribute_type({path}, :{kind})")
                });
                self.demand(format!("NOT ({})", kinds.join(" OR ")));
            }
        }
        for path in remove {
            let path = self.path(path);
            changes.push(format!("attribute_exists({path})"));
            self.remove(path);
        }
        for (index, (attribute, value)) in stamps.iter().enumerate() {
            let name = self.path(std::slice::from_ref(attribute));
            self.value(format!(":t{index}"), value.clone());
            self.set(format!("{name} = :t{index}"));
        }
        for (index, (path, more)) in append.iter().enumerate() {
            let list = self.path(path);
            self.value(format!(":l{index}"), more.clone());
            self.set(format!("{list} = list_append({list}, :l{index})"));
        }
        let mut values = 0;
        for condition in demands {
            let text = self.condition(condition, &mut values);
            self.demand(text);
        }
        if *is_to_change {
            self.demand(format!("({})", changes.join(" OR ")));
        }
        self.holds(holds, layout);
        self.demand_life(layout);
    }

    fn holds(&mut self, holds: &Holds, layout: &Layout) {
        if layout.held.is_none() {
            return;
        }
        self.name("#holds", layout.names.holds);
        if holds.is_empty() {
            // A row that another build wrote has no map yet. A path into it would be refused as invalid.
            self.value(":none", AttributeValue::M(HashMap::new()));
            return self.set("#holds = if_not_exists(#holds, :none)");
        }
        let Holds { place, free, clear } = holds;
        if let Some((id, hold)) = place {
            self.name("#hold", id);
            self.value(":hold", hold.clone());
            self.value(":holds", number(MOST_HOLDS));
            self.set("#holds.#hold = :hold");
            self.demand("size(#holds) < :holds");
        }
        if let Some(id) = free {
            self.name("#free", id);
            self.remove("#holds.#free");
        }
        for (index, id) in clear.iter().enumerate() {
            let name = self.name(format!("#c{index}"), id);
            self.remove(format!("#holds.{name}"));
        }
    }

    /// The text of a condition. `values` counts its values, over all conditions of an edit.
    pub(super) fn condition(&mut self, condition: &Condition, values: &mut usize) -> String {
        let (path, demanded) = match condition {
            Condition::At(path, demanded) => (self.path(path), demanded),
            Condition::Not(condition) => return format!("(NOT {})", self.condition(condition, values)),
            // DynamoDB refuses parentheses in parentheses.
            Condition::All(parts) | Condition::Any(parts) if parts.len() == 1 => {
                return self.condition(&parts[0], values);
            }
            Condition::All(parts) | Condition::Any(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.condition(part, values)).collect();
                let word = if matches!(condition, Condition::All(_)) { " AND " } else { " OR " };
                return format!("({})", parts.join(word));
            }
        };
        let index = *values;
        *values += 1;
        let (text, value) = match demanded {
            Demanded::Compared(comparison, value) => {
                (format!("{path} {} :e{index}", comparison.sign()), Some(value.clone()))
            }
            Demanded::There => (format!("attribute_exists({path})"), None),
            Demanded::Missing => (format!("attribute_not_exists({path})"), None),
            Demanded::Type(name) => {
                (format!("attribute_type({path}, :e{index})"), Some(AttributeValue::S((*name).to_owned())))
            }
        };
        if let Some(value) = value {
            self.value(format!(":e{index}"), value);
        }
        text
    }

    /// Gives the names in a path placeholders. Returns the path in an expression.
    fn path(&mut self, path: &[String]) -> String {
        let parts: Vec<_> = path.iter().map(|name| self.placeholder(name)).collect();
        parts.join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use crate::format::AsKind;
    use crate::format::layout::Settings;
    use crate::format::row::first_attributes;

    const LAYOUT: Layout = Layout { settings: Settings { window: 4, ..Settings::own() }, ..Layout::of_key("id") };

    fn row(creator: u8, version: u64) -> Row {
        let mut attributes = first_attributes(&LAYOUT, WriteId::from_bytes([creator; 8]));
        attributes.insert("_version".to_owned(), number(version));
        Row::read(&LAYOUT, attributes).expect("a row")
    }

    #[test]
    fn a_burn_demands_the_window_of_its_write_from_the_row_that_was_seen_last() {
        let sent = |on| SentWrite { id: WriteId::from_random(9), on, fence: None, rules: LAYOUT.rules() };
        let window = |window: u64, known: Option<&Row>| {
            let at = row(7, 5).at;
            let on = Base::Row { version: at.version, window, incarnation: at.incarnation };
            let values = burn(Attributes::new(), &LAYOUT, &sent(on), &[], known)?.values;
            let version = |name: &str| values[name].as_n()?.parse::<u64>().ok();
            Some((version(":first")?, version(":last")?))
        };
        assert_eq!([window(4, None), window(1, None)], [Some((5, 8)), Some((5, 5))]);
        assert_eq!(window(4, Some(&row(7, 6))), Some((6, 9)), "no copy was applied before it");
        assert_eq!(window(1, Some(&row(7, 5))), Some((5, 5)));
        assert_eq!([row(7, 4), row(8, 6)].map(|other| window(4, Some(&other))), [None, None], "another row");
        assert!(burn(Attributes::new(), &LAYOUT, &sent(Base::NoRow(Version::ABSENT.next())), &[], None).is_none());
    }

    #[test]
    fn new_values_are_no_condition_of_an_edit_unless_they_have_to_differ() {
        let all = Clauses {
            numbers: vec![AddedNumber {
                path: vec!["n".to_owned()],
                by: "1".into(),
                low: "0".into(),
                high: "9".into(),
            }],
            set: vec![(vec!["a".to_owned()], number(1))],
            remove: vec![vec!["b".to_owned()]],
            stamps: vec![("at".to_owned(), number(2))],
            append: vec![(vec!["l".to_owned()], AttributeValue::L(Vec::new()))],
            demands: vec![Condition::At(vec!["c".to_owned()], Demanded::There)],
            is_to_change: true,
            holds: Holds { free: Some("f".to_owned()), ..Holds::default() },
        };
        assert_eq!(all.conditions(), Clauses { stamps: Vec::new(), append: Vec::new(), ..all.clone() });
        let any = Clauses { is_to_change: false, ..all.clone() };
        let Clauses { numbers, demands, holds, .. } = any.clone();
        let conditions = Clauses { numbers, demands, holds, ..Clauses::default() };
        assert_eq!(any.conditions(), conditions);
    }
}
