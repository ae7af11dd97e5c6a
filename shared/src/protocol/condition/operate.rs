//! Writes of operators: a new incarnation, an early adoption, the removal of an expired tombstone.

use super::demand::{Demand, Expression};
use super::write::{Action, ConditionalWrite, Stamp, fenced};
use crate::layout::Layout;
use crate::protocol::item::Attributes;
use crate::protocol::row::{Row, bytes, number};
use crate::version::Incarnation;

/// Gives the row another incarnation, if it is still as it was read. Leaves the rest of an item or a tombstone as it
/// is.
pub(crate) fn restamp_at(
    layout: &Layout,
    key: Attributes,
    row: &Row,
    incarnation: Incarnation,
) -> Option<ConditionalWrite> {
    let mut expression = Expression::default();
    expression.demand_state(&Demand::of(layout, row));
    expression.value(":new", bytes(incarnation.as_bytes()));
    expression.set("#incarnation = :new");
    expression.update(key)
}

/// Adopts a row of another program and changes nothing of its value, if it is still as it was read.
pub(crate) fn adopt_at(layout: &Layout, key: Attributes, row: &Row, stamp: &Stamp<'_>) -> Option<ConditionalWrite> {
    let demand = Demand::of(layout, row);
    let mut expression = Expression::default();
    expression.demand_state(&demand);
    expression.commit_at(&demand, stamp);
    if row.attributes.contains_key(layout.names.buried) {
        // A mark of a later version must not become that of the row when the version rises.
        let mark = expression.name("#buried", layout.names.buried);
        expression.remove(mark);
    }
    fenced(expression.update(key)?, &layout.names, stamp.fence)
}

/// Removes the tombstone, if it is still as it was read, and if its time has passed at `now` (epoch seconds).
pub(crate) fn sweep_at(layout: &Layout, key: Attributes, row: &Row, now: u64) -> Option<ConditionalWrite> {
    let names = &layout.names;
    let mut expression = Expression::default();
    expression.demand_state(&Demand::of(layout, row));
    if row.attributes.contains_key(names.buried) {
        expression.demand_mark(names);
    } else {
        // Older builds left no mark.
        expression.name("#buried", names.buried);
        expression.demand("attribute_not_exists(#buried)");
    }
    expression.name("#purge", names.purge_at);
    expression.value(":now", number(now));
    expression.demand("#purge <= :now");
    expression.write(Action::Delete { key })
}
