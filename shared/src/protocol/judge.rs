//! [`judge`] (pure): finds out whether a refused write was applied before. [`WriteId`] and the slots remember recent
//! writes.

use crate::version::{Incarnation, Version};
use std::collections::BTreeMap;

/// The number of recent writes that a row remembers. It is a constant of the table: every writer must use the same
/// number.
///
/// 16 slots cost about 200 bytes per item. The first resend finds out about a lost answer after about 150 ms. One item
/// takes at most about 1,000 writes a second, and writers that read first commit far less often. After more than 16
/// other commits, the answer is "unknown", never a guess.
pub const SLOTS: u64 = 16;

/// The id of one logical change. It stays the same on every attempt and every resend, and is never used again.
///
/// A write id is 8 random bytes. It is not derived from a key or a request, because two changes must never share an id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteId([u8; 8]);

impl WriteId {
    /// Creates a write id from 64 random bits.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        WriteId(bits.to_be_bytes())
    }

    /// Creates a write id from the 8 bytes in a row.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        WriteId(bytes)
    }

    /// The 8 bytes as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    /// The incarnation of a row that this write creates on a free key.
    #[must_use]
    pub fn as_incarnation(&self) -> Incarnation {
        Incarnation::from_bytes(self.0)
    }
}

/// The slot that holds the id of the write that committed `version`.
#[must_use]
pub fn slot_of(version: Version) -> u64 {
    version.get() % SLOTS
}

/// One conditional write: the parts that decide its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentWrite {
    /// The id of the logical change.
    pub id: WriteId,
    /// The state of the row that its condition demands.
    pub on: Base,
    /// Its fencing token, if it has one. A row that has seen a higher token refuses the write.
    pub fence: Option<u64>,
}

/// The state of the row that a conditional write demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// No row: the write is a create.
    NoRow,
    /// A row of this incarnation at this version.
    Row {
        /// The version that the writer had observed.
        version: Version,
        /// The row that the writer had observed.
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
    /// The ids of recent writes. `None` if the attribute is missing.
    pub slots: Option<BTreeMap<u64, WriteId>>,
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
    /// An earlier send was applied. The refusal is an echo of it.
    Landed,
    /// No send was applied, and none ever will be, because the condition cannot hold again.
    NeverApplied,
    /// Nothing is proved. An earlier send may have been applied, or may still be.
    Unproved,
    /// The version of the row is lower than one that was read before. Some writer broke the rules.
    Corrupt,
}

/// Judges a refused write by the row that refused it. `None` means that there was no row.
///
/// The verdict is exact if every writer raises the version by one, leaves the slots of other writers alone, and deletes
/// by leaving a tombstone. The argument: the write that commits version `v+1` stores its id in slot `(v+1) mod SLOTS`.
/// Only the commit of `v+1+SLOTS` overwrites that slot. So while `v < w <= v+SLOTS`, the slot names the one write that
/// was conditioned on `v` and won.
#[must_use]
pub fn judge(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    match write.on {
        Base::NoRow => judge_create(write.id, seen),
        Base::Row { version, incarnation } => judge_update(write, version, incarnation, seen),
    }
}

/// Judges a write of which no copy can be applied any more. If its condition still holds on the row, it was not
/// applied.
#[must_use]
pub(crate) fn judge_without_copies(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    let still_holds = match (write.on, seen) {
        (Base::NoRow, None) => true,
        (Base::Row { version, incarnation }, Some(row)) => row.version == version && row.incarnation == incarnation,
        _ => false,
    };
    if still_holds { Verdict::NeverApplied } else { judge(write, seen) }
}

/// A row keeps the id of the create that made it for its whole life. So this verdict is exact after any number of later
/// writes. A row that refuses a create does not vanish while a copy of the create can still arrive, because deletes
/// leave tombstones.
fn judge_create(id: WriteId, seen: Option<&SeenRow>) -> Verdict {
    match seen {
        None => Verdict::Unproved,
        Some(row) if row.incarnation == id.as_incarnation() => Verdict::Landed,
        Some(_) => Verdict::NeverApplied,
    }
}

fn judge_update(write: &SentWrite, v: Version, incarnation: Incarnation, seen: Option<&SeenRow>) -> Verdict {
    let Some(row) = seen else { return Verdict::Unproved };
    if row.incarnation != incarnation {
        return Verdict::Unproved;
    }
    if row.version < v {
        return Verdict::Corrupt;
    }
    let Some(slots) = &row.slots else { return Verdict::Unproved };
    if slots.get(&slot_of(v.next())) == Some(&write.id) {
        return Verdict::Landed;
    }
    // The row is still at `v`, so nothing was applied. A copy that is still on its way meets the higher token too.
    let fenced = row.version == v && row.refuses(write.fence);
    if fenced || (row.version > v && row.version.get() <= v.get() + SLOTS) {
        return Verdict::NeverApplied;
    }
    Verdict::Unproved
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Incarnation = Incarnation::from_bytes([7; 8]);

    fn version(number: u64) -> Version {
        Version::new(number).expect("small")
    }

    fn id(number: u64) -> WriteId {
        WriteId::from_random(number)
    }

    /// A row whose commit of version n was made by write id n.
    fn row_at(latest: u64) -> SeenRow {
        let oldest = latest.saturating_sub(SLOTS - 1).max(1);
        let slots = (oldest..=latest).map(|n| (slot_of(version(n)), id(n))).collect();
        SeenRow { version: version(latest), incarnation: ROW, slots: Some(slots), fence: None }
    }

    fn update(write: WriteId, at: u64) -> SentWrite {
        SentWrite { id: write, on: Base::Row { version: version(at), incarnation: ROW }, fence: None }
    }

    #[test]
    fn a_write_is_recognised_until_its_slot_is_used_again() {
        for behind in 1..=SLOTS {
            assert_eq!(judge(&update(id(41), 40), Some(&row_at(40 + behind))), Verdict::Landed, "behind {behind}");
        }
        assert_eq!(judge(&update(id(41), 40), Some(&row_at(41 + SLOTS))), Verdict::Unproved);
    }

    #[test]
    fn a_write_that_another_beat_is_dead_within_the_range_and_unproved_beyond() {
        for behind in 1..=SLOTS {
            assert_eq!(
                judge(&update(id(999), 40), Some(&row_at(40 + behind))),
                Verdict::NeverApplied,
                "behind {behind}"
            );
        }
        assert_eq!(judge(&update(id(999), 40), Some(&row_at(41 + SLOTS))), Verdict::Unproved);
    }

    #[test]
    fn at_the_same_version_another_condition_failed_and_nothing_is_proved() {
        assert_eq!(judge(&update(id(999), 40), Some(&row_at(40))), Verdict::Unproved);
    }

    #[test]
    fn a_version_below_the_one_that_was_read_is_corrupt() {
        assert_eq!(judge(&update(id(999), 40), Some(&row_at(39))), Verdict::Corrupt);
    }

    #[test]
    fn a_purged_row_made_anew_proves_nothing_about_a_write_on_the_old_one() {
        // The incarnation's reason to exist: same version, same slot, another row.
        let mut anew = row_at(41);
        anew.incarnation = Incarnation::from_bytes([8; 8]);
        assert_eq!(judge(&update(id(999), 40), Some(&anew)), Verdict::Unproved);
        assert_eq!(judge(&update(id(999), 40), None), Verdict::Unproved);
    }

    #[test]
    fn a_row_without_memory_proves_nothing() {
        let mut row = row_at(41);
        row.slots = None;
        assert_eq!(judge(&update(id(41), 40), Some(&row)), Verdict::Unproved);
    }

    #[test]
    fn a_create_is_recognised_by_the_incarnation_at_any_version() {
        let create = SentWrite { id: WriteId::from_bytes([7; 8]), on: Base::NoRow, fence: None };
        assert_eq!(judge(&create, Some(&row_at(1))), Verdict::Landed);
        assert_eq!(judge(&create, Some(&row_at(1000))), Verdict::Landed);
        let other = SentWrite { id: id(5), on: Base::NoRow, fence: None };
        assert_eq!(judge(&other, Some(&row_at(1))), Verdict::NeverApplied);
        assert_eq!(judge(&other, None), Verdict::Unproved);
    }

    #[test]
    fn a_write_refused_at_its_own_version_is_dead_only_where_the_row_has_seen_a_higher_token() {
        let mut row = row_at(5);
        for (mine, seen, verdict) in [
            (Some(7), Some(8), Verdict::NeverApplied),
            (Some(8), Some(8), Verdict::Unproved),
            (Some(7), None, Verdict::Unproved),
            (None, Some(8), Verdict::Unproved),
        ] {
            row.fence = seen;
            assert_eq!(
                judge(&SentWrite { fence: mine, ..update(id(90), 5) }, Some(&row)),
                verdict,
                "{mine:?} {seen:?}"
            );
        }
        // Long after, it may have been applied before the higher token came.
        let row = SeenRow { fence: Some(8), ..row_at(5 + SLOTS + 1) };
        assert_eq!(judge(&SentWrite { fence: Some(7), ..update(id(90), 5) }, Some(&row)), Verdict::Unproved);
    }

    #[test]
    fn where_no_copy_can_come_a_condition_that_still_holds_means_not_applied() {
        assert_eq!(judge_without_copies(&update(id(90), 5), Some(&row_at(5))), Verdict::NeverApplied);
        assert_eq!(judge_without_copies(&update(id(6), 5), Some(&row_at(7))), Verdict::Landed);
        assert_eq!(judge_without_copies(&update(id(90), 5), Some(&row_at(7))), Verdict::NeverApplied);
        assert_eq!(judge_without_copies(&update(id(90), 5), Some(&row_at(5 + SLOTS + 1))), Verdict::Unproved);
        assert_eq!(judge_without_copies(&update(id(90), 5), None), Verdict::Unproved);
        let create = SentWrite { id: id(5), on: Base::NoRow, fence: None };
        assert_eq!(judge_without_copies(&create, None), Verdict::NeverApplied);
        assert_eq!(judge_without_copies(&create, Some(&row_at(1))), Verdict::NeverApplied);
    }
}
