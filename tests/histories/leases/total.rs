//! What histories were made of: a run in which something never happened shows little.

use super::TTL;
use super::checks::{Ended, both_believed};
use super::record::{Done, Told, What};
use super::timeline::{Change, Timeline};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Total {
    histories: usize,
    requests: usize,
    operations: usize,
    acquired: usize,
    /// By what came late, so that nobody held it.
    acquired_unheard: usize,
    renewed: usize,
    released: usize,
    told_held: usize,
    told_lost: usize,
    written: usize,
    writes_refused_as_fenced: usize,
    told_nothing_applied: usize,
    unknown: usize,
    unknown_that_landed: usize,
    removed_by_ttl: usize,
    /// Histories in which two held it at one moment, their clocks being further apart than assumed.
    two_believed: usize,
}

impl AddAssign for Total {
    fn add_assign(&mut self, more: Total) {
        self.histories += more.histories;
        self.requests += more.requests;
        self.operations += more.operations;
        self.acquired += more.acquired;
        self.acquired_unheard += more.acquired_unheard;
        self.renewed += more.renewed;
        self.released += more.released;
        self.told_held += more.told_held;
        self.told_lost += more.told_lost;
        self.written += more.written;
        self.writes_refused_as_fenced += more.writes_refused_as_fenced;
        self.told_nothing_applied += more.told_nothing_applied;
        self.unknown += more.unknown;
        self.unknown_that_landed += more.unknown_that_landed;
        self.removed_by_ttl += more.removed_by_ttl;
        self.two_believed += more.two_believed;
    }
}

impl Total {
    pub fn of(requests: usize, ended: &Ended) -> Self {
        let timeline = Timeline::of(&ended.history, &ended.applied);
        let done = ended.history.done.lock().expect("no panic");
        // What was woken up when all was calm is left out.
        let last = ended.landed.last().copied().unwrap_or_default();
        let count = |such: &dyn Fn(&Done) -> bool| done.iter().filter(|one| one.number <= last && such(one)).count();
        let changes = |change: Change| timeline.lease.iter().filter(|state| state.change == change).count();
        let heard: BTreeSet<_> =
            done.iter().filter(|one| one.what != What::Release).filter_map(|one| one.token).collect();
        let unheard = |token: &u64| !heard.contains(token);
        let acquired = timeline.lease.iter().filter(|state| state.change == Change::Acquired);
        Total {
            histories: 1,
            requests,
            operations: count(&|_| true),
            acquired: changes(Change::Acquired),
            acquired_unheard: acquired.map(|state| state.token).filter(unheard).count(),
            renewed: changes(Change::Renewed),
            released: changes(Change::Released),
            told_held: count(&|one| matches!(one.told, Told::Held { .. })),
            told_lost: count(&|one| one.told == Told::Fenced && !one.what.is_protected()),
            written: timeline.items.values().flatten().filter(|write| write.op != TTL).count(),
            writes_refused_as_fenced: count(&|one| one.told == Told::Fenced && one.what.is_protected()),
            told_nothing_applied: count(&|one| one.told == Told::NotApplied),
            unknown: count(&|one| one.told == Told::Unknown),
            unknown_that_landed: count(&|one| one.told == Told::Unknown && ended.landed.contains(&one.number)),
            removed_by_ttl: ended.applied.iter().filter(|applied| applied.op == TTL).count(),
            two_believed: usize::from(!both_believed(&ended.history).is_empty()),
        }
    }

    pub fn assert_enough_happened(&self) {
        let Total { histories, acquired, renewed, released, written, two_believed, .. } = *self;
        assert!(acquired > 2 * histories && written > 2 * histories, "little happened: {self:?}");
        assert!(renewed.min(released).min(self.writes_refused_as_fenced) > histories, "little happened: {self:?}");
        assert!(self.told_held.min(self.told_lost) * 2 > histories, "nobody stood in another's way: {self:?}");
        assert!(self.acquired_unheard > 0 && self.removed_by_ttl * 20 > histories, "nothing was forgotten: {self:?}");
        assert!(two_believed * 50 > histories, "clocks were never too far apart: {self:?}");
        assert!(self.unknown * 8 < self.operations, "unknown is for the rare case: {self:?}");
        assert!(
            0 < self.unknown_that_landed && self.unknown_that_landed < self.unknown,
            "unknown was never worth its name: {self:?}"
        );
    }
}
