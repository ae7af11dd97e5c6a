//! What a decision sees after a refusal: the rows that refused, and whether a race was lost.

use super::attempt::Attempt;
use super::drive::Driver;
use super::rows::{Contest, Known, KnownRow, Sending};
use super::send::Reason;
use crate::error::{Failure, FailureKind};
use fencepost_core::format::item::Attributes;
use fencepost_core::{Base, Role};
use std::collections::BTreeSet;
use tracing::debug;

impl Attempt {
    /// Gives the attempt the rows that refused its steps. Returns those to read.
    pub(super) fn learn_refusal(
        &mut self,
        driver: &mut Driver<'_>,
        sending: &Sending,
        unseen: &[usize],
        burned: Option<usize>,
    ) -> Result<Vec<usize>, Failure> {
        let reasons = std::mem::take(&mut driver.reasons);
        let was_remembered = sending.steps.first().is_some_and(|step| !self.rows[step.row].is_fresh);
        let (mut is_race_lost, mut taken, mut has_refused_edit, mut base_of_burned) = (false, false, false, None);
        let mut unread = BTreeSet::new();
        for (step, reason) in sending.steps.iter().zip(reasons) {
            let demanded = step.role.base();
            match reason {
                // The burn has shown the row as it is now.
                _ if burned == Some(step.row) => base_of_burned = demanded,
                Reason::Refused(item) => {
                    debug!(step = self.rows[step.row].name, "refused");
                    if matches!(step.role, Role::Requires(_)) {
                        self.learn(step.row, Known::Lease { is_lost: true });
                        continue;
                    }
                    let layout = self.rows[step.row].layout;
                    let known = match readable(&self.rows[step.row], item, unseen) {
                        // The decision says what follows: the key is taken at least.
                        Err(Failure { kind: FailureKind::CorruptItem { reason }, .. }) if !self.is_transaction() => {
                            Known::Damaged(reason)
                        }
                        known => known?,
                    };
                    let now_at = known.row().map(|row| row.at.version);
                    let conditions = step.refused_conditions(layout, &self.rows[step.row].known, &known);
                    self.learn(step.row, known);
                    if let Some(conditions) = conditions {
                        // An edit refused for its conditions has not lost a race. It would be refused again.
                        self.rows[step.row].refused.push(conditions);
                        has_refused_edit = true;
                        continue;
                    }
                    match demanded {
                        Some(Base::NoRow(_)) => taken |= step.is_write(),
                        Some(Base::Row { version, window, .. }) => {
                            let moved = now_at.map_or(0, |now| now.get().saturating_sub(version.get()));
                            is_race_lost |= window == 1 || moved >= window;
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
        if let Some((row, item)) = driver.shown.pop().filter(|(row, _)| burned == Some(*row)) {
            let known = readable(&self.rows[row], item, unseen)?;
            // Where a single row was burned, others may have been first all the same.
            is_race_lost |= matches!(base_of_burned, Some(Base::Row { .. })) && !self.is_transaction();
            self.learn(row, known);
        }
        if has_refused_edit {
            self.refusals += 1;
            // A decision that edits otherwise again and again waits as if it lost races.
            is_race_lost |= self.refusals > 1;
        }
        if is_race_lost && sending.contest != Contest::None {
            if was_remembered && sending.transact.is_none() {
                self.change.was_late();
            } else {
                self.change.lost_race();
            }
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
fn readable(row: &KnownRow, item: Option<Attributes>, unseen: &[usize]) -> Result<Known, Failure> {
    let of_another =
        item.as_ref().and_then(|item| row.address.key.iter().find(|(name, key)| item.get(*name) != Some(key)));
    let known = match of_another {
        Some((name, _)) => Err(Failure::of(FailureKind::InvalidRecord {
            reason: format!(
                "{name} is a key of the Record and not of the table, which has another item in this row; Store::check says \
                 in what they differ"
            ),
        })),
        None => Known::of(row.layout, item),
    };
    known.map_err(|failure| {
        if unseen.is_empty() { failure } else { Failure::of(FailureKind::OutcomeUnknown { source: failure.into() }) }
    })
}
