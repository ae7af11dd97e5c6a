//! [`judge`] (pure): finds out from the row that refused a write what became of every send of that write.

use super::memory::{Memory, Trace, WriteId};
use crate::version::{Incarnation, Version};
use tracing::debug;

/// One conditional write: the parts that decide its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentWrite {
    /// The id of the write.
    pub id: WriteId,
    /// The state of the row that its condition demands.
    pub on: Base,
    /// How many commits the row remembers an id: R.
    pub remembered: u64,
    /// Its fencing token, if it has one. A row that has seen a higher token refuses the write.
    pub fence: Option<u64>,
    /// Whether rows of its table may vanish at any time.
    pub rows_may_vanish: bool,
    /// Whether versions of its table may repeat. Then only an id proves anything.
    pub versions_may_repeat: bool,
}

/// The state of the row that a conditional write demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// No row: the write is a create, and makes this version.
    NoRow(Version),
    /// A row of this incarnation at one of the versions of a window. A write to a foreign row adopts it: it has a window
    /// of one version, and its id becomes the incarnation.
    Row {
        /// The lowest version: the one that the writer saw.
        version: Version,
        /// The number of versions in the window: W. A versioned write has 1.
        window: u64,
        /// The row that the writer saw.
        incarnation: Incarnation,
    },
}

/// The parts of a row that a refusal shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenRow {
    /// The current version.
    pub version: Version,
    /// The incarnation.
    pub incarnation: Incarnation,
    /// The recent writes. `None` if the attribute is missing or malformed.
    pub memory: Option<Memory>,
    /// The highest fencing token that the row has seen, if any.
    pub fence: Option<u64>,
}

impl SeenRow {
    /// Whether the row refuses writes with this token for ever. The highest token of a row only rises.
    #[must_use]
    pub fn refuses(&self, token: Option<u64>) -> bool {
        is_fenced(self.fence, token)
    }
}

/// Whether `token` is lower than the highest token that the row has seen.
pub(crate) fn is_fenced(seen: Option<u64>, token: Option<u64>) -> bool {
    matches!((seen, token), (Some(seen), Some(token)) if token < seen)
}

/// The proof that a refusal gives about every send of one write, earlier ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A send was applied, and made this version. The refusal is an echo of it.
    Landed(Version),
    /// No send was applied, and none ever will be, because the condition cannot hold again.
    NeverApplied,
    /// No send was applied so far. A copy that is still on its way may be.
    Open,
    /// Nothing is proved. A send may have been applied, or may still be.
    Unproved,
    /// The version of the row is lower than one that was read before. Some writer broke the rules.
    Corrupt,
}

impl Verdict {
    /// The same verdict, after an event at `DEBUG` with the target `fencepost::judge` has named it.
    pub(crate) fn traced(self) -> Self {
        let (verdict, version) = match self {
            Verdict::Landed(version) => ("landed", Some(version.get())),
            Verdict::NeverApplied => ("never_applied", None),
            Verdict::Open => ("open", None),
            Verdict::Unproved => ("unproved", None),
            Verdict::Corrupt => ("corrupt", None),
        };
        debug!(target: "fencepost::judge", verdict, version, "judged");
        self
    }
}

/// Judges a refused write by the row that refused it. `None` means that there was no row.
///
/// The verdict is exact if every writer raises the version by one or more, if a row keeps the ids of others for R commits
/// or loses its incarnation with them, and if deletes leave tombstones or `rows_may_vanish` says that they do not. The
/// argument: the write is applied at a version `c` with `v <= c < v + W` only, and then its id stands in the memory until
/// the row is at least at `c + R`. So on a row at `w < v + R` a missing id proves that the write was not applied. At
/// `w >= v + W`, it never will be.
#[must_use]
pub fn judge(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    let Some(row) = seen else { return Verdict::Unproved };
    let is_mine = row.incarnation == write.id.as_incarnation();
    match write.on {
        Base::NoRow(version) if is_mine => Verdict::Landed(version),
        // A row that refuses a create does not vanish while a copy of the create can still arrive, because deletes leave
        // tombstones. Where they do not, the create may have been applied before this row, or may still be.
        Base::NoRow(_) if write.rows_may_vanish => Verdict::Unproved,
        Base::NoRow(_) => Verdict::NeverApplied,
        Base::Row { version, incarnation, .. } if incarnation.is_foreign() => {
            // The memory shows the adoption until it is pruned, and the incarnation shows it for the life of the row.
            match row.memory.as_ref().and_then(|memory| memory.get(write.id)) {
                Some(Trace::Burned(_)) => Verdict::NeverApplied,
                None if !is_mine => Verdict::Unproved,
                Some(Trace::Applied(_)) | None => Verdict::Landed(version.next()),
            }
        }
        Base::Row { incarnation, .. } if row.incarnation != incarnation => Verdict::Unproved,
        Base::Row { version, window, .. } => judge_update(write, version, window, row),
    }
}

fn judge_update(write: &SentWrite, v: Version, window: u64, row: &SeenRow) -> Verdict {
    let Some(memory) = &row.memory else { return Verdict::Unproved };
    match memory.get(write.id) {
        Some(Trace::Applied(at)) => return Verdict::Landed(at.next()),
        Some(Trace::Burned(_)) => return Verdict::NeverApplied,
        None => {}
    }
    let (v, w) = (v.get(), row.version.get());
    if write.versions_may_repeat {
        Verdict::Unproved
    } else if w < v {
        Verdict::Corrupt
    } else if w < v + window {
        // A copy that is still on its way meets the higher token too.
        if row.refuses(write.fence) { Verdict::NeverApplied } else { Verdict::Open }
    } else if w < v + write.remembered {
        Verdict::NeverApplied
    } else {
        Verdict::Unproved
    }
}

/// Whether a second copy of a refused write may still be applied, if no send of it is pending. `is_soon` says that TTL may
/// remove the row that refused a create while such a copy can arrive.
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
            write.versions_may_repeat || seen.is_some_and(is_there)
        }
    }
}

/// What a later row tells about an open attempt: one that was refused, with nothing pending, and might still be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// A second copy of it was applied, and made this version.
    Landed(Version),
    /// It was not applied, and never will be.
    Never,
    /// It was not applied so far. Holds what is known of it by this row.
    Open(SentWrite),
    /// No copy of it can be applied any more, but one may have been, and the row would have forgotten it.
    Forgotten,
}

/// Says what a row tells about an open attempt. `is_soon` is that of [`may_still_land`].
#[must_use]
pub fn fate(open: &SentWrite, seen: Option<&SeenRow>, is_soon: bool) -> Fate {
    match judge(open, seen) {
        Verdict::Landed(version) => Fate::Landed(version),
        Verdict::NeverApplied if !is_soon => Fate::Never,
        _ if may_still_land(open, seen, is_soon) => Fate::Open(open.not_applied_before(seen)),
        _ => Fate::Forgotten,
    }
}

impl SentWrite {
    /// The same write, known not to be applied when this row was seen. A copy can only be applied at the version of that row
    /// or later. So the row proves more about it, and for longer.
    #[must_use]
    pub fn not_applied_before(self, seen: Option<&SeenRow>) -> Self {
        match (self.on, seen) {
            (Base::Row { version, window, incarnation }, Some(row))
                if row.incarnation == incarnation && row.version > version && !self.versions_may_repeat =>
            {
                let passed = row.version.get() - version.get();
                let on = Base::Row { version: row.version, window: window.saturating_sub(passed), incarnation };
                SentWrite { on, ..self }
            }
            _ => self,
        }
    }
}

/// Judges a write of which no copy can be applied any more.
pub(crate) fn judge_without_copies(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    match (judge(write, seen), write.on, seen) {
        (Verdict::Open, ..) => Verdict::NeverApplied,
        (_, Base::NoRow(_), None) if !write.rows_may_vanish => Verdict::NeverApplied,
        (verdict, ..) => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Incarnation = Incarnation::from_bytes([7; 8]);
    const R: u64 = 16;
    const W: u64 = 4;

    fn version(number: u64) -> Version {
        Version::new(number).expect("small")
    }

    fn id(number: u64) -> WriteId {
        WriteId::from_random(number)
    }

    /// A row at this version, as old as its memory allows. The write with the id `n + 1` was applied at version `n`.
    fn row_at(latest: u64) -> SeenRow {
        let oldest = latest.saturating_sub(R).max(1);
        let memory = (oldest..latest).map(|n| (id(n + 1), Trace::Applied(version(n)))).collect();
        SeenRow { version: version(latest), incarnation: ROW, memory: Some(memory), fence: None }
    }

    fn write(id: WriteId, at: u64, window: u64) -> SentWrite {
        let on = Base::Row { version: version(at), window, incarnation: ROW };
        SentWrite { id, on, remembered: R, fence: None, rows_may_vanish: false, versions_may_repeat: false }
    }

    fn create(id: WriteId) -> SentWrite {
        SentWrite { on: Base::NoRow(version(1)), ..write(id, 1, 1) }
    }

    /// A row of another program with this content.
    fn foreign(at: u64, content: u8) -> SeenRow {
        SeenRow { incarnation: Incarnation::of_content([content; 16]), memory: None, ..row_at(at) }
    }

    /// A write that adopts such a row.
    fn adoption(id: WriteId, at: u64, content: u8) -> SentWrite {
        let on = Base::Row { version: version(at), window: 1, incarnation: Incarnation::of_content([content; 16]) };
        SentWrite { on, rows_may_vanish: true, ..write(id, at, 1) }
    }

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
        assert!(may(&SentWrite { rows_may_vanish: true, ..create(id(99)) }, seen(40)));
        // Where another program writes without a condition, a state may come back.
        let any = SentWrite { versions_may_repeat: true, ..add };
        assert!(may(&any, None) && may(&any, seen(40 + 2 * R)));
        // An adoption demands the version and no incarnation. Elsewhere, no version comes twice.
        let adopts = adoption(id(99), 40, 1);
        assert!(may(&adopts, Some(foreign(40, 2))));
        assert!(!may(&adopts, Some(foreign(41, 2))) && !may(&adopts, seen(41)) && !may(&adopts, None));
    }

    /// A copy of an open attempt is applied after the row that refused the attempt was seen. So the row would remember it
    /// for R commits from then on, and not only from the version of the attempt.
    #[test]
    fn an_open_attempt_is_settled_by_a_row_that_remembers_enough_and_is_unknown_by_a_later_one() {
        let refused_by = row_at(42);
        let open = write(id(99), 40, W).not_applied_before(Some(&refused_by));
        assert_eq!(open.on, Base::Row { version: version(42), window: 2, incarnation: ROW });
        let fates: Vec<_> = (42..=42 + R).map(|at| fate(&open, Some(&row_at(at)), false)).collect();
        assert!(matches!(fates[..2], [Fate::Open(_), Fate::Open(_)]), "{fates:?}");
        assert!(fates[2..usize::try_from(R).expect("small")].iter().all(|fate| *fate == Fate::Never), "{fates:?}");
        assert_eq!(fates.last(), Some(&Fate::Forgotten));
        assert_eq!([None, Some(&foreign(43, 1))].map(|row| fate(&open, row, false)), [Fate::Forgotten; 2]);
        let applied = SentWrite { id: id(43), ..open };
        assert_eq!(fate(&applied, Some(&row_at(44)), false), Fate::Landed(version(43)));
        assert!(matches!(fate(&create(id(99)), Some(&refused_by), true), Fate::Open(_)));
        assert_eq!(fate(&create(id(99)), Some(&refused_by), false), Fate::Never);
    }

    #[test]
    fn a_write_is_recognised_while_its_id_is_remembered_and_names_the_version_that_it_made() {
        for behind in 1..=R {
            let row = row_at(40 + behind);
            assert_eq!(judge(&write(id(41), 40, 1), Some(&row)), Verdict::Landed(version(41)), "behind {behind}");
        }
        assert_eq!(judge(&write(id(41), 40, 1), Some(&row_at(41 + R))), Verdict::Unproved);
        assert_eq!(judge(&write(id(43), 40, W), Some(&row_at(50))), Verdict::Landed(version(43)));
    }

    #[test]
    fn a_write_without_an_id_is_open_in_its_window_then_never_applied_then_unproved() {
        for window in [1, W, R] {
            for behind in 0..=R + 2 {
                let expected = match behind {
                    _ if behind < window => Verdict::Open,
                    _ if behind < R => Verdict::NeverApplied,
                    _ => Verdict::Unproved,
                };
                let judged = judge(&write(id(999), 40, window), Some(&row_at(40 + behind)));
                assert_eq!(judged, expected, "window {window}, behind {behind}");
            }
        }
    }

    #[test]
    fn a_burned_write_is_never_applied_however_long_its_row_remembers_it() {
        for behind in 1..=R {
            let burned = [(id(999), Trace::Burned(version(40)))];
            let row = SeenRow { memory: Some(burned.into_iter().collect()), ..row_at(40 + behind) };
            assert_eq!(judge(&write(id(999), 40, W), Some(&row)), Verdict::NeverApplied, "behind {behind}");
        }
    }

    #[test]
    fn a_version_below_the_one_that_was_read_is_corrupt() {
        assert_eq!(judge(&write(id(999), 40, W), Some(&row_at(39))), Verdict::Corrupt);
    }

    #[test]
    fn a_purged_row_made_anew_proves_nothing_about_a_write_on_the_old_one() {
        // The incarnation's reason to exist: same version, same id, another row.
        let anew = SeenRow { incarnation: Incarnation::from_bytes([8; 8]), ..row_at(41) };
        assert_eq!(judge(&write(id(999), 40, 1), Some(&anew)), Verdict::Unproved);
        assert_eq!(judge(&write(id(999), 40, 1), None), Verdict::Unproved);
    }

    #[test]
    fn a_row_without_memory_proves_nothing() {
        let row = SeenRow { memory: None, ..row_at(41) };
        assert_eq!(judge(&write(id(41), 40, 1), Some(&row)), Verdict::Unproved);
    }

    #[test]
    fn a_create_is_recognised_by_the_incarnation_at_any_version() {
        let mine = create(WriteId::from_bytes([7; 8]));
        for latest in [1, 1000] {
            assert_eq!(judge(&mine, Some(&row_at(latest))), Verdict::Landed(version(1)));
        }
        assert_eq!(judge(&create(id(5)), Some(&row_at(1))), Verdict::NeverApplied);
        assert_eq!(judge(&create(id(5)), None), Verdict::Unproved);
    }

    #[test]
    fn an_adoption_is_recognised_by_the_incarnation_and_is_otherwise_unproved() {
        let mine = WriteId::from_bytes([7; 8]);
        for latest in [6, 1000] {
            assert_eq!(judge(&adoption(mine, 5, 1), Some(&row_at(latest))), Verdict::Landed(version(6)));
        }
        let adopted_by_another = SeenRow { incarnation: Incarnation::from_bytes([8; 8]), ..row_at(6) };
        for row in [None, Some(&foreign(5, 1)), Some(&foreign(5, 2)), Some(&foreign(6, 2)), Some(&adopted_by_another)] {
            assert_eq!(judge(&adoption(mine, 5, 1), row), Verdict::Unproved, "{row:?}");
        }
    }

    #[test]
    fn a_row_that_lost_its_incarnation_to_another_program_proves_nothing() {
        for write in [write(id(41), 40, 1), write(id(999), 40, W)] {
            assert_eq!(judge(&write, Some(&foreign(41, 1))), Verdict::Unproved);
        }
    }

    #[test]
    fn where_versions_may_repeat_only_an_id_proves_something() {
        let repeats = |write: SentWrite| SentWrite { versions_may_repeat: true, ..write };
        for latest in [39, 40, 41, 50, 90] {
            assert_eq!(judge(&repeats(write(id(999), 40, 1)), Some(&row_at(latest))), Verdict::Unproved, "{latest}");
        }
        assert_eq!(judge(&repeats(write(id(41), 40, 1)), Some(&row_at(45))), Verdict::Landed(version(41)));
        let burned =
            SeenRow { memory: Some([(id(999), Trace::Burned(version(40)))].into_iter().collect()), ..row_at(41) };
        assert_eq!(judge(&repeats(write(id(999), 40, 1)), Some(&burned)), Verdict::NeverApplied);
    }

    #[test]
    fn where_rows_may_vanish_a_create_that_finds_another_row_is_unproved() {
        let create = SentWrite { rows_may_vanish: true, ..create(id(5)) };
        for row in [None, Some(&row_at(1)), Some(&foreign(1, 1))] {
            assert_eq!(judge(&create, row), Verdict::Unproved);
            assert_eq!(judge_without_copies(&create, row), Verdict::Unproved);
        }
        let mine = SentWrite { id: WriteId::from_bytes([7; 8]), ..create };
        assert_eq!(judge(&mine, Some(&row_at(3))), Verdict::Landed(version(1)));
    }

    #[test]
    fn an_open_write_is_never_applied_where_the_row_has_seen_a_higher_token() {
        for (mine, seen, verdict) in [
            (Some(7), Some(8), Verdict::NeverApplied),
            (Some(8), Some(8), Verdict::Open),
            (Some(7), None, Verdict::Open),
            (None, Some(8), Verdict::Open),
        ] {
            let row = SeenRow { fence: seen, ..row_at(5) };
            let judged = judge(&SentWrite { fence: mine, ..write(id(90), 5, W) }, Some(&row));
            assert_eq!(judged, verdict, "{mine:?} {seen:?}");
        }
        // Long after, it may have been applied before the higher token came.
        let row = SeenRow { fence: Some(8), ..row_at(5 + R) };
        assert_eq!(judge(&SentWrite { fence: Some(7), ..write(id(90), 5, W) }, Some(&row)), Verdict::Unproved);
    }

    #[test]
    fn where_no_copy_can_come_an_open_write_was_not_applied() {
        let judged = |write: &SentWrite, row: Option<&SeenRow>| judge_without_copies(write, row);
        assert_eq!(judged(&write(id(90), 5, 1), Some(&row_at(5))), Verdict::NeverApplied);
        assert_eq!(judged(&write(id(6), 5, 1), Some(&row_at(7))), Verdict::Landed(version(6)));
        assert_eq!(judged(&write(id(90), 5, 1), Some(&row_at(7))), Verdict::NeverApplied);
        assert_eq!(judged(&write(id(90), 5, 1), Some(&row_at(5 + R))), Verdict::Unproved);
        assert_eq!(judged(&write(id(90), 5, 1), None), Verdict::Unproved);
        assert_eq!(judged(&create(id(5)), None), Verdict::NeverApplied);
        assert_eq!(judged(&create(id(5)), Some(&row_at(1))), Verdict::NeverApplied);
    }
}
