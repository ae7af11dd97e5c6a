//! [`Demand`]: the state of a row that a write demands. [`Expression`]: the text that demands it.

use super::write::{Commit, ConditionalWrite, MAX_EXPRESSION, MAX_NAME, Operation};
use crate::format::AttributeValue;
use crate::format::item::Attributes;
use crate::format::layout::Layout;
use crate::format::names::Names;
use crate::format::row::{Row, bytes, first_memory, number};
use crate::{Base, ItemVersion};
use crate::{UNSEEN_IDS, WriteId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The state demanded of a row by a write: a version, or a window of versions, of one row.
///
/// A row of this crate is told by its incarnation. A foreign row is told by having none. Where versions may repeat, every
/// attribute of the value is demanded too.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    layout: &'a Layout,
    at: ItemVersion,
    /// The number of versions, from `at` on.
    window: u64,
    has_version: bool,
    /// The attributes of the row, if they are demanded.
    values: Option<&'a Attributes>,
    /// Whether the writer has seen the memory of the row.
    has_seen_memory: bool,
}

impl<'a> Demand<'a> {
    pub fn of(layout: &'a Layout, row: &'a Row) -> Self {
        let values = layout.demands_values().then_some(&row.attributes);
        Demand { layout, at: row.at, window: 1, has_version: row.has_version, values, has_seen_memory: true }
    }

    /// The row at this version, which a client named. `None` if a write to the row has to know more of it.
    pub fn at(layout: &'a Layout, at: ItemVersion) -> Option<Self> {
        let is_enough = !at.incarnation.is_foreign() && !layout.demands_values();
        is_enough.then_some(Demand { layout, at, window: 1, has_version: true, values: None, has_seen_memory: false })
    }

    /// The same row, at any version in the window of adds. A foreign row and demanded values have no window.
    #[must_use]
    pub fn in_window(self) -> Self {
        let is_exact = self.is_foreign() || self.values.is_some();
        Demand { window: if is_exact { 1 } else { self.layout.window }, ..self }
    }

    pub fn base(&self) -> Base {
        Base::Row { version: self.at.version, window: self.window, incarnation: self.at.incarnation }
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.at.incarnation.is_foreign()
    }

    pub(super) fn layout(&self) -> &'a Layout {
        self.layout
    }

    pub(super) fn names(&self) -> &'a Names {
        &self.layout.names
    }
}

/// The parts of the expressions of one write. Each rule adds its text, with the names and values in the text.
#[derive(Default)]
pub(super) struct Expression {
    set: Vec<String>,
    remove: Vec<String>,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Expression {
    pub(super) fn set(&mut self, clause: impl Into<String>) {
        self.set.push(clause.into());
    }

    pub(super) fn remove(&mut self, path: impl Into<String>) {
        self.remove.push(path.into());
    }

    pub(super) fn demand(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    /// Gives an attribute a placeholder. Returns the placeholder.
    pub(super) fn name(&mut self, placeholder: impl Into<String>, name: &str) -> String {
        let placeholder = placeholder.into();
        self.names.insert(placeholder.clone(), name.to_owned());
        placeholder
    }

    /// The placeholder of a name in a path. A name that several paths share has one.
    pub(super) fn placeholder(&mut self, name: &str) -> String {
        let known = self.names.iter().find(|(placeholder, known)| placeholder.starts_with("#n") && *known == name);
        match known {
            Some((placeholder, _)) => placeholder.clone(),
            None => self.name(format!("#n{}", self.names.len()), name),
        }
    }

    pub(super) fn value(&mut self, placeholder: impl Into<String>, value: AttributeValue) {
        self.values.insert(placeholder.into(), value);
    }

    pub(super) fn demand_state(&mut self, demand: &Demand<'_>) {
        self.demand_row(demand);
        self.demand_values(demand);
    }

    /// Demands a row in its window without a memory of the id.
    pub(super) fn demand_window(&mut self, demand: &Demand<'_>, id: WriteId) {
        if demand.is_foreign() {
            return self.demand_state(demand);
        }
        let names = demand.names();
        let (first, last) = (demand.at.version.get(), demand.at.version.get().saturating_add(demand.window - 1));
        self.name("#version", names.version);
        self.name("#incarnation", names.incarnation);
        self.name("#writes", names.writes);
        self.name("#id", &id.name());
        self.value(":incarnation", bytes(demand.at.incarnation.as_bytes()));
        self.value(":first", number(first));
        self.value(":last", number(last));
        self.demand(
            "#incarnation = :incarnation AND #version BETWEEN :first AND :last AND attribute_not_exists(#writes.#id)",
        );
        self.demand_values(demand);
    }

    /// Demands a memory with room for one more id, if the writer knows no id to remove.
    pub(super) fn demand_room(&mut self, demand: &Demand<'_>) {
        if !demand.has_seen_memory {
            self.value(":room", number(demand.layout.remembered + UNSEEN_IDS));
            self.demand("size(#writes) <= :room");
        }
    }

    fn demand_row(&mut self, demand: &Demand<'_>) {
        let names = demand.names();
        self.name("#version", names.version);
        self.name("#incarnation", names.incarnation);
        if demand.has_version {
            self.value(":at", number(demand.at.version.get()));
            self.demand("#version = :at");
        } else {
            self.demand("attribute_not_exists(#version)");
        }
        if demand.is_foreign() {
            self.name("#key", demand.layout.partition_key);
            self.demand("attribute_not_exists(#incarnation) AND attribute_exists(#key)");
        } else {
            self.value(":incarnation", bytes(demand.at.incarnation.as_bytes()));
            self.demand("#incarnation = :incarnation");
        }
    }

    fn demand_values(&mut self, demand: &Demand<'_>) {
        let Some(attributes) = demand.values else { return };
        for (index, &attribute) in demand.layout.attributes.iter().enumerate() {
            let name = self.name(format!("#d{index}"), attribute);
            if let Some(value) = attributes.get(attribute) {
                self.value(format!(":d{index}"), value.clone());
                self.demand(format!("{name} = :d{index}"));
            } else {
                self.demand(format!("attribute_not_exists({name})"));
            }
        }
    }

    /// Demands a row other than a tombstone: it has no mark, or the mark of another version.
    pub(super) fn demand_life(&mut self, layout: &Layout) {
        let Names { version, purge_at, buried, .. } = layout.names;
        let mut unmarked = Vec::new();
        if layout.marks_by_version() {
            self.name("#buried", buried);
            unmarked.push("attribute_not_exists(#buried)");
        }
        if layout.marks_by_time() {
            self.name("#purge", purge_at);
            unmarked.push("attribute_not_exists(#purge)");
        }
        let unmarked = unmarked.join(" AND ");
        if layout.marks_by_version() {
            self.name("#version", version);
            self.demand(format!("((attribute_exists(#buried) AND #buried <> #version) OR ({unmarked}))"));
        } else {
            self.demand(unmarked);
        }
    }

    /// Demands a row without holds. What was held would be lost with the row.
    pub(super) fn demand_no_holds(&mut self, layout: &Layout) {
        if layout.held.is_some() {
            self.name("#holds", layout.names.holds);
            self.value(":nothing", number(0));
            self.demand("(attribute_not_exists(#holds) OR size(#holds) = :nothing)");
        }
    }

    pub(super) fn demand_mark(&mut self, names: &Names) {
        self.name("#version", names.version);
        self.name("#buried", names.buried);
        self.demand("#buried = #version");
    }

    /// Raises the version of a row in a known state by one, and stores the id. Adopts a foreign row.
    pub(super) fn commit_at(&mut self, demand: &Demand<'_>, commit: &Commit<'_>) {
        let names = demand.names();
        let at = demand.at.version;
        self.name("#version", names.version);
        self.name("#writes", names.writes);
        self.value(":next", number(at.next().get()));
        if demand.is_foreign() {
            self.name("#incarnation", names.incarnation);
            self.value(":id", bytes(commit.id.as_bytes()));
            self.value(":writes", first_memory(commit.id, at.get()));
            self.set("#version = :next, #incarnation = :id, #writes = :writes");
        } else {
            self.name("#id", &commit.id.name());
            self.set("#version = :next, #writes.#id = :at");
            if demand.values.is_some() {
                // The version may come back, together with the values. A burned write must not be applied then.
                self.demand("attribute_not_exists(#writes.#id)");
            }
        }
        self.prune(commit.prune);
        self.burn_earlier(demand.names(), commit.burn);
    }

    /// Demands a row without a memory of earlier attempts of the same change, and leaves these attempts as burned.
    pub(super) fn burn_earlier(&mut self, names: &Names, burn: &[WriteId]) {
        if burn.is_empty() {
            return;
        }
        self.name("#version", names.version);
        self.value(":zero", number(0));
        for earlier in self.demand_unremembered(names, burn) {
            self.set(format!("{earlier} = :zero - #version"));
        }
    }

    /// Demands a row without a memory of these writes. Returns the places where it would remember them.
    pub(super) fn demand_unremembered(&mut self, names: &Names, ids: &[WriteId]) -> Vec<String> {
        let mut paths = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            self.name("#writes", names.writes);
            let path = format!("#writes.{}", self.name(format!("#b{index}"), &id.name()));
            self.demand(format!("attribute_not_exists({path})"));
            paths.push(path);
        }
        paths
    }

    /// Demands that the row remembers neither the write nor an earlier attempt, where the demanded state may come back.
    pub(super) fn demand_that_no_attempt_was_applied(&mut self, demand: &Demand<'_>, commit: &Commit<'_>) {
        if demand.layout.demands_values() {
            let ids: Vec<_> = [commit.id].iter().chain(commit.burn).copied().collect();
            self.demand_unremembered(demand.names(), &ids);
        }
    }

    pub(super) fn prune(&mut self, prune: &[WriteId]) {
        for (index, old) in prune.iter().enumerate() {
            let name = self.name(format!("#p{index}"), &old.name());
            self.remove(format!("#writes.{name}"));
        }
    }

    /// All that is demanded, with the names and values of the whole expression.
    pub(super) fn demanded(self) -> (String, HashMap<String, String>, Attributes) {
        (self.conditions.join(" AND "), self.names, self.values)
    }

    pub(super) fn update(self, key: Attributes) -> Option<ConditionalWrite> {
        let mut text = format!("SET {}", self.set.join(", "));
        if !self.remove.is_empty() {
            let _ = write!(text, " REMOVE {}", self.remove.join(", "));
        }
        let fits = text.len() <= MAX_EXPRESSION;
        fits.then(|| self.write(Operation::Update { key, expression: text }))?
    }

    pub(super) fn write(self, action: Operation) -> Option<ConditionalWrite> {
        let condition = self.conditions.join(" AND ");
        let fits = condition.len() <= MAX_EXPRESSION && self.names.values().all(|name| name.len() <= MAX_NAME);
        let (names, values) = (self.names, self.values);
        fits.then_some(ConditionalWrite { action, condition: Cow::Owned(condition), names, values, returning: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::layout::{Deletes, OtherWriters, Regions, Settings};
    use crate::format::row::first_attributes;

    #[test]
    fn a_row_has_a_window_if_it_is_ours_and_its_version_says_all() {
        let ours = Layout { settings: Settings::own(), attributes: &["a"], ..Layout::of_key("id") };
        let swept = Settings::of(OtherWriters::Versioned, Deletes::Sweep, Regions::One);
        let shared = Layout { settings: swept, ..ours };
        let any = Layout { settings: Settings::of(OtherWriters::Any, Deletes::Remove, Regions::One), ..ours };
        let made = first_attributes(&ours, WriteId::from_bytes([7; 8]));
        let foreign = Attributes::from([("a".to_owned(), number(1)), ("_version".to_owned(), number(5))]);
        for (layout, row, expected) in
            [(ours, &made, 8), (shared, &made, 8), (any, &made, 1), (shared, &foreign, 1), (any, &foreign, 1)]
        {
            let row = Row::read(&layout, row.clone()).expect("a row");
            match Demand::of(&layout, &row).in_window().base() {
                Base::Row { window, .. } => assert_eq!(window, expected, "{layout:?} {row:?}"),
                Base::NoRow(_) => panic!("a row"),
            }
        }
    }

    #[test]
    fn a_condition_has_at_most_4096_bytes_and_a_name_255() {
        let is_written = |condition: usize, name: usize| {
            let mut expression = Expression::default();
            expression.demand("x".repeat(condition));
            expression.name("#n", &"n".repeat(name));
            expression.write(Operation::Check { key: Attributes::new() }).is_some()
        };
        assert!(is_written(4096, 255));
        assert!(!is_written(4097, 255) && !is_written(4096, 256));
    }
}
