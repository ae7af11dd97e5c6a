//! Did my write land? [`WriteId`], the slots that remember recent writes, and [`judge`] (pure).

use crate::version::{Incarnation, Version};
use std::collections::BTreeMap;

/// How many recent writes a row remembers. A constant of the table: every writer must agree on it.
///
/// 16 slots cost about 200 bytes an item. A lost answer is found out with the first resend (after
/// about 150 ms), and one item takes about 1,000 writes a second at most, but writers that also
/// read first commit far less often; beyond 16 commits the answer is "unknown", never a guess.
pub const SLOTS: u64 = 16;

/// Identifies one logical change: the same on every attempt and resend, never used again.
///
/// 8 random bytes. It is not derived from a key or a request: two changes must never share one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteId([u8; 8]);

impl WriteId {
    /// The write id made of these 64 random bits.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        WriteId(bits.to_be_bytes())
    }

    /// The write id with these 8 bytes, as a row remembers it.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        WriteId(bytes)
    }

    /// The 8 bytes as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    /// The incarnation of a row that this write creates where nothing was.
    #[must_use]
    pub fn as_incarnation(&self) -> Incarnation {
        Incarnation::from_bytes(self.0)
    }
}

/// The slot in which the write that commits `version` leaves its id.
#[must_use]
pub fn slot_of(version: Version) -> u64 {
    version.get() % SLOTS
}

/// One conditional write, as far as its outcome is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentWrite {
    /// Its id.
    pub id: WriteId,
    /// What its condition demands of the row.
    pub on: Base,
    /// Its fencing token, where it has one: the row must not have seen a higher one.
    pub fence: Option<u64>,
}

/// What a conditional write is conditioned on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// That no row exists: a create.
    NoRow,
    /// That the row is this incarnation at this version.
    Row {
        /// The version that the writer had observed.
        version: Version,
        /// The row that the writer had observed.
        incarnation: Incarnation,
    },
}

/// What a refusal shows of the row that refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenRow {
    /// Its version now.
    pub version: Version,
    /// Which row it is.
    pub incarnation: Incarnation,
    /// Its memory of recent writes; `None` where the attribute is missing.
    pub slots: Option<BTreeMap<u64, WriteId>>,
    /// The highest fencing token that it has seen, if it has seen one.
    pub fence: Option<u64>,
}

impl SeenRow {
    /// Whether a write with this token is refused for ever: tokens that a row has seen only rise.
    #[must_use]
    pub fn refuses(&self, token: Option<u64>) -> bool {
        is_fenced(self.fence, token)
    }
}

/// Whether a write with this token comes too late for a row that has seen that one.
pub(crate) fn is_fenced(seen: Option<u64>, token: Option<u64>) -> bool {
    matches!((seen, token), (Some(seen), Some(token)) if token < seen)
}

/// What a refusal proves about every send of one write, earlier ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// An earlier send was applied: this refusal is its own echo.
    Landed,
    /// No send was applied, and none ever will be: the condition can not come true again.
    NeverApplied,
    /// Nothing is proved: an earlier send, if there was one, may have landed or may still land.
    Unproved,
    /// The row's version is lower than one that was already read: something broke the rules.
    Corrupt,
}

/// Judges a refused write from the row that refused it (`None`: no row was there).
///
/// Exact as long as every writer raises the version by one, leaves other writers' slots alone, and
/// deletes by leaving a tombstone. The argument: the write that commits version `v+1` leaves its id
/// in slot `(v+1) mod SLOTS`, and the slot is written again only by the commit of `v+1+SLOTS`. So
/// while `v < w <= v+SLOTS`, the slot names the one write that was conditioned on `v` and won.
#[must_use]
pub fn judge(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    match write.on {
        Base::NoRow => judge_create(write.id, seen),
        Base::Row { version, incarnation } => judge_update(write, version, incarnation, seen),
    }
}

/// Judges a write of which no copy can be applied any more, by its row: then nothing is left to come true, and where
/// its condition still holds, it was not applied.
#[must_use]
pub(crate) fn judge_without_copies(write: &SentWrite, seen: Option<&SeenRow>) -> Verdict {
    let still_holds = match (write.on, seen) {
        (Base::NoRow, None) => true,
        (Base::Row { version, incarnation }, Some(row)) => row.version == version && row.incarnation == incarnation,
        _ => false,
    };
    if still_holds { Verdict::NeverApplied } else { judge(write, seen) }
}

/// A row keeps the id of the write that created it for as long as it lives, so a create is judged
/// exactly however many writes came after; and rows that refuse a create do not vanish while a
/// copy of it can still be on its way (tombstones).
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
    // At its own version nothing was applied, and a copy that is still on its way meets the higher token too.
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
