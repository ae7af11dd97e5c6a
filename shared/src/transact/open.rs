//! [`OpenAttempts`]: the attempts of one change that were refused and may still be applied (pure).

use super::step::Step;
use crate::error::Failure;
use crate::layout::Layout;
use crate::protocol::after::{while_open, writes_to};
use crate::protocol::judge::{Fate, SentWrite, fate};
use crate::protocol::memory::WriteId;
use crate::protocol::row::Row;
use crate::table::prepare::{burnable, soon_purged};
use crate::version::Incarnation;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// One of them.
#[derive(Debug)]
pub(super) struct OpenAttempt {
    pub(super) id: WriteId,
    /// The rows that would remember it, each with what was sent to it.
    pub(super) writes: Vec<(usize, SentWrite)>,
    /// Whether it may have been applied, and a row would have forgotten it.
    pub(super) is_forgotten: bool,
}

impl OpenAttempt {
    fn rows(&self) -> Vec<usize> {
        self.writes.iter().map(|(row, _)| *row).collect()
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

    /// The failure of a change that ends here.
    pub(super) fn failed(&self, failure: Failure) -> Failure {
        if self.open.is_empty() { failure } else { while_open(failure) }
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
        let writes = self.open.iter().flat_map(|open| &open.writes);
        burnable(writes.filter(|(of, _)| *of == row).map(|(_, sent)| sent), incarnation)
    }

    /// A row of each of them of which no row was shown. A service may name only one of the steps whose condition did not
    /// hold, so a refusal by other rows does not tell whether one of these attempts was applied.
    pub(super) fn unseen(&self, is_shown: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let rows = self.open.iter().map(OpenAttempt::rows);
        let unseen = rows.filter(|rows| !rows.iter().any(|row| is_shown(*row)));
        unseen.filter_map(|rows| rows.first().copied()).collect()
    }

    /// Whether one of them may have been applied although no row that was shown tells.
    pub(super) fn has_forgotten(&self) -> bool {
        self.open.iter().any(|open| open.is_forgotten)
    }

    /// Judges them by a row that was shown: finds the one that was applied, and drops those that never will be.
    pub(super) fn judge(&mut self, row: usize, shown: Option<&Row>, layout: &Layout, now: SystemTime) {
        let (seen, landed) = (shown.map(Row::seen), &mut self.landed);
        self.open.retain_mut(|open| {
            for (_, sent) in open.writes.iter_mut().filter(|(of, _)| *of == row) {
                match fate(sent, seen.as_ref(), soon_purged(layout, sent, shown, now)) {
                    Fate::Landed(_) => *landed = Some(open.id),
                    Fate::Never => return false,
                    Fate::Open(known) => *sent = known,
                    Fate::Forgotten => open.is_forgotten = true,
                }
            }
            true
        });
    }
}
