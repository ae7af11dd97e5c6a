//! What follows from the verdict on a refused write (pure): is it told, sent again, burned, or unknown?
//!
//! The async loops of tables and transactions do what these functions say, and so do the models in `dev/models`.

use crate::protocol::judge::{Base, SentWrite, Verdict};
use crate::version::{ItemVersion, Version};

/// What follows from the refusal of a write at a version, or of a create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterWrite {
    /// This attempt was applied.
    Applied,
    /// A copy of an earlier attempt was applied, after that attempt had been refused. The outcome is unknown.
    EarlierApplied,
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
pub fn after_write(
    sent: &SentWrite,
    verdict: Verdict,
    is_pending: bool,
    is_soon: bool,
    named_by_client: bool,
) -> AfterWrite {
    match verdict {
        Verdict::Landed(version) if version == committed(sent).version => AfterWrite::Applied,
        Verdict::Landed(_) => AfterWrite::EarlierApplied,
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

/// The steps of a transaction, as far as they decide which row remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// It creates, updates or deletes, and leaves the write id.
    Writes,
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

/// Which step remembers a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// A step that writes remembers it, or no step needs to.
    NotNeeded,
    /// The add with this position among the steps.
    Step(usize),
    /// No step can. The transaction must not be sent.
    Missing,
}

/// Says which add of a transaction gets the id and a window. One row must remember a transaction that adds.
///
/// `kept` is the row of an earlier attempt. A copy of that attempt must find the id of a later one, so the row stays the
/// same.
#[must_use]
pub fn anchor_of(steps: impl Iterator<Item = StepKind> + Clone, kept: Option<usize>) -> Anchor {
    let adds = steps.clone().any(|step| matches!(step, StepKind::Adds { .. }));
    if !adds || steps.clone().any(|step| step == StepKind::Writes) {
        return Anchor::NotNeeded;
    }
    let may_anchor = |step: StepKind| match step {
        StepKind::Adds { row, can_anchor } => can_anchor && kept.is_none_or(|kept| kept == row),
        StepKind::Writes | StepKind::Checks => false,
    };
    steps.enumerate().find(|(_, step)| may_anchor(*step)).map_or(Anchor::Missing, |(index, _)| Anchor::Step(index))
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
    use crate::protocol::memory::WriteId;

    /// A version that was read never goes down, unless the table was restored.
    #[test]
    fn a_version_that_went_down_is_corrupt_unless_a_client_named_it_or_a_send_is_pending() {
        let at = ItemVersion {
            version: Version::new(7).expect("small enough"),
            incarnation: WriteId::from_bytes([1; 8]).as_incarnation(),
        };
        let on = Base::Row { version: at.version, window: 1, incarnation: at.incarnation };
        let id = WriteId::from_bytes([2; 8]);
        let sent = SentWrite { id, on, remembered: 8, fence: None, rows_may_vanish: false, versions_may_repeat: false };
        let after = |is_pending, named| after_write(&sent, Verdict::Corrupt, is_pending, false, named);
        assert_eq!((after(false, false), after(false, true)), (AfterWrite::Corrupt, AfterWrite::Conflict));
        assert_eq!((after(true, false), after(true, true)), (AfterWrite::Unknown, AfterWrite::Unknown));
    }

    const X: StepKind = StepKind::Adds { row: 0, can_anchor: true };
    const Y: StepKind = StepKind::Adds { row: 1, can_anchor: true };
    const UNKNOWN: StepKind = StepKind::Adds { row: 0, can_anchor: false };

    fn anchor(steps: &[StepKind], kept: Option<usize>) -> Anchor {
        anchor_of(steps.iter().copied(), kept)
    }

    #[test]
    fn the_first_add_to_a_known_row_is_the_anchor_unless_another_step_remembers_or_an_earlier_attempt_had_one() {
        assert_eq!(anchor(&[StepKind::Checks, X, Y], None), Anchor::Step(1));
        assert_eq!(anchor(&[UNKNOWN, Y], None), Anchor::Step(1));
        assert_eq!(anchor(&[X, Y], Some(1)), Anchor::Step(1));
        assert_eq!(anchor(&[X, StepKind::Writes], None), Anchor::NotNeeded);
        assert_eq!(anchor(&[StepKind::Checks], None), Anchor::NotNeeded);
        assert_eq!(anchor(&[UNKNOWN], None), Anchor::Missing);
        assert_eq!(anchor(&[X], Some(1)), Anchor::Missing);
    }
}
