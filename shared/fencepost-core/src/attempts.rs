//! [`Attempts`]: the current attempt of one change, and those that were refused and may still be applied (pure).

use super::fate::{Life, judge_open};
use super::judge::{Base, SeenRow, SentWrite, Verdict};
use super::memory::WriteId;
use super::refusal::{RefusedStep, vanishes_soon};
use super::settle::{MOST_OPEN, made, writes_to};
use crate::fault::{Cause, Fault};
use crate::version::{Incarnation, ItemVersion};
use std::time::SystemTime;

/// The attempts of one change. An attempt is *open* if it was refused and may still be applied. The next attempt has an
/// id of its own and excludes them: it writes to a row that would remember them, and burns their ids there. So at most
/// one of all attempts is applied, and the rows tell which.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attempts {
    pub id: WriteId,
    open: Vec<OpenAttempt>,
    /// The earlier attempt of which a second copy was applied after the refusal, with the version made by it.
    pub landed: Option<(WriteId, ItemVersion)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OpenAttempt {
    pub id: WriteId,
    /// Its writes to rows that would remember it: the row, the write, and the life of the row when it was seen last.
    writes: Vec<(usize, SentWrite, Life)>,
    /// Whether it may have been applied by a copy already forgotten by its row.
    is_forgotten: bool,
}

impl OpenAttempt {
    /// The rows that would remember it, each with the write sent there.
    pub fn writes(&self) -> Vec<(usize, SentWrite)> {
        self.writes.iter().map(|(row, sent, _)| (*row, *sent)).collect()
    }

    fn rows(&self) -> Vec<usize> {
        self.writes.iter().map(|(row, ..)| *row).collect()
    }

    /// The rows that tell for sure whether it was applied, or all if none does.
    fn rows_that_tell(&self) -> Vec<usize> {
        let sure = self.writes.iter().filter(|(_, sent, _)| !sent.memory_may_vanish());
        let sure: Vec<_> = sure.map(|(row, ..)| *row).collect();
        if sure.is_empty() { self.rows() } else { sure }
    }
}

impl Attempts {
    pub fn new(id: WriteId) -> Self {
        Attempts { id, open: Vec::new(), landed: None }
    }

    pub fn is_open(&self, id: WriteId) -> bool {
        self.open.iter().any(|open| open.id == id)
    }

    /// Whether a burn followed the attempt with this id. The change goes on under another id.
    pub fn is_burned(&self, id: WriteId) -> bool {
        self.id != id && !self.is_open(id)
    }

    /// Whether one of its attempts may have been applied although it was refused, so that no failure is sure.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        !self.open.is_empty() || self.landed.is_some()
    }

    /// Fails if an earlier attempt may have been applied and none of the rows shown tells.
    pub(crate) fn check_remembered(&self) -> Result<(), Fault> {
        if self.open.iter().any(|open| open.is_forgotten) {
            let said = "an earlier attempt may have been applied, and its row no longer remembers it";
            return Err(Fault::Unknown(Cause::Said(said)));
        }
        Ok(())
    }

    pub fn rows(&self) -> Vec<Vec<usize>> {
        self.open.iter().map(OpenAttempt::rows).collect()
    }

    /// Takes an open attempt that none of these rows would remember. So a transaction on them does not exclude it.
    pub fn take_one_beside(&mut self, writes: &[usize]) -> Option<OpenAttempt> {
        let index = self.open.iter().position(|open| !writes_to(writes, &open.rows()))?;
        Some(self.open.swap_remove(index))
    }

    pub fn stay_open(&mut self, open: Vec<OpenAttempt>) {
        self.open.extend(open);
    }

    /// The ids burned by a write to this row: those of which a row of this incarnation would have a memory.
    pub fn ids_to_burn(&self, row: usize, incarnation: Option<Incarnation>) -> Vec<WriteId> {
        let is_here = |sent: &SentWrite| match sent.on {
            Base::Row { incarnation: of, .. } => !of.is_foreign() && Some(of) == incarnation,
            Base::NoRow(_) => false,
        };
        let writes = self.open.iter().flat_map(|open| &open.writes);
        writes.filter(|(of, sent, _)| *of == row && is_here(sent)).map(|(_, sent, _)| sent.id).collect()
    }

    /// For each open attempt without a shown row to judge it by, one of its rows, in their order. A service may name only
    /// one of the steps with a failed condition. So a refusal by other rows does not tell.
    pub fn unseen(&self, is_shown: impl Fn(usize) -> bool) -> Vec<usize> {
        let rows = self.open.iter().map(OpenAttempt::rows_that_tell);
        let unseen = rows.filter(|rows| !rows.iter().any(|row| is_shown(*row)));
        let mut in_order = Vec::new();
        for row in unseen.filter_map(|rows| rows.first().copied()) {
            if let Err(place) = in_order.binary_search(&row) {
                in_order.insert(place, row);
            }
        }
        in_order
    }

    /// Judges the open attempts by a row just shown. Finds the applied one, and drops the dead ones.
    pub fn judge(&mut self, row: usize, seen: Option<&SeenRow>, now: SystemTime) {
        let landed = &mut self.landed;
        self.open.retain_mut(|open| {
            let life = Life::of(seen);
            for (_, sent, before) in open.writes.iter_mut().filter(|(of, ..)| *of == row) {
                // A row that is made again has forgotten all. Elsewhere, a removed or replaced row does not come back.
                let forgets =
                    life.is_made_again(*before) || sent.rules.versions_may_repeat && life.may_have_forgotten(*before);
                match judge_open(sent, seen, vanishes_soon(sent, seen, now)) {
                    Verdict::Landed(version) => *landed = Some((open.id, made(sent, version))),
                    Verdict::NeverApplied => return false,
                    Verdict::Open if !forgets => {
                        (*sent, *before) = (sent.not_applied_before(seen), life);
                    }
                    Verdict::Open | Verdict::Unproved | Verdict::Corrupt => open.is_forgotten = true,
                }
            }
            true
        });
    }

    /// Goes on under the id `next`, after these steps, which were refused and may still be applied.
    pub(crate) fn leave_open(&mut self, steps: &[RefusedStep<'_>], next: WriteId) -> Result<(), Fault> {
        if self.open.len() == MOST_OPEN {
            return Err(Fault::Unknown(Cause::Said("too many attempts were refused and may still be applied")));
        }
        let known = |step: &RefusedStep<'_>| {
            let (sent, seen) = (step.write()?, step.seen());
            let life = if step.is_shown() { Life::of(seen) } else { Life::demanded(sent.on) };
            Some((step.step.row, sent.not_applied_before(seen), life))
        };
        self.open.push(OpenAttempt {
            id: self.id,
            writes: steps.iter().filter_map(known).collect(),
            is_forgotten: false,
        });
        self.id = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::{OPEN, OWN, VANISHING, row_at};
    use crate::refusal::{Reason, Role, Step};
    use crate::version::Version;

    const ROW: Incarnation = Incarnation::from_bytes([7; 8]);

    fn id(number: u64) -> WriteId {
        WriteId::from_random(number)
    }

    fn update_of(id: WriteId, incarnation: Incarnation) -> Role {
        let version = Version::new(3).expect("small");
        Role::Writes(SentWrite { id, on: Base::Row { version, window: 1, incarnation }, fence: None, rules: OWN })
    }

    fn step(row: usize, role: Role) -> RefusedStep<'static> {
        RefusedStep { step: Step { row, role, rules: OWN, is_named_by_client: false }, reason: &Reason::NotNow }
    }

    #[test]
    fn a_write_burns_the_open_attempts_that_its_row_would_remember() {
        let foreign = Incarnation::of_content([1; 16]);
        let mut attempts = Attempts::new(id(1));
        let steps = |id| [step(0, update_of(id, ROW)), step(1, update_of(id, foreign)), step(2, Role::Adds)];
        attempts.leave_open(&steps(id(1)), id(2)).expect("one");
        attempts.leave_open(&[step(0, update_of(id(2), Incarnation::from_bytes([8; 8])))], id(3)).expect("two");
        assert_eq!(attempts.ids_to_burn(0, Some(ROW)), [id(1)]);
        assert_eq!((attempts.ids_to_burn(1, Some(foreign)), attempts.ids_to_burn(0, None)), (vec![], vec![]));
        assert_eq!((attempts.id, attempts.rows()), (id(3), vec![vec![0, 1], vec![0]]));
        assert_eq!((attempts.unseen(|_| false), attempts.unseen(|row| row == 0)), ([0].into(), [].into()));
        assert_eq!(attempts.take_one_beside(&[1]).map(|open| open.id), Some(id(2)));
        assert!(attempts.take_one_beside(&[1]).is_none() && !attempts.open.is_empty());
    }

    #[test]
    fn a_burned_attempt_is_neither_the_current_one_nor_open() {
        let mut attempts = Attempts::new(id(1));
        assert!(!attempts.is_burned(id(1)), "it is the current one");
        attempts.leave_open(&[step(0, update_of(id(1), ROW))], id(2)).expect("one");
        assert!(!attempts.is_burned(id(1)), "it is open");
        attempts.id = id(3);
        assert!(attempts.is_burned(id(2)), "a burn followed");
    }

    /// The absence of a row proves nothing if another program, or the write itself, may have removed it.
    #[test]
    fn a_row_that_may_have_vanished_does_not_stand_for_the_row_that_tells() {
        let sent = |rules, on| SentWrite { id: id(1), on, fence: None, rules };
        let version = Version::new(3).expect("small");
        let (row, no_row) = (Base::Row { version, window: 1, incarnation: ROW }, Base::NoRow(version));
        let (update, created, removed) = (sent(OWN, row), sent(VANISHING, no_row), sent(OPEN, row));
        for sure in [sent(VANISHING, row), sent(OWN, no_row)] {
            assert!(
                created.memory_may_vanish() && removed.memory_may_vanish() && !sure.memory_may_vanish(),
                "{sure:?}"
            );
        }
        for vague in [created, removed] {
            let mut attempts = Attempts::new(id(1));
            attempts.leave_open(&[step(0, Role::Writes(vague)), step(1, Role::Writes(update))], id(2)).expect("one");
            assert_eq!((attempts.unseen(|row| row == 0), attempts.unseen(|row| row == 1)), ([1].into(), [].into()));
            let mut attempts = Attempts::new(id(1));
            attempts.leave_open(&[step(0, Role::Writes(vague))], id(2)).expect("one");
            assert_eq!((attempts.unseen(|row| row == 0), attempts.unseen(|_| false)), ([].into(), [0].into()));
        }
    }

    /// A late copy of the attempt was applied, its row was removed, and a late copy of the create made the row again.
    #[test]
    fn a_row_that_was_made_again_does_not_tell_whether_an_open_attempt_was_applied() {
        // A row without a memory is the same row, and a removed one does not come back.
        for (at, remembers, is_known) in [(3, true, true), (2, true, false), (3, false, true)] {
            let mut attempts = Attempts::new(id(1));
            attempts.leave_open(&[step(0, update_of(id(1), ROW))], id(2)).expect("one");
            let row = SeenRow { incarnation: ROW, ..row_at(at) };
            let row = SeenRow { memory: row.memory.clone().filter(|_| remembers), ..row };
            attempts.judge(0, Some(&row), SystemTime::UNIX_EPOCH);
            assert_eq!(attempts.check_remembered().is_ok(), is_known, "at {at}");
        }
    }

    #[test]
    fn a_change_gives_up_as_unknown_when_it_would_have_more_than_the_most_open_attempts() {
        let mut attempts = Attempts::new(id(0));
        for number in 0..MOST_OPEN as u64 {
            attempts.leave_open(&[step(0, update_of(id(number), ROW))], id(number + 1)).expect("not too many");
        }
        let refused = attempts.leave_open(&[step(0, update_of(id(99), ROW))], id(100));
        assert!(matches!(refused, Err(Fault::Unknown(_))), "{refused:?}");
    }
}
