//! What histories were made of: a run in which something never happened shows little.

use super::record::Ended;
use super::record::{NOTES, Operation, Told};
use super::timeline::Timeline;
use crate::harness::faults::{Applied, is_burn};
use crate::histories::total::Total;

/// What a history that holds was made of.
pub fn total(ended: &Ended) -> Total {
    let timeline = Timeline::of(ended);
    let count = |such: &dyn Fn(&Operation) -> bool| ended.done.iter().filter(|operation| such(operation)).count();
    let told = |such: fn(&Told) -> bool| count(&|operation| such(&operation.told));
    let has_landed = |operation: &Operation| timeline.effects_of(operation.number).next().is_some();
    let is_applied = |told: &Told| matches!(told, Told::Applied(..) | Told::Landed);
    let is_unknown = |operation: &Operation| operation.told == Told::Unknown;
    let is_burned_note = |applied: &Applied| applied.rows[0].step.table == NOTES && is_burn(applied);
    let passed = ended.done.iter().filter(|operation| operation.what == "add").map(|operation| operation.conflicts);
    Total::of(&[
        ("commits", ended.applied.len()),
        ("adds", count(&|operation| operation.what == "add" && has_landed(operation))),
        ("addsInTransactions", count(&|o| o.adds() && o.what != "add" && has_landed(o))),
        ("byTheBuildBefore", count(&|operation| operation.by_before && has_landed(operation))),
        ("burns", timeline.burns()),
        ("burnsOfCreates", ended.applied.iter().filter(|applied| is_burned_note(applied)).count()),
        ("purges", timeline.purges()),
        ("windowsPassed", usize::try_from(passed.sum::<u32>()).expect("few")),
        ("refused", told(|told| matches!(told, Told::OutOfRange(..)))),
        ("refusalsMadeUntrue", count(&|o| has_landed(o) && !is_unknown(o) && !is_applied(&o.told))),
        ("toldApplied", count(&|operation| is_applied(&operation.told))),
        ("toldNotApplied", count(&|operation| !is_applied(&operation.told) && !is_unknown(operation))),
        ("unknown", count(&is_unknown)),
        ("unknownThatLanded", count(&|operation| is_unknown(operation) && has_landed(operation))),
    ])
}

pub fn assert_enough_happened(total: &Total) {
    let enough = total.least(&["toldApplied", "toldNotApplied", "adds", "addsInTransactions"]);
    assert!(enough > total["histories"], "little happened: {total}");
    assert!(total["byTheBuildBefore"] * 2 > total["histories"], "hardly a rollback: {total}");
    let some = total.least(&["burns", "burnsOfCreates", "purges", "windowsPassed", "refused"]);
    assert!(some > 0, "something never happened: {total}");
    let told = total["toldApplied"] + total["toldNotApplied"] + total["unknown"];
    assert!(total["unknown"] * 40 < told, "unknown is for the rare case: {total}");
    assert!(total["refusalsMadeUntrue"] * 50 < total["refused"], "that is for the rare case: {total}");
    total.assert_unknown_is_worth_its_name();
}
