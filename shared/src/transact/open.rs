//! [`OpenAttempts`]: the attempts of one change that were refused and may still be applied (pure).

use super::step::Step;
use crate::layout::Layout;
use crate::protocol::after::writes_to;
use crate::protocol::judge::{SentWrite, Verdict, judge, may_still_land};
use crate::protocol::memory::WriteId;
use crate::protocol::row::Row;
use crate::table::prepare::{burnable, soon_purged};
use crate::version::Incarnation;
use std::time::SystemTime;

/// One of them.
#[derive(Debug)]
pub(super) struct OpenAttempt {
    pub(super) id: WriteId,
    /// The rows that would remember it, each with what was sent to it.
    pub(super) writes: Vec<(usize, SentWrite)>,
}

impl OpenAttempt {
    fn rows(&self) -> Vec<usize> {
        self.writes.iter().map(|(row, _)| *row).collect()
    }

    fn to(&self, row: usize) -> impl Iterator<Item = &SentWrite> {
        self.writes.iter().filter(move |(of, _)| *of == row).map(|(_, sent)| sent)
    }
}

/// The earlier attempts that the next one excludes, so that at most one of them all is applied.
#[derive(Debug, Default)]
pub(super) struct OpenAttempts {
    open: Vec<OpenAttempt>,
    /// The earlier attempt that was applied: a second copy of it, after it had been refused.
    pub(super) landed: Option<WriteId>,
}

impl OpenAttempts {
    pub(super) fn push(&mut self, attempt: OpenAttempt) {
        self.open.push(attempt);
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn contains(&self, id: WriteId) -> bool {
        self.open.iter().any(|open| open.id == id)
    }

    /// The rows that would remember each of them.
    pub(super) fn rows(&self) -> Vec<Vec<usize>> {
        self.open.iter().map(OpenAttempt::rows).collect()
    }

    /// Takes one of them that may still be applied although these steps are: none of the steps writes to a row that would
    /// remember it.
    pub(super) fn take_one_beside(&mut self, steps: &[Step]) -> Option<OpenAttempt> {
        let kinds: Vec<_> = steps.iter().map(Step::kind).collect();
        let index = self.open.iter().position(|open| !writes_to(&kinds, &open.rows()))?;
        Some(self.open.swap_remove(index))
    }

    /// The ids that a write to this row burns.
    pub(super) fn burnable(&self, row: usize, incarnation: Option<Incarnation>) -> Vec<WriteId> {
        burnable(self.open.iter().flat_map(|open| open.to(row)), incarnation)
    }

    /// Judges them by a row that was shown: finds the one that was applied, and drops those that never will be.
    pub(super) fn judge(&mut self, row: usize, shown: Option<&Row>, layout: &Layout, now: SystemTime) {
        let seen = shown.map(Row::seen);
        let has_landed = |sent: &SentWrite| matches!(judge(sent, seen.as_ref()), Verdict::Landed(_));
        if let Some(open) = self.open.iter().find(|open| open.to(row).any(has_landed)) {
            self.landed = Some(open.id);
        }
        let may_land = |sent: &SentWrite| may_still_land(sent, seen.as_ref(), soon_purged(layout, sent, shown, now));
        self.open.retain(|open| open.to(row).all(may_land));
    }
}
