//! What follows from the verdict on a refused change (pure): is it told, sent again, burned, or unknown?
//!
//! `change.rs` follows these functions.

use crate::judge::{Base, SentWrite, Verdict};
use crate::version::{ItemVersion, Version};

/// The most earlier attempts of one change burned by the next one. With more of them, the change gives up, because each
/// makes the expressions of the next one longer.
pub const MOST_OPEN: usize = 32;

/// The next action after a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// The change was applied, and made this version.
    Landed(Version),
    /// The change was not applied. Decide again.
    NotApplied,
    /// A copy may still be applied: burn a write with an id.
    Burn,
    /// No copy can be applied any more, because the lease is lost. The rows show whether an earlier one was.
    AskRows,
    /// A send is pending, and there is no proof.
    Unknown,
    /// The version of a row went down with nothing pending.
    Corrupt,
}

/// The facts beside the verdict in the choice of the next action.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Another send may have been applied, or may still be.
    pub is_pending: bool,
    /// The change requires a lease already lost.
    pub is_lease_lost: bool,
    /// A write of the change can be burned, and none of the shown rows makes such a burn useless.
    pub can_burn: bool,
}

/// The next action after a refusal, by the verdict on the whole change.
///
/// Only a pending send can make the outcome unknown. With nothing pending, rows without our id refuse the change.
#[must_use]
pub fn after(verdict: Verdict, facts: Facts) -> After {
    match verdict {
        Verdict::Landed(version) => After::Landed(version),
        Verdict::NeverApplied => After::NotApplied,
        // A version never goes down after it was read, unless the table was restored.
        Verdict::Corrupt if !facts.is_pending => After::Corrupt,
        _ if !facts.is_pending => After::NotApplied,
        Verdict::Open | Verdict::Unproved if facts.is_lease_lost => After::AskRows,
        Verdict::Open | Verdict::Unproved if facts.can_burn => After::Burn,
        Verdict::Open | Verdict::Unproved | Verdict::Corrupt => After::Unknown,
    }
}

/// Whether a burn of a write would prove something after a refusal with this verdict, or `None` for a row not shown.
///
/// A shown row without proof has forgotten the id, or is another row. It would refuse the burn too.
#[must_use]
pub fn burn_helps(sent: &SentWrite, shown: Option<Verdict>) -> bool {
    can_be_burned(sent) && matches!(shown, None | Some(Verdict::Open))
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

/// Whether a write with an id can be burned, so that no copy of its change is applied any more: on a free key by a
/// tombstone on it, in a row by the id.
#[must_use]
pub fn can_be_burned(sent: &SentWrite) -> bool {
    match sent.on {
        // Another program may remove the tombstone while a copy is still on its way, and a free key may have had the row.
        Base::NoRow(_) => !sent.may_be_gone(),
        Base::Row { incarnation, .. } => !incarnation.is_foreign(),
    }
}

/// Says which adds of a transaction, by their rows, become anchors: they get the id and a window. `None` if no row
/// would remember the transaction. It must not be sent then.
///
/// One row must remember a transaction with adds. `writes` has the rows of the steps with the id. `adds` has the rows
/// of the adds, each with a flag: the row is known, so that the add can have a window. `open` has, for each open
/// attempt, the rows that would remember it: the next attempt excludes it by writing to one of them.
#[must_use]
pub fn anchors_of(writes: &[usize], adds: &[(usize, bool)], open: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut anchors = Vec::new();
    let anchor = |is_wanted: &dyn Fn(usize) -> bool| {
        adds.iter().find_map(|&(row, can_anchor)| (can_anchor && is_wanted(row)).then_some(row))
    };
    for rows in open.iter().filter(|rows| !writes_to(writes, rows)) {
        anchors.extend(anchor(&|row| rows.contains(&row)).filter(|row| !anchors.contains(row)));
    }
    if !adds.is_empty() && anchors.is_empty() && writes.is_empty() {
        anchors.push(anchor(&|_| true)?);
    }
    Some(anchors)
}

/// Whether one of the rows to which a transaction writes is one of these.
#[must_use]
pub fn writes_to(writes: &[usize], rows: &[usize]) -> bool {
    writes.iter().any(|row| rows.contains(row))
}

pub fn committed(sent: &SentWrite) -> ItemVersion {
    match sent.on {
        Base::NoRow(version) => ItemVersion { version, incarnation: sent.id.as_incarnation() },
        Base::Row { version, .. } => made(sent, version.next()),
    }
}

pub fn made(sent: &SentWrite, version: Version) -> ItemVersion {
    match sent.on {
        Base::Row { incarnation, .. } if !incarnation.is_foreign() => ItemVersion { version, incarnation },
        // The write made the row, or adopted it.
        Base::Row { .. } | Base::NoRow(_) => ItemVersion { version, incarnation: sent.id.as_incarnation() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::TableRules;
    use crate::judge::tests::{OWN, ROW, VANISHING, W, adoption, create, id, version, write};

    const LANDED: Verdict = Verdict::Landed(Version::ABSENT.next());

    #[test]
    fn only_a_pending_send_makes_a_refusal_unknown_and_only_where_nothing_can_be_burned() {
        let nothing = Facts::default();
        for facts in [nothing, Facts { is_pending: true, ..nothing }] {
            assert_eq!(after(LANDED, facts), After::Landed(Version::ABSENT.next()));
            assert_eq!(after(Verdict::NeverApplied, facts), After::NotApplied);
        }
        let pending = Facts { is_pending: true, ..nothing };
        for verdict in [Verdict::Open, Verdict::Unproved] {
            assert_eq!(after(verdict, Facts { is_lease_lost: true, can_burn: true, ..nothing }), After::NotApplied);
            assert_eq!(after(verdict, pending), After::Unknown);
            assert_eq!(after(verdict, Facts { can_burn: true, ..pending }), After::Burn);
            assert_eq!(after(verdict, Facts { can_burn: true, is_lease_lost: true, ..pending }), After::AskRows);
        }
        assert_eq!(after(Verdict::Corrupt, nothing), After::Corrupt);
        assert_eq!(after(Verdict::Corrupt, Facts { can_burn: true, is_lease_lost: true, ..pending }), After::Unknown);
    }

    const X: (usize, bool) = (0, true);
    const Y: (usize, bool) = (1, true);
    const UNKNOWN: (usize, bool) = (0, false);

    #[test]
    fn the_first_add_to_a_known_row_is_the_anchor_unless_another_step_remembers_or_an_open_attempt_needs_one() {
        for (name, writes, adds, open, anchors) in [
            ("the first add", &[][..], &[X, Y][..], &[][..], Some(vec![0])),
            ("the first to a known row", &[], &[UNKNOWN, Y], &[], Some(vec![1])),
            ("a write remembers", &[2], &[X], &[], Some(vec![])),
            ("no step", &[], &[], &[], Some(vec![])),
            ("no row remembers", &[], &[UNKNOWN], &[], None),
            ("the row of an open attempt", &[], &[X, Y], &[vec![1]], Some(vec![1])),
            ("beside a write elsewhere", &[2], &[X, Y], &[vec![1, 5]], Some(vec![1])),
            ("a write excludes it", &[2], &[X, Y], &[vec![1, 2]], Some(vec![])),
            ("two rows of three attempts", &[], &[X, Y], &[vec![1], vec![0], vec![1]], Some(vec![1, 0])),
            ("the rest is burned by a write of its own", &[], &[X, Y], &[vec![5]], Some(vec![0])),
        ] {
            assert_eq!(anchors_of(writes, adds, open), anchors, "{name}");
        }
        assert!(writes_to(&[2], &[1, 2]) && !writes_to(&[2], &[0, 1]));
    }

    #[test]
    fn a_write_can_be_burned_in_a_row_of_its_own_and_on_a_free_key_that_stays_as_it_is() {
        let ending = TableRules { values_may_end: true, ..OWN };
        let on_free_key = |rules| SentWrite { rules, ..create(id(9)) };
        let adopts = adoption(id(9), 40, 1);
        for (sent, can) in [
            (write(id(9), 40, 1), true),
            (SentWrite { rules: VANISHING, ..write(id(9), 40, 1) }, true),
            (adopts, false),
            (on_free_key(OWN), true),
            (on_free_key(VANISHING), false),
            (on_free_key(ending), false),
        ] {
            assert_eq!(can_be_burned(&sent), can, "{sent:?}");
            let shown = [None, Some(Verdict::Open), Some(Verdict::Unproved), Some(Verdict::NeverApplied)];
            assert_eq!(shown.map(|shown| burn_helps(&sent, shown)), [can, can, false, false], "{sent:?}");
        }
    }

    #[test]
    fn a_write_within_a_window_meets_the_row_it_demands_at_any_of_its_versions() {
        let add = write(id(9), 40, W);
        let at = |number, incarnation| is_in_window(&add, ItemVersion { version: version(number), incarnation });
        assert_eq!([39, 40, 43, 44].map(|number| at(number, ROW)), [false, true, true, false]);
        assert!(!at(40, id(1).as_incarnation()) && !is_in_window(&create(id(9)), committed(&create(id(9)))));
    }

    #[test]
    fn a_row_keeps_its_incarnation_unless_the_write_makes_or_adopts_it() {
        let [updated, created, adopted] =
            [write(id(9), 40, 1), create(id(9)), adoption(id(9), 40, 1)].map(|sent| committed(&sent));
        let mine = id(9).as_incarnation();
        assert_eq!((updated.version, updated.incarnation), (version(41), ROW));
        assert_eq!((created.version, created.incarnation), (version(1), mine));
        assert_eq!((adopted.version, adopted.incarnation), (version(41), mine));
    }
}
