//! What histories were made of: a run in which something never happened shows little.

use super::checks::Ended;
use super::client::{Sent, Told, What};
use super::plan::{Change, Name};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Total {
    histories: usize,
    /// To the table.
    requests: usize,
    invocations: usize,
    batches: usize,
    messages: usize,
    /// Registers and deletes that said what another had said, by whomever and for whatever reason.
    duplicates: usize,
    lost_answers: u32,
    registered: usize,
    same: usize,
    superseded: usize,
    /// Of those, registers of the very instance that was deleted.
    stayed_deleted: usize,
    deleted: usize,
    already_gone: usize,
    came_late: usize,
    folded: usize,
    nameless: usize,
    shown: usize,
    shown_nothing: usize,
    told_nothing_applied: usize,
    unknown: usize,
    unknown_that_landed: usize,
    violations: usize,
}

impl AddAssign for Total {
    fn add_assign(&mut self, more: Total) {
        self.histories += more.histories;
        self.requests += more.requests;
        self.invocations += more.invocations;
        self.batches += more.batches;
        self.messages += more.messages;
        self.duplicates += more.duplicates;
        self.lost_answers += more.lost_answers;
        self.registered += more.registered;
        self.same += more.same;
        self.superseded += more.superseded;
        self.stayed_deleted += more.stayed_deleted;
        self.deleted += more.deleted;
        self.already_gone += more.already_gone;
        self.came_late += more.came_late;
        self.folded += more.folded;
        self.nameless += more.nameless;
        self.shown += more.shown;
        self.shown_nothing += more.shown_nothing;
        self.told_nothing_applied += more.told_nothing_applied;
        self.unknown += more.unknown;
        self.unknown_that_landed += more.unknown_that_landed;
        self.violations += more.violations;
    }
}

impl Total {
    /// Of a history that holds.
    pub fn of(requests: usize, ended: &Ended) -> Self {
        let count = |such: &dyn Fn(&Sent) -> bool| ended.sent.iter().filter(|sent| such(sent)).count();
        let told = |told: Told| count(&|sent| sent.told == told);
        let is_register = |sent: &Sent| matches!(sent.what, What::Change(Change::Register(_)));
        let superseded = |sent: &Sent| matches!(sent.told, Told::Superseded(_));
        let stayed_deleted = |sent: &Sent| match (&sent.what, &sent.told) {
            (What::Change(Change::Register(who)), Told::Superseded(by)) => by.as_ref() == Some(who),
            _ => false,
        };
        let nameless = |sent: &Sent| matches!(&sent.what, What::Change(change) if change.who().name == Name::All);
        let is_change = |sent: &Sent| matches!(sent.what, What::Change(_));
        let numbers = |queued| ended.sent.iter().filter(move |sent| sent.queued == queued).map(|sent| sent.number);
        let batches = numbers(true).collect::<BTreeSet<_>>().len();
        let mut counted = BTreeSet::new();
        let lost = ended.sent.iter().filter(|sent| counted.insert(sent.number)).map(|sent| sent.lost).sum();
        Total {
            histories: 1,
            requests,
            invocations: numbers(false).count() + batches,
            batches,
            messages: count(&|sent| sent.queued),
            duplicates: count(&is_change) - ended.history.plan.different(),
            lost_answers: lost,
            registered: told(Told::New),
            same: told(Told::Same),
            superseded: count(&|sent| is_register(sent) && superseded(sent)),
            stayed_deleted: count(&stayed_deleted),
            deleted: told(Told::Deleted),
            already_gone: told(Told::AlreadyGone),
            came_late: count(&|sent| !is_register(sent) && superseded(sent)),
            folded: told(Told::Folded),
            nameless: count(&nameless),
            shown: count(&|sent| matches!(sent.told, Told::Shown(_))),
            shown_nothing: told(Told::ShownNothing),
            told_nothing_applied: told(Told::NotApplied),
            unknown: told(Told::Unknown),
            unknown_that_landed: count(&|sent| sent.told == Told::Unknown && ended.has_landed(sent)),
            violations: 0,
        }
    }

    pub fn assert_enough_happened(&self) {
        let Total { histories, registered, same, superseded, stayed_deleted, deleted, already_gone, .. } = *self;
        let Total { came_late, folded, nameless, duplicates, shown, shown_nothing, .. } = *self;
        let often = [registered, same, superseded, deleted, already_gone, came_late, duplicates, shown, shown_nothing];
        assert!(often.iter().all(|count| *count * 2 > histories), "little happened: {self:?}");
        assert!(stayed_deleted.min(folded).min(nameless) * 8 > histories, "little happened: {self:?}");
        assert!(self.told_nothing_applied > 0 && self.lost_answers > 0, "nothing went wrong: {self:?}");
        assert!(
            0 < self.unknown_that_landed && self.unknown_that_landed < self.unknown,
            "unknown was never worth its name: {self:?}"
        );
    }
}
