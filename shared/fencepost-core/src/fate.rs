//! What becomes of a refused write (pure): may a second copy of it still be applied, and what does a later row tell of it?

use super::judge::{Base, SeenRow, SentWrite, Verdict, judge};
use crate::version::{Incarnation, Version};

/// Whether a second copy of a refused write may still be applied, if no send of it is pending. `is_soon`: TTL may
/// remove the row in the way of a create while such a copy can arrive.
///
/// It may, unless the condition cannot hold again: the version has passed, the row is another one, the key is taken, the
/// token is too low.
#[must_use]
pub fn may_still_land(write: &SentWrite, seen: Option<&SeenRow>, is_soon: bool) -> bool {
    match (judge(write, seen), write.on) {
        (Verdict::Landed(_), _) => false,
        (Verdict::NeverApplied, _) => is_soon,
        (Verdict::Open | Verdict::Corrupt, _) | (Verdict::Unproved, Base::NoRow(_)) => true,
        (Verdict::Unproved, Base::Row { version, window, incarnation }) => {
            let is_below = |row: &SeenRow| row.version.get() < version.get() + window;
            let is_there = |row: &SeenRow| {
                if incarnation.is_foreign() {
                    row.incarnation.is_foreign() && row.version == version
                } else {
                    row.incarnation == incarnation && is_below(row)
                }
            };
            write.rules.versions_may_repeat || seen.is_some_and(is_there)
        }
    }
}

/// Judges an open attempt by a later row. It was refused, with nothing pending, and might still be applied. *Open*: it
/// was not applied so far, as far as a row can tell. Where rows may vanish, a row created by the attempt may be gone
/// again. *Unproved*: a copy of it may have been applied and then forgotten by the row.
#[must_use]
pub fn judge_open(open: &SentWrite, seen: Option<&SeenRow>, is_soon: bool) -> Verdict {
    match judge(open, seen) {
        Verdict::NeverApplied if !is_soon => Verdict::NeverApplied,
        Verdict::Landed(version) => Verdict::Landed(version),
        _ if may_still_land(open, seen, is_soon) => Verdict::Open,
        _ => Verdict::Unproved,
    }
}

/// The life of a row, as far as it decides whether the row would remember a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Life {
    Absent,
    Foreign,
    /// The row is of this incarnation, has a memory or not, and is at this version.
    Ours(Incarnation, bool, Version),
}

impl Life {
    pub(crate) fn of(seen: Option<&SeenRow>) -> Self {
        match seen {
            None => Life::Absent,
            Some(row) if row.incarnation.is_foreign() => Life::Foreign,
            Some(row) => Life::Ours(row.incarnation, row.memory.is_some(), row.version),
        }
    }

    pub(crate) fn demanded(on: Base) -> Self {
        match on {
            Base::NoRow(_) => Life::Absent,
            Base::Row { incarnation, .. } if incarnation.is_foreign() => Life::Foreign,
            Base::Row { incarnation, version, .. } => Life::Ours(incarnation, true, version),
        }
    }

    /// Whether a row of this life may lack the memory of writes applied to the earlier row: it is gone, another one, or
    /// has lost its memory. A missing row has nothing to forget.
    pub(crate) fn may_have_forgotten(self, before: Self) -> bool {
        match (self, before) {
            (Life::Ours(now, remembers, _), Life::Ours(then, remembered, _)) => {
                (now, remembers) != (then, remembered) || self.is_made_again(before)
            }
            _ => before != Life::Absent && self != before,
        }
    }

    /// Whether a late copy of a create made the same row again: its version went down.
    pub(crate) fn is_made_again(self, before: Self) -> bool {
        let (Life::Ours(now, _, version), Life::Ours(then, _, last)) = (self, before) else { return false };
        now == then && version < last
    }
}

impl SentWrite {
    /// The same write, known not to be applied when this row was seen. A copy can only be applied at the version of
    /// this row or later. So the row proves more about it, and for longer.
    #[must_use]
    pub fn not_applied_before(self, seen: Option<&SeenRow>) -> Self {
        match (self.on, seen) {
            (Base::Row { version, window, incarnation }, Some(row))
                if row.incarnation == incarnation && row.version > version && !self.rules.versions_may_repeat =>
            {
                let passed = row.version.get() - version.get();
                let on = Base::Row { version: row.version, window: window.saturating_sub(passed), incarnation };
                SentWrite { on, ..self }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::{OPEN, R, ROW, VANISHING, W, adoption, create, foreign, id, row_at, version, write};

    #[test]
    fn a_copy_of_a_refused_write_may_still_land_until_its_condition_cannot_hold_again() {
        let (add, seen) = (write(id(99), 40, W), |at| Some(row_at(at)));
        let may = |write: &SentWrite, row: Option<SeenRow>| may_still_land(write, row.as_ref(), false);
        let in_window: Vec<bool> = (39..=40 + W).map(|at| may(&add, seen(at))).collect();
        assert_eq!(in_window, [true, true, true, true, true, false]);
        assert!(!may(&add, seen(40 + 2 * R)), "the version has passed, although the memory proves nothing");
        assert!(!may(&add, None) && !may(&add, Some(foreign(41, 1))), "a row that is gone does not come back");
        assert!(!may(&write(id(41), 40, W), seen(41)), "it landed");
        let fenced = SeenRow { fence: Some(8), ..row_at(41) };
        assert!(!may(&SentWrite { fence: Some(7), ..add }, Some(fenced)));
        // A create: a taken key refuses it as long as the row stays.
        assert!(!may(&create(id(99)), seen(40)) && may(&create(id(99)), None));
        assert!(may_still_land(&create(id(99)), seen(40).as_ref(), true));
        assert!(may(&SentWrite { rules: VANISHING, ..create(id(99)) }, seen(40)));
        // After the loss of its memory, a row tells no ids; its version still refuses.
        let silent = |at| SeenRow { memory: None, ..row_at(at) };
        assert!(may(&add, Some(silent(40 + W - 1))) && !may(&add, Some(silent(40 + W))));
        // Where another program writes without a condition, a state may come back.
        let any = SentWrite { rules: OPEN, ..add };
        assert!(may(&any, None) && may(&any, seen(40 + 2 * R)));
        // An adoption demands the version and no incarnation. Elsewhere, no version comes twice.
        let adopts = adoption(id(99), 40, 1);
        assert!(may(&adopts, Some(foreign(40, 2))));
        assert!(!may(&adopts, Some(foreign(41, 2))) && !may(&adopts, seen(41)) && !may(&adopts, None));
    }

    /// A copy of an open attempt is applied after the refusing row was seen. So the row would remember it for R commits
    /// from then on, not only from the version of the attempt.
    #[test]
    fn an_open_attempt_is_settled_by_a_row_that_remembers_enough_and_is_unknown_by_a_later_one() {
        let refused_by = row_at(42);
        let open = write(id(99), 40, W).not_applied_before(Some(&refused_by));
        assert_eq!(open.on, Base::Row { version: version(42), window: 2, incarnation: ROW });
        let by: Vec<_> = (42..=42 + R).map(|at| judge_open(&open, Some(&row_at(at)), false)).collect();
        assert_eq!(by[..2], [Verdict::Open; 2]);
        assert!(by[2..usize::try_from(R).expect("small")].iter().all(|one| *one == Verdict::NeverApplied), "{by:?}");
        assert_eq!(by.last(), Some(&Verdict::Unproved));
        assert_eq!([None, Some(&foreign(43, 1))].map(|row| judge_open(&open, row, false)), [Verdict::Unproved; 2]);
        let unchanged = |sent: SentWrite, row| assert_eq!(sent.not_applied_before(Some(&row)), sent);
        unchanged(write(id(99), 40, W), foreign(42, 1));
        unchanged(write(id(99), 40, W), row_at(39));
        unchanged(SentWrite { rules: OPEN, ..write(id(99), 40, W) }, refused_by.clone());
        let applied = SentWrite { id: id(43), ..open };
        assert_eq!(judge_open(&applied, Some(&row_at(44)), false), Verdict::Landed(version(43)));
        assert_eq!(judge_open(&create(id(99)), Some(&refused_by), true), Verdict::Open);
    }

    #[test]
    fn a_row_may_have_forgotten_if_it_is_gone_or_another_one_or_lost_its_memory() {
        let (ours, silent) = (Life::of(Some(&row_at(40))), Life::of(Some(&SeenRow { memory: None, ..row_at(40) })));
        let others = Life::of(Some(&foreign(40, 1)));
        assert_eq!(Life::demanded(write(id(99), 40, 1).on), ours);
        assert_eq!(Life::demanded(adoption(id(99), 40, 2).on), others);
        assert_eq!(Life::demanded(create(id(99)).on), Life::of(None));
        for later in [silent, others, Life::of(None)] {
            assert!(later.may_have_forgotten(ours) && !ours.may_have_forgotten(Life::of(None)), "{later:?}");
        }
        assert!(ours.may_have_forgotten(others) && ours.may_have_forgotten(silent));
        assert!(!ours.may_have_forgotten(ours) && !others.may_have_forgotten(others));
        let [earlier, later] = [39, 41].map(|at| Life::of(Some(&row_at(at))));
        assert!(earlier.may_have_forgotten(ours) && earlier.is_made_again(ours));
        assert!(!later.may_have_forgotten(ours) && !later.is_made_again(ours) && !others.is_made_again(ours));
    }
}
