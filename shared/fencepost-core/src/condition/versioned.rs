//! Writes and checks at a version, or on a key without a row.

use super::demand::{Demand, Expression};
use super::write::{Commit, ConditionalWrite, IS_ABSENT, Operation, fenced};
use crate::Incarnation;
use crate::format::item::{Attributes, Diff};
use crate::format::layout::Layout;
use crate::format::row::{Row, bytes, number};
use std::collections::HashMap;

pub fn put_if_absent(layout: &Layout, item: Attributes) -> ConditionalWrite {
    if_absent(layout, Operation::Put { item })
}

pub fn check_absent(layout: &Layout, key: Attributes) -> ConditionalWrite {
    if_absent(layout, Operation::Check { key })
}

fn if_absent(layout: &Layout, action: Operation) -> ConditionalWrite {
    ConditionalWrite {
        action,
        condition: IS_ABSENT.into(),
        names: HashMap::from([("#key".to_owned(), layout.partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Replaces the row with `item`, its complete next state, if the row is as demanded.
pub fn put_at(demand: &Demand<'_>, commit: &Commit<'_>, item: Attributes) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.demand_state(demand);
    expression.demand_that_no_attempt_was_applied(demand, commit);
    fenced(expression.write(Operation::Put { item })?, demand.names(), commit.fence)
}

pub fn remove_at(key: Attributes, demand: &Demand<'_>, commit: &Commit<'_>) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.demand_state(demand);
    expression.demand_that_no_attempt_was_applied(demand, commit);
    expression.demand_life(demand.layout());
    expression.demand_no_holds(demand.layout());
    fenced(expression.write(Operation::Delete { key })?, demand.names(), commit.fence)
}

pub fn check_at(key: Attributes, demand: &Demand<'_>) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.demand_state(demand);
    expression.write(Operation::Check { key })
}

/// Applies `diff` to the row, raises its version and stores the id, if the row is as demanded. Adopts a foreign row.
pub fn update_at(key: Attributes, demand: &Demand<'_>, commit: &Commit<'_>, diff: &Diff) -> Option<ConditionalWrite> {
    fenced(change(demand, commit, diff).update(key)?, demand.names(), commit.fence)
}

/// Applies `diff` to the row and makes it a tombstone, if the row is as demanded and live. `purge_at` (epoch seconds)
/// says when the tombstone may be removed.
pub fn bury_at(
    key: Attributes,
    demand: &Demand<'_>,
    commit: &Commit<'_>,
    diff: &Diff,
    purge_at: Option<u64>,
) -> Option<ConditionalWrite> {
    let names = demand.names();
    let mut expression = change(demand, commit, diff);
    expression.demand_life(demand.layout());
    expression.demand_no_holds(demand.layout());
    if demand.layout().marks_by_version() {
        expression.name("#buried", names.buried);
        expression.set("#buried = :next");
    }
    if let Some(seconds) = purge_at {
        expression.name("#purge", names.purge_at);
        expression.value(":purge", number(seconds));
        expression.set("#purge = :purge");
    } else {
        // A sweep goes by the time, but must leave this tombstone.
        let purge = expression.name("#purge", names.purge_at);
        expression.remove(purge);
    }
    fenced(expression.update(key)?, names, commit.fence)
}

fn change(demand: &Demand<'_>, commit: &Commit<'_>, diff: &Diff) -> Expression {
    let mut expression = Expression::default();
    expression.demand_state(demand);
    expression.commit_at(demand, commit);
    for (index, (attribute, value)) in diff.set().enumerate() {
        let name = expression.name(format!("#s{index}"), attribute);
        expression.value(format!(":s{index}"), value.clone());
        expression.set(format!("{name} = :s{index}"));
    }
    for (index, attribute) in diff.removed().enumerate() {
        let name = expression.name(format!("#r{index}"), attribute);
        expression.remove(name);
    }
    expression
}

/// Gives the row another incarnation, if it is still as it was read, and changes nothing beside it.
pub fn restamp_at(layout: &Layout, key: Attributes, row: &Row, incarnation: Incarnation) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.demand_state(&Demand::of(layout, row));
    expression.value(":new", bytes(incarnation.as_bytes()));
    expression.set("#incarnation = :new");
    expression.update(key)
}

/// Raises the version of a tombstone, if it is still as it was read. It stays one. Whoever would create an item on it by its
/// version is refused from then on.
pub fn raise_tombstone(layout: &Layout, key: Attributes, row: &Row) -> Option<ConditionalWrite> {
    let demand = Demand::of(layout, row);
    let mut expression = Expression::default();
    expression.demand_state(&demand);
    expression.value(":next", number(row.at.version.next().get()));
    let mark = expression.name("#buried", layout.names.buried);
    expression.set(format!("#version = :next, {mark} = :next"));
    // No TTL of an earlier set-up may remove it.
    let purge = expression.name("#purge", layout.names.purge_at);
    expression.remove(purge);
    expression.update(key)
}

/// Adopts a row of another program and changes nothing of its value, if it is still as it was read.
pub fn adopt_at(layout: &Layout, key: Attributes, row: &Row, commit: &Commit<'_>) -> Option<ConditionalWrite> {
    let demand = Demand::of(layout, row);
    let mut expression = Expression::default();
    expression.demand_state(&demand);
    expression.commit_at(&demand, commit);
    if row.attributes.contains_key(layout.names.buried) {
        // A mark of a later version must not become that of the row when the version rises.
        let mark = expression.name("#buried", layout.names.buried);
        expression.remove(mark);
    }
    fenced(expression.update(key)?, &layout.names, commit.fence)
}

/// Removes the tombstone, if it is still as it was read, and if its time has passed at `now` (epoch seconds).
pub fn sweep_at(layout: &Layout, key: Attributes, row: &Row, now: u64) -> Option<ConditionalWrite> {
    let names = &layout.names;
    let mut expression = Expression::default();
    expression.demand_state(&Demand::of(layout, row));
    if row.attributes.contains_key(names.buried) {
        expression.demand_mark(names);
    } else {
        // Where TTL was to remove it, a tombstone has no mark.
        expression.name("#buried", names.buried);
        expression.demand("attribute_not_exists(#buried)");
    }
    expression.name("#purge", names.purge_at);
    expression.value(":now", number(now));
    expression.demand("#purge <= :now");
    expression.write(Operation::Delete { key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteId;
    use crate::format::layout::{Deletes, OtherWriters, Regions, Settings};
    use crate::format::row::{Row, first_attributes};

    /// There, other programs may bring back the same state, so that a second copy could follow.
    #[test]
    fn a_put_or_a_removal_demands_that_the_row_does_not_remember_it_where_versions_may_repeat() {
        let ours = Layout { attributes: &["a"], ..Layout::of_key("id") };
        let any = Layout { settings: Settings::of(OtherWriters::Any, Deletes::Remove, Regions::One), ..ours };
        let [id, earlier] = [2, 3].map(|byte| WriteId::from_bytes([byte; 8]));
        for (layout, ids) in [(&ours, 0), (&any, 2)] {
            let made = first_attributes(layout, WriteId::from_bytes([1; 8]));
            let row = Row::read(layout, made.clone()).expect("a row");
            let commit = Commit { id, prune: &[], burn: &[earlier], fence: None };
            let demand = Demand::of(layout, &row);
            for write in [put_at(&demand, &commit, made), remove_at(Attributes::new(), &demand, &commit)] {
                let condition = write.expect("it is short").condition;
                assert_eq!(condition.matches("attribute_not_exists(#writes.#b").count(), ids, "{condition}");
            }
        }
    }
}
