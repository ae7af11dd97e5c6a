//! What histories were made of: a run in which something never happened shows little.

use super::checks::{Ended, both_believed};
use super::record::{Done, Told, What};
use super::scene::TTL;
use super::timeline::{Change, Timeline};
use crate::histories::total::Total;
use std::collections::BTreeSet;

/// What a history that holds was made of.
pub fn total(ended: &Ended) -> Total {
    let timeline = Timeline::of(&ended.scene, &ended.applied);
    let done = ended.scene.done.lock().expect("no panic");
    // What was woken up when all was calm is left out.
    let last = ended.landed.last().copied().unwrap_or_default();
    let count = |such: &dyn Fn(&Done) -> bool| done.iter().filter(|one| one.number <= last && such(one)).count();
    let changed =
        |change: Change| timeline.lease.iter().filter(move |state| state.op <= last && state.change == change);
    let heard: BTreeSet<_> =
        done.iter().filter(|one| !matches!(one.what, What::Release { .. })).filter_map(|one| one.token).collect();
    let unheard = |token: &u64| !heard.contains(token);
    Total::of(&[
        ("operations", count(&|_| true)),
        ("acquired", changed(Change::Acquired).count()),
        ("acquiredUnheard", changed(Change::Acquired).map(|state| state.token).filter(unheard).count()),
        ("renewed", changed(Change::Renewed).count()),
        ("released", changed(Change::Released).count()),
        ("toldHeld", count(&|one| matches!(one.told, Told::Held { .. }))),
        ("toldLost", count(&|one| one.told == Told::Fenced && !one.what.is_protected())),
        ("written", timeline.items.values().flatten().filter(|write| write.op != TTL && write.op <= last).count()),
        ("writesRefusedAsFenced", count(&|one| one.told == Told::Fenced && one.what.is_protected())),
        ("toldNothingApplied", count(&|one| one.told == Told::NotApplied)),
        ("unknown", count(&|one| one.told == Told::Unknown)),
        ("unknownThatLanded", count(&|one| one.told == Told::Unknown && ended.landed.contains(&one.number))),
        ("removedByTtl", ended.applied.iter().filter(|applied| applied.op == TTL).count()),
        ("twoBelieved", usize::from(!both_believed(&ended.scene).is_empty())),
    ])
}

pub fn assert_enough_happened(total: &Total) {
    let histories = total["histories"];
    assert!(total.least(&["acquired", "written"]) > 2 * histories, "little happened: {total}");
    let often = ["renewed", "released", "writesRefusedAsFenced"];
    assert!(total.least(&often) > histories, "little happened: {total}");
    assert!(total.least(&["toldHeld", "toldLost"]) * 2 > histories, "nobody stood in another's way: {total}");
    assert!(total["toldNothingApplied"] > 0, "nothing went wrong: {total}");
    let forgotten = total["removedByTtl"] * 20 > histories;
    assert!(total["acquiredUnheard"] > 0 && forgotten, "nothing was forgotten: {total}");
    assert!(total["twoBelieved"] * 50 > histories, "clocks were never too far apart: {total}");
    assert!(total["unknown"] * 8 < total["operations"], "unknown is for the rare case: {total}");
    total.assert_unknown_is_worth_its_name();
}
