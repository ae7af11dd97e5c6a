//! [`judge`] (pure): finds out the fate of every send of a write from the row that refused it.

use super::memory::{Memory, Trace, WriteId};
use crate::version::{Incarnation, ItemVersion, Version};
use tracing::debug;

/// The settings of a table on which the outcome of a write depends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableRules {
    /// How many commits a row remembers an id: R.
    pub remembered: u64,
    /// Whether rows may vanish at any time.
    pub rows_may_vanish: bool,
    /// Whether versions may repeat, so that only an id proves anything.
    pub versions_may_repeat: bool,
    /// Whether another client may end a value just after its create. A create may have been applied, and its value ended
    /// and removed since. So neither another row nor a free key proves anything about a copy of it.
    pub values_may_end: bool,
}

/// One conditional write: the parts relevant to its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SentWrite {
    /// The id of the write.
    pub id: WriteId,
    /// The state of the row demanded by its condition.
    pub on: Base,
    /// Its fencing token, if it has one. A row with a higher token refuses the write.
    pub fence: Option<u64>,
    /// Those of its table, except that the row of a value that ends soon may vanish.
    pub rules: TableRules,
}

impl SentWrite {
    /// Whether it demands one state of the row, whose size is fixed. Where versions may repeat, it demands the values.
    pub fn is_exact(&self) -> bool {
        self.rules.versions_may_repeat || !matches!(self.on, Base::Row { window: 2.., .. })
    }

    /// Whether the row that it has left may be gone, so that what is there now says nothing about it.
    pub(crate) fn may_be_gone(&self) -> bool {
        self.rules.rows_may_vanish || self.rules.values_may_end
    }

    /// Whether the row or its memory may vanish soon after the write was applied, and the proof with it.
    pub fn memory_may_vanish(&self) -> bool {
        self.rules.versions_may_repeat || (self.rules.rows_may_vanish && matches!(self.on, Base::NoRow(_)))
    }
}

/// The state of the row demanded by a conditional write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// No row: the write is a create, and makes this version.
    NoRow(Version),
    /// A row of this incarnation at one of the versions of a window. A write to a foreign row adopts it: such a write
    /// has a window of one version; its id becomes the incarnation.
    Row {
        /// The lowest version, as seen by the writer.
        version: Version,
        /// The number of versions in the window: W. A versioned write has 1.
        window: u64,
        /// The row seen by the writer.
        incarnation: Incarnation,
    },
}

/// The parts of a row shown by a refusal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SeenRow {
    /// The current version.
    pub version: Version,
    /// The incarnation.
    pub incarnation: Incarnation,
    /// The recent writes. `None` if the attribute is missing or malformed.
    pub memory: Option<Memory>,
    /// The highest fencing token seen by the row, if any.
    pub fence: Option<u64>,
    /// When TTL or a sweep may remove the row, in epoch seconds.
    pub ends_at: Option<u64>,
}

impl SeenRow {
    pub fn at(&self) -> ItemVersion {
        ItemVersion { version: self.version, incarnation: self.incarnation }
    }

    /// Whether the row refuses writes with this token for ever. The highest token of a row only rises.
    #[must_use]
    pub fn refuses(&self, token: Option<u64>) -> bool {
        is_fenced(self.fence, token)
    }
}

pub fn is_fenced(seen: Option<u64>, token: Option<u64>) -> bool {
    matches!((seen, token), (Some(seen), Some(token)) if token < seen)
}

/// The proof from a refusal about every send of one write, earlier ones included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// A send was applied, and made this version. The refusal is an echo of it.
    Landed(Version),
    /// No send was applied, and none ever will be, because the condition cannot hold again.
    NeverApplied,
    /// No send was applied so far. A copy still on its way may be.
    Open,
    /// Nothing is proved. A send may have been applied, or may still be.
    Unproved,
    /// The version of the row is lower than one read before. Some writer broke the rules.
    Corrupt,
}

impl Verdict {
    /// Whether it says for all time if the write was applied.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Verdict::Landed(_) | Verdict::NeverApplied)
    }

    /// The same verdict, after an event at `DEBUG` with the target `fencepost::judge` has named it.
    #[must_use]
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

/// Judges a refused write by the row that refused it; `None` stands for a missing row.
///
/// The verdict is exact if every writer raises the version by one or more, if a row keeps the ids of others for R
/// commits or loses its incarnation with them, and if no late copy of a create makes a removed row again. Where that may
/// be, `rows_may_vanish` or `values_may_end` is set, and a lower version proves nothing. The argument: the write is applied only at a version `c` with `v <= c < v + W`. Its id then stands in the memory until
/// the row is at least at `c + R`. So on a row at `w < v + R`, a missing id proves that the write was not applied. At
/// `w >= v + W`, it never will be.
#[must_use]
pub fn judge(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    let Some(row) = seen else { return Verdict::Unproved };
    let is_mine = row.incarnation == write.id.as_incarnation();
    match write.on {
        Base::NoRow(version) if is_mine => Verdict::Landed(version),
        // The row in the way of a create does not vanish while a copy of the create can still arrive, because deletes
        // leave tombstones. Where they do not, the create may have been applied before this row, or may still be.
        Base::NoRow(_) if write.may_be_gone() => Verdict::Unproved,
        Base::NoRow(_) => Verdict::NeverApplied,
        Base::Row { version, incarnation, .. } if incarnation.is_foreign() => {
            // The memory shows the adoption until it is pruned; the incarnation shows it for the life of the row.
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
    if write.rules.versions_may_repeat {
        Verdict::Unproved
    } else if w < v {
        // Where rows may vanish, a late copy of a create makes the same row again, at its first version.
        if write.may_be_gone() { Verdict::Unproved } else { Verdict::Corrupt }
    } else if w < v + window {
        // A copy still on its way meets the higher token too.
        if row.refuses(write.fence) { Verdict::NeverApplied } else { Verdict::Open }
    } else if w < v + write.rules.remembered {
        Verdict::NeverApplied
    } else {
        Verdict::Unproved
    }
}

/// Judges a write of which no copy can be applied any more.
pub fn judge_without_copies(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    match (judge(write, seen), write.on, seen) {
        (Verdict::Open, ..) => Verdict::NeverApplied,
        (_, Base::NoRow(_), None) if !write.may_be_gone() => Verdict::NeverApplied,
        (verdict, ..) => verdict,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const ROW: Incarnation = Incarnation::from_bytes([7; 8]);
    pub(crate) const R: u64 = 16;
    pub(crate) const W: u64 = 4;
    pub(crate) const OWN: TableRules =
        TableRules { remembered: R, rows_may_vanish: false, versions_may_repeat: false, values_may_end: false };
    pub(crate) const VANISHING: TableRules = TableRules { rows_may_vanish: true, ..OWN };
    pub(crate) const OPEN: TableRules = TableRules { versions_may_repeat: true, ..OWN };

    pub(crate) fn version(number: u64) -> Version {
        Version::new(number).expect("small")
    }

    pub(crate) fn id(number: u64) -> WriteId {
        WriteId::from_random(number)
    }

    /// A row at this version, as old as its memory allows. The write with the id `n + 1` was applied at version `n`.
    pub(crate) fn row_at(latest: u64) -> SeenRow {
        let oldest = latest.saturating_sub(R).max(1);
        let memory = (oldest..latest).map(|n| (id(n + 1), Trace::Applied(version(n)))).collect();
        SeenRow { version: version(latest), incarnation: ROW, memory: Some(memory), fence: None, ends_at: None }
    }

    pub(crate) fn write(id: WriteId, at: u64, window: u64) -> SentWrite {
        let on = Base::Row { version: version(at), window, incarnation: ROW };
        SentWrite { id, on, fence: None, rules: OWN }
    }

    pub(crate) fn create(id: WriteId) -> SentWrite {
        SentWrite { on: Base::NoRow(version(1)), ..write(id, 1, 1) }
    }

    pub(crate) fn foreign(at: u64, content: u8) -> SeenRow {
        SeenRow { incarnation: Incarnation::of_content([content; 16]), memory: None, ..row_at(at) }
    }

    pub(crate) fn adoption(id: WriteId, at: u64, content: u8) -> SentWrite {
        let on = Base::Row { version: version(at), window: 1, incarnation: Incarnation::of_content([content; 16]) };
        SentWrite { on, rules: VANISHING, ..write(id, at, 1) }
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
    fn another_row_and_one_without_memory_prove_nothing_and_a_version_that_went_down_is_corrupt() {
        // The incarnation's reason to exist: same version, same id, another row.
        let anew = |at| SeenRow { incarnation: Incarnation::from_bytes([8; 8]), ..row_at(at) };
        let silent = SeenRow { memory: None, ..row_at(41) };
        for (name, id_of_write, window, row, verdict) in [
            ("a version below the one that was read", 999, W, Some(row_at(39)), Verdict::Corrupt),
            ("a row made anew", 999, 1, Some(anew(41)), Verdict::Unproved),
            ("a row made anew with the same id", 41, 1, Some(anew(41)), Verdict::Unproved),
            ("no row", 999, 1, None, Verdict::Unproved),
            ("no memory", 41, 1, Some(silent), Verdict::Unproved),
            ("an incarnation lost to another program", 41, 1, Some(foreign(41, 1)), Verdict::Unproved),
            ("the same, within a window", 999, W, Some(foreign(41, 1)), Verdict::Unproved),
        ] {
            assert_eq!(judge(&write(id(id_of_write), 40, window), row.as_ref()), verdict, "{name}");
        }
        let made_again = SentWrite { rules: VANISHING, ..write(id(999), 40, W) };
        assert_eq!(judge(&made_again, Some(&row_at(1))), Verdict::Unproved);
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
    fn where_versions_may_repeat_only_an_id_proves_something() {
        let repeats = |write: SentWrite| SentWrite { rules: OPEN, ..write };
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
        let create = SentWrite { rules: VANISHING, ..create(id(5)) };
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

    #[test]
    fn a_write_is_exact_unless_it_has_a_window_and_a_verdict_is_final_if_it_proves() {
        assert!(write(id(9), 40, 1).is_exact() && create(id(9)).is_exact() && !write(id(9), 40, 2).is_exact());
        assert!(SentWrite { rules: OPEN, ..write(id(9), 40, W) }.is_exact(), "it demands the values");
        let verdicts =
            [Verdict::Landed(version(1)), Verdict::NeverApplied, Verdict::Open, Verdict::Unproved, Verdict::Corrupt];
        assert_eq!(verdicts.map(Verdict::is_final), [true, true, false, false, false]);
    }
}
