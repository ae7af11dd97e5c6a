//! What a decision sees after a refusal: the rows that refused, and whether a race was lost.

use super::attempt::Attempt;
use super::drive::Driver;
use super::rows::{Contest, Known, Sending, WriteStep};
use super::send::Reason;
use crate::error::Failure;
use fencepost_core::condition::Operation;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::Layout;
use fencepost_core::format::row::{self, Row};
use fencepost_core::{Base, Incarnation, Role};
use std::collections::BTreeSet;
use tracing::debug;

impl WriteStep {
    /// The row with a line in which the step may wait for its turn, if it leaves the row.
    pub(super) fn line(&self) -> Option<(usize, Incarnation)> {
        match (self.role.base(), &self.write.action) {
            (Some(Base::Row { incarnation, .. }), Operation::Put { .. } | Operation::Update { .. })
                if !incarnation.is_foreign() =>
            {
                Some((self.row, incarnation))
            }
            _ => None,
        }
    }
}

impl Attempt {
    /// Notes how far the line of writers at this row has come.
    fn sees_line(&mut self, sending: &Sending, row: Option<&Row>) {
        if let Some(row) = row.filter(|_| sending.contest == Contest::Line) {
            let served = row.attributes.get(self.rows[0].layout.names.served).and_then(row::read_number);
            self.change.served(served.unwrap_or(0));
        }
    }

    /// Learns a row as it was read or shown.
    pub(super) fn learn(&mut self, row: usize, known: Known) {
        let row = &mut self.rows[row];
        let (table, key) = (&row.address.table, &row.address.key);
        match &known {
            Known::Row(seen) if row.remembers_items => self.row_cache.insert(table, key, seen, true),
            Known::Absent | Known::Damaged(_) => self.row_cache.remove(table, key),
            _ => {}
        }
        if !row.known.is_same(&known) {
            row.refused.clear();
        }
        row.known = known;
        row.is_fresh = true;
    }
}

impl Driver<'_> {
    /// Gives the attempt the rows that refused its steps. Returns those to read.
    pub(super) fn learn_refusal(
        &mut self,
        attempt: &mut Attempt,
        sending: &Sending,
        unseen: &BTreeSet<usize>,
        burned: Option<usize>,
    ) -> Result<Vec<usize>, Failure> {
        let reasons = std::mem::take(&mut self.reasons);
        let was_remembered = sending.steps.first().is_some_and(|step| !attempt.rows[step.row].is_fresh);
        let mut behind = None;
        let (mut taken, mut has_refused_edit, mut base_of_burned) = (false, false, None);
        let mut unread = BTreeSet::new();
        for (step, reason) in sending.steps.iter().zip(reasons) {
            let demanded = step.role.base();
            match reason {
                // The burn has shown the row as it is now.
                _ if burned == Some(step.row) => base_of_burned = demanded,
                Reason::Refused(item) => {
                    debug!(step = attempt.rows[step.row].name, "refused");
                    if matches!(step.role, Role::Requires(_)) {
                        attempt.learn(step.row, Known::Lease { is_lost: true });
                        continue;
                    }
                    let layout = attempt.rows[step.row].layout;
                    let known = match readable(layout, item, unseen) {
                        // The decision says what follows: the key is taken at least.
                        Err(Failure::CorruptItem { reason }) if !attempt.is_transaction => Known::Damaged(reason),
                        known => known?,
                    };
                    let now_at = known.row().map(|row| row.at.version);
                    attempt.sees_line(sending, known.row());
                    let conditions = step.refused_conditions(layout, &attempt.rows[step.row].known, &known);
                    attempt.learn(step.row, known);
                    if let Some(conditions) = conditions {
                        // An edit refused for its conditions has not lost a race. It would be refused again.
                        attempt.rows[step.row].refused.push(conditions);
                        has_refused_edit = true;
                        continue;
                    }
                    match demanded {
                        Some(Base::NoRow(_)) => taken |= step.is_write(),
                        Some(Base::Row { version, window, .. }) => {
                            let moved = now_at.map_or(0, |now| now.get().saturating_sub(version.get()));
                            if window == 1 || moved >= window {
                                behind = behind.max(Some(moved));
                            }
                        }
                        None => {}
                    }
                }
                Reason::NotNow | Reason::Rejected if matches!(step.role, Role::Requires(_)) => {}
                Reason::NotNow | Reason::Rejected => {
                    unread.insert(step.row);
                }
                Reason::None => {}
            }
        }
        if let Some((row, item)) = self.shown.pop().filter(|(row, _)| burned == Some(*row)) {
            let layout = attempt.rows[row].layout;
            let known = readable(layout, item, unseen)?;
            // Where a single row was burned, others may have been first all the same.
            if let (Some(Base::Row { version, .. }), false) = (base_of_burned, attempt.is_transaction) {
                behind = Some(known.row().map_or(0, |row| row.at.version.get().saturating_sub(version.get())));
                attempt.sees_line(sending, known.row());
            }
            attempt.learn(row, known);
        }
        if has_refused_edit {
            attempt.refusals += 1;
            // A decision that edits otherwise again and again waits as if it lost races.
            if attempt.refusals > 1 {
                behind = behind.or(Some(0));
            }
        }
        match behind.filter(|_| sending.contest != Contest::None) {
            Some(_) if was_remembered && !sending.is_transaction => attempt.change.was_late(),
            Some(behind) => attempt.change.lost_race(behind, self.now()),
            None => {}
        }
        // A taken key usually decides by itself. Otherwise, reads again the items in use by another transaction.
        if taken {
            unread.clear();
        }
        unread.extend(unseen);
        Ok(unread.into_iter().collect())
    }
}

/// A row in a refusal. If it is unreadable and `unseen` rows may show an earlier attempt, nothing is proved.
fn readable(layout: &Layout, item: Option<Attributes>, unseen: &BTreeSet<usize>) -> Result<Known, Failure> {
    Known::of(layout, item)
        .map_err(|failure| if unseen.is_empty() { failure } else { Failure::OutcomeUnknown { source: failure.into() } })
}
