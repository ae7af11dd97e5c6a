//! What histories were made of: a run in which something never happened shows little.

use super::checks::Ended;
use super::plan::{Change, Name};
use super::scene::{Sent, TTL, Told, What};
use crate::histories::total::Total;
use std::collections::BTreeSet;

/// What a history that holds was made of.
pub fn total(ended: &Ended) -> Total {
    // The last look at each address is left out.
    let sent = &ended.sent[..ended.sent.len() - ended.last.len()];
    let count = |such: &dyn Fn(&Sent) -> bool| sent.iter().filter(|sent| such(sent)).count();
    let told = |told: Told| count(&|sent| sent.told == told);
    let is_register = |sent: &Sent| matches!(sent.what, What::Change(Change::Register(_)));
    let superseded = |sent: &Sent| matches!(sent.told, Told::Superseded(_));
    let stayed_deleted = |sent: &Sent| match (&sent.what, &sent.told) {
        (What::Change(Change::Register(who)), Told::Superseded(by)) => by.as_ref() == Some(who),
        _ => false,
    };
    let nameless = |sent: &Sent| matches!(&sent.what, What::Change(change) if change.who().name == Name::All);
    let is_change = |sent: &Sent| matches!(sent.what, What::Change(_));
    let numbers = |queued| sent.iter().filter(move |sent| sent.was_queued() == queued).map(|sent| sent.number);
    let batches = numbers(true).collect::<BTreeSet<_>>().len();
    Total::of(&[
        ("invocations", numbers(false).count() + batches),
        ("batches", batches),
        ("messages", count(&Sent::was_queued)),
        ("duplicates", count(&is_change) - ended.scene.plan.different()),
        ("registered", told(Told::New)),
        ("same", told(Told::Same)),
        ("superseded", count(&|sent| is_register(sent) && superseded(sent))),
        ("stayedDeleted", count(&stayed_deleted)),
        ("deleted", told(Told::Deleted)),
        ("alreadyGone", told(Told::AlreadyGone)),
        ("cameLate", count(&|sent| !is_register(sent) && superseded(sent))),
        ("folded", told(Told::Folded)),
        ("nameless", count(&nameless)),
        ("shown", count(&|sent| matches!(sent.told, Told::Shown(_)))),
        ("shownNothing", told(Told::ShownNothing)),
        ("toldNothingApplied", told(Told::NotApplied)),
        ("removedByTtl", ended.applied.iter().filter(|applied| applied.op == TTL).count()),
        ("unknown", told(Told::Unknown)),
        ("unknownThatLanded", count(&|sent| sent.told == Told::Unknown && ended.has_landed(sent))),
    ])
}

pub fn assert_enough_happened(total: &Total) {
    let histories = total["histories"];
    let often = ["registered", "same", "superseded", "deleted", "alreadyGone", "cameLate", "duplicates"];
    assert!(total.least(&often) * 2 > histories, "little happened: {total}");
    assert!(total.least(&["shown", "shownNothing"]) * 2 > histories, "little happened: {total}");
    assert!(total.least(&["stayedDeleted", "folded", "nameless"]) * 8 > histories, "little happened: {total}");
    assert!(total["removedByTtl"] * 20 > histories, "few tombstones have ended: {total}");
    assert!(total["toldNothingApplied"] > 0, "nothing went wrong: {total}");
    total.assert_unknown_is_worth_its_name();
}
