//! What follows from the verdict on a refused write (pure): is it told, sent again, burned, or unknown?
//!
//! The async loops of tables and transactions do what these functions say, and so do the models in `dev/models`.

use crate::error::Failure;
use crate::protocol::judge::{Base, SentWrite, Verdict};
use crate::version::{ItemVersion, Version};

/// The most earlier attempts of one change that the next one burns. A change that has more of them gives up, because each of
/// them makes the expressions of the next one longer.
pub(crate) const MOST_OPEN: usize = 32;

/// The failure of a change that ends although an earlier attempt may have been applied since it was refused: nothing says
/// that it was not.
pub(crate) fn while_open(failure: Failure) -> Failure {
    match failure {
        Failure::Unavailable { source } | Failure::Rejected { source } => Failure::OutcomeUnknown { source },
        Failure::Contention { .. } => {
            Failure::OutcomeUnknown { source: "an earlier attempt was refused and may still be applied".into() }
        }
        other => other,
    }
}

/// What follows from the refusal of a write at a version, or of a create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterWrite {
    /// It was applied.
    Applied,
    /// The write was not applied and never will be.
    Conflict,
    /// Nothing is proved, and a send is pending.
    Unknown,
    /// Nothing is pending, and the version of the row went down.
    Corrupt,
}

/// Says what follows from the refusal of a write at a version, or of a create. `is_pending` says that another send may
/// have been applied or may still be, and `is_soon` that the row may vanish while a copy of a create can arrive.
/// `named_by_client` says that the version was not read: a client may make one up.
///
/// Only a pending send can make the outcome unknown. With nothing pending, a row that does not show our id is a conflict.
#[must_use]
pub fn after_write(verdict: Verdict, is_pending: bool, is_soon: bool, named_by_client: bool) -> AfterWrite {
    match verdict {
        Verdict::Landed(_) => AfterWrite::Applied,
        Verdict::NeverApplied if !is_soon => AfterWrite::Conflict,
        _ if is_pending => AfterWrite::Unknown,
        Verdict::Corrupt if !named_by_client => AfterWrite::Corrupt,
        _ => AfterWrite::Conflict,
    }
}

/// What follows from the refusal of an add, or of its burn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterAdd {
    /// The add was applied, and made this version.
    Landed(Version),
    /// Under its id, the add was not applied and never will be.
    NotApplied,
    /// A copy may still be applied: burn it.
    Burn,
    /// Nothing is proved, and a send is pending.
    Unknown,
    /// Nothing is pending, and the version of the row went down.
    Corrupt,
}

/// Says what follows from the refusal of an add.
#[must_use]
pub fn after_add(verdict: Verdict, is_pending: bool) -> AfterAdd {
    match (verdict, is_pending) {
        (Verdict::Landed(version), _) => AfterAdd::Landed(version),
        // A version that was read never goes down. One that a caller made up is no state to start from either.
        (Verdict::Corrupt, false) => AfterAdd::Corrupt,
        (Verdict::NeverApplied, _) | (_, false) => AfterAdd::NotApplied,
        (Verdict::Open, true) => AfterAdd::Burn,
        (Verdict::Unproved | Verdict::Corrupt, true) => AfterAdd::Unknown,
    }
}

/// Says what follows from the refusal of the burn of an add. The verdict is that on the add.
#[must_use]
pub fn after_burn(verdict: Verdict) -> AfterAdd {
    match verdict {
        Verdict::Landed(version) => AfterAdd::Landed(version),
        Verdict::NeverApplied => AfterAdd::NotApplied,
        Verdict::Open | Verdict::Unproved | Verdict::Corrupt => AfterAdd::Unknown,
    }
}

/// Whether the row is still in the window of a refused add.
#[must_use]
pub fn is_in_window(sent: &SentWrite, at: ItemVersion) -> bool {
    match sent.on {
        Base::NoRow(_) => false,
        Base::Row { version, window, incarnation } => {
            let (first, now) = (version.get(), at.version.get());
            at.incarnation == incarnation && (first..first + window).contains(&now)
        }
    }
}

/// What follows from the cancellation of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterCancellation {
    /// All steps were applied.
    Landed,
    /// No step was applied, and none ever will be under this id. Decide again.
    NotApplied,
    /// No copy can be applied any more, because the lease is lost. The rows show whether an earlier one was.
    AskRows,
    /// A copy may still be applied: burn a step that leaves an id.
    Burn,
    /// Nothing is proved, and a send is pending.
    Unknown,
    /// Nothing is pending, and the version of a row went down.
    Corrupt,
}

/// Says what follows from a cancellation, by the verdict on all steps.
#[must_use]
pub fn after_cancellation(verdict: Verdict, is_pending: bool, is_lease_lost: bool) -> AfterCancellation {
    match verdict {
        Verdict::Unproved | Verdict::Open if is_pending && is_lease_lost => AfterCancellation::AskRows,
        Verdict::Unproved | Verdict::Open if is_pending => AfterCancellation::Burn,
        verdict => after_settling(verdict, is_pending),
    }
}

/// Says what follows from the verdict on a transaction when nothing more can be done to get a better one.
#[must_use]
pub fn after_settling(verdict: Verdict, is_pending: bool) -> AfterCancellation {
    match (verdict, is_pending) {
        (Verdict::Landed(_), _) => AfterCancellation::Landed,
        (Verdict::NeverApplied, _) | (Verdict::Unproved | Verdict::Open, false) => AfterCancellation::NotApplied,
        (_, true) => AfterCancellation::Unknown,
        (Verdict::Corrupt, false) => AfterCancellation::Corrupt,
    }
}

/// How one step of a transaction is burned, so that no copy of the transaction is applied any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepBurn {
    /// A tombstone takes the free key.
    Tombstone,
    /// The row remembers the id as burned.
    InRow,
}

/// Says how a step that leaves an id is burned. `None` if it cannot be.
#[must_use]
pub fn burn_of_step(sent: &SentWrite) -> Option<StepBurn> {
    match sent.on {
        // Somebody may remove the tombstone while a copy is still on its way.
        Base::NoRow(_) if sent.rows_may_vanish => None,
        Base::NoRow(_) => Some(StepBurn::Tombstone),
        Base::Row { incarnation, .. } => (!incarnation.is_foreign()).then_some(StepBurn::InRow),
    }
}

/// The steps of a transaction, as far as they decide which rows remember it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// It creates, updates or deletes this row, or is an anchored add, and leaves the write id.
    Writes(usize),
    /// It adds to this row. `can_anchor` says that the row is known, so that the add can have a window.
    Adds {
        /// The row.
        row: usize,
        /// Whether the add can have a window.
        can_anchor: bool,
    },
    /// It checks.
    Checks,
}

/// Says which adds of a transaction, by their positions, become anchors: they get the id and a window. `None` if no row
/// would remember the transaction, so that it must not be sent.
///
/// One row must remember a transaction that adds. `open` has, for each earlier attempt that may still be applied, the rows
/// that would remember it: the next attempt excludes it by writing to one of them.
#[must_use]
pub fn anchors_of(steps: &[StepKind], open: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut anchors = Vec::new();
    let anchor = |is_wanted: &dyn Fn(usize) -> bool| {
        steps.iter().position(|step| matches!(step, StepKind::Adds { row, can_anchor: true } if is_wanted(*row)))
    };
    for rows in open.iter().filter(|rows| !writes_to(steps, rows)) {
        anchors.extend(anchor(&|row| rows.contains(&row)).filter(|step| !anchors.contains(step)));
    }
    let adds = steps.iter().any(|step| matches!(step, StepKind::Adds { .. }));
    let is_remembered = !anchors.is_empty() || steps.iter().any(|step| matches!(step, StepKind::Writes(_)));
    if adds && !is_remembered {
        anchors.push(anchor(&|_| true)?);
    }
    Some(anchors)
}

/// Whether one of the steps leaves an id in one of these rows.
#[must_use]
pub fn writes_to(steps: &[StepKind], rows: &[usize]) -> bool {
    steps.iter().any(|step| matches!(step, StepKind::Writes(row) if rows.contains(row)))
}

/// The state of the row after the write is applied.
pub(crate) fn committed(sent: &SentWrite) -> ItemVersion {
    match sent.on {
        Base::NoRow(version) => ItemVersion { version, incarnation: sent.id.as_incarnation() },
        Base::Row { version, .. } => made(sent, version.next()),
    }
}

/// The state of the row after the write was applied and made this version.
pub(crate) fn made(sent: &SentWrite, version: Version) -> ItemVersion {
    match sent.on {
        Base::Row { incarnation, .. } if !incarnation.is_foreign() => ItemVersion { version, incarnation },
        // The write made the row, or adopted it.
        Base::Row { .. } | Base::NoRow(_) => ItemVersion { version, incarnation: sent.id.as_incarnation() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version that was read never goes down, unless the table was restored.
    #[test]
    fn a_version_that_went_down_is_corrupt_unless_a_client_named_it_or_a_send_is_pending() {
        let after = |is_pending, named| after_write(Verdict::Corrupt, is_pending, false, named);
        assert_eq!((after(false, false), after(false, true)), (AfterWrite::Corrupt, AfterWrite::Conflict));
        assert_eq!((after(true, false), after(true, true)), (AfterWrite::Unknown, AfterWrite::Unknown));
    }

    const X: StepKind = StepKind::Adds { row: 0, can_anchor: true };
    const Y: StepKind = StepKind::Adds { row: 1, can_anchor: true };
    const UNKNOWN: StepKind = StepKind::Adds { row: 0, can_anchor: false };

    #[test]
    fn the_first_add_to_a_known_row_is_the_anchor_unless_another_step_remembers() {
        assert_eq!(anchors_of(&[StepKind::Checks, X, Y], &[]), Some(vec![1]));
        assert_eq!(anchors_of(&[UNKNOWN, Y], &[]), Some(vec![1]));
        assert_eq!(anchors_of(&[X, StepKind::Writes(2)], &[]), Some(vec![]));
        assert_eq!(anchors_of(&[StepKind::Checks], &[]), Some(vec![]));
        assert_eq!(anchors_of(&[UNKNOWN], &[]), None);
    }

    #[test]
    fn an_add_to_a_row_that_would_remember_an_open_attempt_is_an_anchor_unless_another_step_excludes_that_attempt() {
        assert_eq!(anchors_of(&[X, Y], &[vec![1]]), Some(vec![1]));
        assert_eq!(anchors_of(&[X, Y, StepKind::Writes(2)], &[vec![1, 5]]), Some(vec![1]));
        assert_eq!(anchors_of(&[X, Y, StepKind::Writes(2)], &[vec![1, 2]]), Some(vec![]));
        assert_eq!(anchors_of(&[X, Y], &[vec![1], vec![0], vec![1]]), Some(vec![1, 0]));
        assert_eq!(anchors_of(&[X, Y], &[vec![5]]), Some(vec![0]), "what is left is burned by a write of its own");
        assert!(writes_to(&[X, StepKind::Writes(2)], &[1, 2]) && !writes_to(&[X, StepKind::Writes(2)], &[0, 1]));
    }
}
