//! [`Memory`] (pure): the recent writes remembered by a row, and when it may forget one. [`WriteId`] names a write.

use crate::version::{Incarnation, Version};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// How many ids a write removes from the memory of its row, unless it adds more. More would make the expression long. One
/// write usually adds one id, so removing a few is enough even if several writers remove the same ones.
const PRUNED_PER_WRITE: usize = 4;
/// How many ids a write removes at most if there are many old ones, of which it removes half.
const MOST_PRUNED: usize = 32;
/// How many ids beyond R a row keeps where its writers remove their own. As many are there anyway where eight writers remove
/// the same ones.
const SPARE: usize = 8;
/// How many ids beyond R a row may have for a write whose writer has not seen its memory, and so removes none. With more,
/// the write is refused: the refusal shows the memory. Two full prunings are then due, and an id takes 16 bytes.
pub const UNSEEN_IDS: u64 = 32;

/// The id of one attempt of a change, or of all of them as long as none may still be applied after its refusal. It stays the
/// same on every send, and is never used again.
///
/// A write id is 8 random bytes. It is not derived from a key or a request, because two changes must never share an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteId([u8; 8]);

impl WriteId {
    /// Creates a write id from 64 random bits.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        WriteId(bits.to_be_bytes())
    }

    /// Creates a write id from its 8 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        WriteId(bytes)
    }

    /// Reads a write id from its name in a row. `None` if the text is not such a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut bytes = [0; 9]; // as many as 11 characters may stand for
        let length = URL_SAFE_NO_PAD.decode_slice(name, &mut bytes).ok()?;
        Some(WriteId(bytes[..length].try_into().ok()?))
    }

    /// The 8 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    /// The name of the id in a row: 11 characters of base64url.
    #[must_use]
    pub fn name(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The incarnation of a row created by this write on a free key.
    #[must_use]
    pub fn as_incarnation(self) -> Incarnation {
        Incarnation::from_bytes(self.0)
    }
}

/// The trace of one write in the memory of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trace {
    /// The write was applied when the row was at this version. It made the next version.
    Applied(Version),
    /// The write was burned when the row was at this version: no copy of it will ever be applied.
    Burned(Version),
}

impl Trace {
    /// The version of the row before the write, or before its burn.
    #[must_use]
    pub fn version(self) -> Version {
        match self {
            Trace::Applied(version) | Trace::Burned(version) => version,
        }
    }
}

/// The recent writes remembered by a row.
///
/// A row remembers each id for at least R commits, except that a writer may remove its own after W commits, once it was
/// answered. R and W are constants of the table (`Settings::remembered_writes`, `Settings::edit_window`).
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Memory(Vec<(WriteId, Kept)>); // in the order of the ids

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Kept {
    trace: Trace,
    /// The window of the write, if it is one of this client that was answered. The row does not say so.
    answered: Option<u64>,
}

impl Memory {
    /// The trace of this write, if the row remembers it.
    #[must_use]
    pub fn get(&self, id: WriteId) -> Option<Trace> {
        self.kept(id).map(|kept| kept.trace)
    }

    /// Notes that the write that made this version was answered. Nobody will ask for its id. Copies of it are applied within
    /// `window` versions.
    pub fn answered(&mut self, made: Version, window: u64) {
        let made = |kept: &&mut Kept| matches!(kept.trace, Trace::Applied(before) if before.next() == made);
        self.0.iter_mut().map(|(_, kept)| kept).filter(made).for_each(|kept| kept.answered = Some(window));
    }

    /// The writes with their traces, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (WriteId, Trace)> {
        self.0.iter().map(|(id, kept)| (*id, kept.trace))
    }

    /// Takes over which writes were answered from another memory of the same row.
    pub fn answered_as(&mut self, other: &Memory) {
        for (id, kept) in &mut self.0 {
            kept.answered = kept.answered.or_else(|| other.kept(*id)?.answered);
        }
    }

    fn kept(&self, id: WriteId) -> Option<&Kept> {
        let place = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.0[place].1)
    }

    /// How many ids it has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The ids to remove with the write `by`, if its writer saw this memory at the version `seen`. It adds its own id and the
    /// `burned` ones.
    ///
    /// 1. An answered id stored before version `c` may go when the row is at least at `c + W - 1`, because the removing write
    ///    then makes at least `c + W`. One version earlier, a copy of the removed write could still be in its window and would
    ///    be applied twice.
    /// 2. Any other may go from `c + R - 1` on, and goes if the row has more than R ids: at most four, or as many as the write
    ///    adds, or half of many. So the id of a write whose answer was lost stays longer on a busy row, whose writers remove
    ///    their own. Writers with the same memory in view begin at different ids.
    #[must_use]
    pub fn prunable(&self, seen: Version, remembered: u64, by: WriteId, burned: usize) -> Vec<WriteId> {
        let is_past = |kept: &Kept, versions: u64| kept.trace.version().get() + versions <= seen.get() + 1;
        let (mut removed, mut old) = (Vec::new(), Vec::new());
        for (id, kept) in &self.0 {
            if kept.answered.is_some_and(|window| is_past(kept, window)) && removed.len() < MOST_PRUNED {
                removed.push(*id);
            } else if is_past(kept, remembered) {
                old.push(*id);
            }
        }
        let spare = if self.0.iter().any(|(_, kept)| kept.answered.is_some()) { SPARE } else { 0 };
        let most = usize::try_from(remembered).unwrap_or(usize::MAX).saturating_add(spare + removed.len());
        let beyond = (self.count() + 1 + burned).saturating_sub(most);
        let first = old.partition_point(|id| *id < by);
        let half = MOST_PRUNED.min(old.len() / 2);
        let count = old.len().min(PRUNED_PER_WRITE.max(1 + burned).max(half)).min(beyond);
        removed.extend(old.iter().cycle().skip(first).take(count));
        removed
    }
}

impl FromIterator<(WriteId, Trace)> for Memory {
    fn from_iter<I: IntoIterator<Item = (WriteId, Trace)>>(traces: I) -> Self {
        let mut kept: Vec<_> = traces.into_iter().map(|(id, trace)| (id, Kept { trace, answered: None })).collect();
        kept.sort_unstable_by_key(|(id, _)| *id);
        kept.dedup_by_key(|(id, _)| *id);
        Memory(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Version {
        Version::new(number).expect("small")
    }

    fn id(number: u64) -> WriteId {
        WriteId::from_random(number)
    }

    #[test]
    fn an_id_has_a_name_of_11_characters_and_is_read_back_from_it() {
        for bits in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(id(bits).name().len(), 11);
            assert_eq!(WriteId::from_name(&id(bits).name()), Some(id(bits)));
        }
        for other in ["", "3", "AAAAAAAAAAA=", "AAAAAAAAAA", "AAAAAAAAAAAA", "AAAA+AAAAAA"] {
            assert_eq!(WriteId::from_name(other), None, "{other}");
        }
    }

    #[test]
    fn an_id_is_removed_from_version_c_plus_r_on_and_never_earlier() {
        let memory: Memory =
            [(id(1), Trace::Applied(version(10))), (id(2), Trace::Burned(version(11)))].into_iter().collect();
        assert_eq!((memory.count(), Memory::default().count()), (2, 0));
        let pruned = |seen, remembered| memory.prunable(version(seen), remembered, id(9), 0);
        assert_eq!([pruned(10, 2), pruned(11, 2), pruned(12, 2)], [vec![], vec![id(1)], vec![id(1)]]);
        assert_eq!([pruned(9, 1), pruned(10, 1), pruned(11, 1)], [vec![], vec![id(1)], vec![id(1), id(2)]]);
        assert_eq!([2, 3, 16].map(|remembered| pruned(100, remembered).len()), [1, 0, 0], "it has room");
    }

    #[test]
    fn an_answered_id_is_removed_from_version_c_plus_w_on_and_never_earlier() {
        let traces = (1..=5).map(|n| (id(n), Trace::Applied(version(n))));
        let mut memory: Memory = traces.chain([(id(9), Trace::Burned(version(1)))]).collect();
        for made in [2, 3, 4, 7] {
            memory.answered(version(made), 8);
        }
        let pruned = |memory: &Memory, seen| memory.prunable(version(seen), 16, id(0), 0);
        assert_eq!(pruned(&memory, 7), []);
        assert_eq!([8, 9, 10, 99].map(|seen| pruned(&memory, seen).len()), [1, 2, 3, 3], "1, 2 and 3");
        assert_eq!(pruned(&memory, 8), [id(1)]);
        let mut later: Memory = (3..=8).map(|n| (id(n), Trace::Applied(version(n)))).collect();
        assert_eq!(pruned(&later, 99), []);
        later.answered_as(&memory);
        assert_eq!(pruned(&later, 99), [id(3)]);
        let mut many: Memory = (1..=40).map(|n| (id(n), Trace::Applied(version(n)))).collect();
        (2..=41).for_each(|made| many.answered(version(made), made % 2 * 60));
        assert_eq!(pruned(&many, 41).len(), 20, "each has a window of its own");
        assert_eq!(pruned(&many, 199).len(), MOST_PRUNED);
        let mut few: Memory = (1..=17).map(|n| (id(n), Trace::Applied(version(n)))).collect();
        assert_eq!(pruned(&few, 20).len(), 2);
        few.answered(version(17), 8);
        assert_eq!(pruned(&few, 20), [], "some are spared where writers remove their own");
    }

    #[test]
    fn writers_that_saw_the_same_memory_begin_at_different_ids() {
        let memory: Memory = (0..8).map(|n| (id(n * 10), Trace::Applied(version(n + 1)))).collect();
        let pruned = |by| memory.prunable(version(100), 1, id(by), 0);
        assert_eq!(pruned(0), [0, 10, 20, 30].map(id));
        assert_eq!(pruned(55), [60, 70, 0, 10].map(id));
        assert_eq!(pruned(1000), [0, 10, 20, 30].map(id));
        let removed = |burned| memory.prunable(version(100), 1, id(0), burned).len();
        assert_eq!([0, 3, 4, 6, 20].map(removed), [4, 4, 5, 7, 8], "a write that burns removes as many as it adds");
        let of = |count: u64| (0..count).map(|n| (id(n), Trace::Applied(version(1)))).collect::<Memory>();
        let removed = |count| of(count).prunable(version(100), 1, id(0), 0).len();
        assert_eq!([3, 9, 20, 64, 1000].map(removed), [3, 4, 10, 32, 32], "half of many");
    }
}
