//! The rules of rows with a version.

use super::{Breaches, Change, Image, Rule};
use crate::maintenance::explain::Kind;
use fencepost_core::format::AsKind;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::{Layout, OtherWriters};
use fencepost_core::format::number::Number;
use fencepost_core::format::row::Row;
use fencepost_core::hold::{Hold, read_holds};
use fencepost_core::{Trace, WriteId};
use std::collections::BTreeSet;

/// How many holds may go with one write before their sums become too many to compare. Writes of this crate remove fewer.
const MOST_GONE: usize = 16;

/// Two images, of which one follows the other.
struct Step<'a> {
    before: &'a Row,
    after: &'a Row,
    is_one: bool,
    /// Whether another program may have made it.
    is_shared: bool,
}

pub(super) fn check(
    layout: &Layout,
    before: Option<&Image<'_>>,
    after: &Image<'_>,
    change: &Change<'_>,
    found: &mut Breaches,
) {
    let Ok(now) = &after.kind.1 else { return };
    let is_shared = layout.other_writers != OtherWriters::Nobody;
    let is_ours = |image: &&Image<'_>| image.kind() != Kind::Foreign;
    if !is_ours(&after) {
        if !is_shared {
            found.add(Rule::OtherWriters, "another program wrote the row, without what belongs to this crate");
        }
        return;
    }
    // Such programs may put any version, so neither a version nor what a row remembers of one says anything.
    if layout.demands_values() {
        return;
    }
    check_memory(now, found);
    let Some(before) = before.filter(is_ours) else {
        check_first(layout, before, now, change, found);
        return;
    };
    let Ok(then) = &before.kind.1 else { return };
    let step = Step { before: then, after: now, is_one: change.is_one, is_shared };
    if then.at.incarnation != now.at.incarnation {
        if change.is_one && !is_shared && !is_restamp(layout, before.image, after.image) {
            found.add(Rule::Incarnation, "the row has another incarnation");
        }
        return;
    }
    step.check_version(layout, [before.image, after.image], found);
    step.check_ids(layout, found);
    if now.fence < then.fence && !is_shared {
        found.add(Rule::Fence, format!("the highest token fell from {:?} to {:?}", then.fence, now.fence));
    }
    let [was_placed_by, is_placed_by] = [before, after].map(|image| image.image.get(layout.names.placed_by));
    let are_live = [before.kind(), after.kind()] == [Kind::Live; 2];
    if are_live && was_placed_by.is_some() && was_placed_by != is_placed_by {
        found.add(Rule::Placed, "the row names another attempt that placed it");
    }
    if let (Some(number), true) = (layout.held, change.is_one) {
        check_holds(layout, number, before.image, after.image, found);
    }
}

/// No two writes were applied at one version, and none above that of the row.
fn check_memory(row: &Row, found: &mut Breaches) {
    let mut seen = BTreeSet::new();
    for (id, trace) in row.memory.iter() {
        let at = trace.version();
        if at >= row.at.version {
            found.add(Rule::WriteId, format!("the write {} is one of a later version, {}", id.name(), at.get()));
        } else if matches!(trace, Trace::Applied(_)) && !seen.insert(at) {
            found.add(Rule::WriteId, format!("two writes were applied at version {}", at.get()));
        }
    }
}

/// The first image of this crate: of a create, or of the write that adopted the row of another program.
fn check_first(layout: &Layout, before: Option<&Image<'_>>, now: &Row, change: &Change<'_>, found: &mut Breaches) {
    if !change.is_one {
        return;
    }
    let foreign = before.and_then(|before| before.kind.1.as_ref().ok());
    let first = foreign.map_or(layout.first_version, |row| row.at.version.next().get());
    if now.at.version.get() != first {
        found.add(Rule::Version, format!("its first version is {} instead of {first}", now.at.version.get()));
    }
    let is_creator = |(id, _): (WriteId, Trace)| id.as_incarnation() == now.at.incarnation;
    if now.memory.count() != 1 || !now.memory.iter().any(is_creator) {
        found.add(Rule::Incarnation, "a new row has not the id of its write as its incarnation, or remembers others");
    }
}

impl Step<'_> {
    fn check_version(&self, layout: &Layout, [before, after]: [&Attributes; 2], found: &mut Breaches) {
        let [was, is] = [self.before, self.after].map(|row| row.at.version.get());
        let names = &layout.names;
        let is_ticket = || same_but(before, after, &[names.given, names.served]);
        let broken = match is.checked_sub(was) {
            None => true,
            Some(0) => !is_ticket(),
            Some(1) => false,
            Some(_) => self.is_one && !self.is_shared,
        };
        if broken {
            found.add(Rule::Version, format!("version {was} became {is}"));
        }
    }

    fn check_ids(&self, layout: &Layout, found: &mut Breaches) {
        let [old, new] = [self.before, self.after].map(|row| &row.memory);
        let at = self.before.at.version;
        let mut added = 0;
        for (id, trace) in new.iter() {
            // Only a breach needs it, and most changes have none.
            let name = || id.name();
            match (old.get(id), trace) {
                (Some(before), _) if before == trace => {}
                (Some(Trace::Burned(_)), Trace::Applied(_)) => {
                    found.add(Rule::WriteId, format!("the write {} was applied after it was burned", name()));
                }
                (Some(Trace::Applied(_)), Trace::Burned(_)) => {
                    found.add(Rule::WriteId, format!("the write {} was burned after it was applied", name()));
                }
                (Some(before), _) => {
                    let [before, again] = [before, trace].map(|trace| trace.version().get());
                    found.add(
                        Rule::WriteId,
                        format!("the write {} was applied at version {before}, and again at {again}", name()),
                    );
                }
                (None, _) if !self.is_one => {}
                (None, _) if trace.version() != at => {
                    let (new, at) = (trace.version().get(), at.get());
                    found.add(
                        Rule::WriteId,
                        format!("the write {} says version {new}, and the row was at {at}", name()),
                    );
                }
                (None, trace) => added += usize::from(matches!(trace, Trace::Applied(_))),
            }
        }
        if added > 1 {
            found.add(Rule::WriteId, format!("{added} writes made one version"));
        }
        if self.is_shared {
            return;
        }
        let is_early = |trace: Trace| trace.version().get() + layout.remembered > self.after.at.version.get();
        for (id, trace) in old.iter() {
            if matches!(trace, Trace::Burned(_)) && new.get(id).is_none() && is_early(trace) {
                let at = trace.version().get();
                found.add(Rule::Memory, format!("the write {} was burned at version {at} and is forgotten", id.name()));
            }
        }
    }
}

/// An operator gave the row of a restored table a new incarnation, and nothing else changed.
fn is_restamp(layout: &Layout, before: &Attributes, after: &Attributes) -> bool {
    same_but(before, after, &[layout.names.incarnation])
}

/// Whether the images differ at most in these attributes.
fn same_but(before: &Attributes, after: &Attributes, names: &[&str]) -> bool {
    let differs = |one: &Attributes, other: &Attributes| {
        one.iter().any(|(name, value)| !names.contains(&name.as_str()) && other.get(name) != Some(value))
    };
    !differs(before, after) && !differs(after, before)
}

/// A write that takes makes the number smaller by what it holds, and may give back some of the holds that it removes.
/// A write that only removes holds may be one that also changes the number, such as a restock.
fn check_holds(layout: &Layout, number: &str, before: &Attributes, after: &Attributes, found: &mut Breaches) {
    let holds = [before, after].map(|image| read_holds(&layout.names, image));
    let [Ok(old), Ok(new)] = &holds else { return };
    let is_in = |one: &[Hold], hold: &Hold| one.iter().any(|other| other.attempt == hold.attempt);
    if let Some(hold) = new.iter().find(|hold| is_in(old, hold) && !old.contains(hold)) {
        found.add(Rule::Holds, format!("the hold of {} became another one", hold.attempt.name()));
    }
    let quantities = |these: Vec<&Hold>| -> Option<Vec<i128>> {
        these.iter().map(|hold| Number::parse(&hold.quantity)?.to_whole()).collect()
    };
    let taken = quantities(new.iter().filter(|hold| !is_in(old, hold)).collect());
    let gone = quantities(old.iter().filter(|hold| !is_in(new, hold)).collect());
    let [was, is] = [before, after]
        .map(|image| image.get(number).and_then(AsKind::as_n).and_then(|text| Number::parse(text)?.to_whole()));
    let (Some(taken), Some(gone), Some(was), Some(is)) = (taken, gone, was, is) else { return };
    if taken.is_empty() || gone.len() > MOST_GONE {
        return;
    }
    let lowest = was - taken.iter().sum::<i128>();
    let mut possible = BTreeSet::from([lowest]);
    for quantity in gone {
        possible.extend(possible.clone().into_iter().map(|sum| sum + quantity));
    }
    if !possible.contains(&is) {
        found.add(Rule::Holds, format!("`{number}` went from {was} to {is}, and {taken:?} more is held"));
    }
}
