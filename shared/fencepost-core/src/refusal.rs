//! Judges a refused change of one step or of several (pure): the proof about every send, given by the refusing rows.

use super::fate::may_still_land;
use super::judge::{Base, SeenRow, SentWrite, TableRules, Verdict, judge, judge_without_copies};
use super::memory::WriteId;
use super::settle::burn_helps;
use super::time::is_soon;
use std::time::SystemTime;

/// The effect of a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The step writes to the observed state, and leaves the write id.
    Writes(SentWrite),
    /// The step demands the row in the observed state.
    Checks(Base),
    /// The step adds to numbers at any version, and leaves no id.
    Adds,
    /// The step demands a lease held under this token.
    Requires(u64),
    /// The step writes what may be written any number of times, such as the newest instance or an acquire under its id.
    /// It leaves no write id. Whoever made it judges the row that refuses it.
    Repeats,
}

impl Role {
    /// The state of the row that the step demands, if it demands one.
    #[must_use]
    pub fn base(&self) -> Option<Base> {
        match self {
            Role::Writes(sent) => Some(sent.on),
            Role::Checks(on) => Some(*on),
            Role::Adds | Role::Requires(_) | Role::Repeats => None,
        }
    }
}

/// One step of a change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// The place of its row among the rows of the change.
    pub row: usize,
    /// Its effect.
    pub role: Role,
    /// The rules of its table.
    pub rules: TableRules,
    /// Whether the demanded version may be made up by a client. A lower version then proves nothing.
    pub is_named_by_client: bool,
}

impl Step {
    /// The write that the row would remember.
    #[must_use]
    pub fn write(&self) -> Option<SentWrite> {
        if let Role::Writes(sent) = self.role { Some(sent) } else { None }
    }
}

/// What a refusal shows at the key of a step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Seen {
    /// The row, if there is one.
    Row(Option<SeenRow>),
    /// A row that cannot be read.
    Unreadable,
    /// A lease, which is lost to its token for good, or may be held under it.
    Lease {
        /// Whether it is lost.
        is_lost: bool,
    },
}

/// Why one step was refused.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// This step was not a reason.
    None,
    /// The condition of the step did not hold.
    Refused(Seen),
    /// Another transaction or a throttled table stood in the way. The step may pass when it is sent again.
    NotNow,
    /// The step is impossible. Sending it again is useless.
    Rejected,
}

/// Whether the row in the way of a create may vanish while a copy of the create can still arrive.
pub(crate) fn vanishes_soon(sent: &SentWrite, seen: Option<&SeenRow>, now: SystemTime) -> bool {
    matches!(sent.on, Base::NoRow(_)) && is_soon(seen.and_then(|row| row.ends_at), now)
}

/// The verdict of the row on a write, and whether the row [vanishes soon](vanishes_soon).
pub(crate) fn judge_one(sent: &SentWrite, seen: Option<&SeenRow>, now: SystemTime) -> (Verdict, bool) {
    (judge(sent, seen), vanishes_soon(sent, seen, now))
}

/// A step of a refused change, with the reason of its refusal.
#[derive(Clone, Copy)]
pub(crate) struct RefusedStep<'a> {
    pub step: Step,
    pub reason: &'a Reason,
}

impl RefusedStep<'_> {
    pub fn is_shown(&self) -> bool {
        matches!(self.reason, Reason::Refused(_))
    }

    /// The row that refused the step, if there was one and it is readable.
    pub fn seen(&self) -> Option<&SeenRow> {
        if let Reason::Refused(Seen::Row(row)) = self.reason { row.as_ref() } else { None }
    }

    pub fn write(&self) -> Option<SentWrite> {
        self.step.write()
    }

    pub fn burn_helps(&self) -> bool {
        self.write().is_some_and(|sent| burn_helps(&sent, self.is_shown().then(|| judge(&sent, self.seen()))))
    }

    pub fn is_lease_lost(&self) -> bool {
        matches!(self.reason, Reason::Refused(Seen::Lease { is_lost: true }))
    }

    /// Whether a second copy of the step may still be applied, if no send of it is pending.
    fn may_still_land(&self, now: SystemTime) -> bool {
        if !self.is_shown() {
            return true;
        }
        // Such a row is in the way of a create all the same, as long as it stays.
        if matches!((self.reason, self.step.role.base()), (Reason::Refused(Seen::Unreadable), Some(Base::NoRow(_)))) {
            return self.step.rules.rows_may_vanish || self.step.rules.values_may_end;
        }
        let sent = match self.step.role {
            Role::Writes(sent) => sent,
            Role::Checks(on) => SentWrite { id: WriteId::from_random(0), on, fence: None, rules: self.step.rules },
            Role::Adds | Role::Repeats => return true,
            Role::Requires(_) => return !self.is_lease_lost(),
        };
        may_still_land(&sent, self.seen(), vanishes_soon(&sent, self.seen(), now))
    }
}

/// Judges all steps by each. Steps are applied together or not at all. So if one step landed, all did, and if one step
/// is never applied, none is.
///
/// Checks and plain adds leave no id and prove nothing. Their rows may have moved on before or after.
pub(crate) fn judge_refusal(steps: &[RefusedStep<'_>], now: SystemTime) -> Verdict {
    judge_steps(steps.iter().filter(|step| step.is_shown()).filter_map(|step| {
        Some(match judge_one(&step.write()?, step.seen(), now) {
            (Verdict::Corrupt, is_soon) if step.step.is_named_by_client => (Verdict::Unproved, is_soon),
            judged => judged,
        })
    }))
}

/// Judges the steps of a transaction by the reasons of its cancellation.
#[must_use]
pub fn judge_cancellation(steps: &[(Step, Reason)], now: SystemTime) -> Verdict {
    let steps: Vec<_> = steps.iter().map(|(step, reason)| RefusedStep { step: *step, reason }).collect();
    judge_refusal(&steps, now)
}

/// Whether a second copy of these steps may still be applied, if no send of them is pending: no reason shows that the
/// condition of its step cannot hold again.
pub(crate) fn steps_may_still_land(steps: &[RefusedStep<'_>], now: SystemTime) -> bool {
    steps.iter().any(|step| step.write().is_some()) && steps.iter().all(|step| step.may_still_land(now))
}

/// Judges all steps by the verdicts on the refused writes with an id. The flag beside each verdict: the row may vanish
/// while a copy of a create can still arrive.
#[must_use]
pub fn judge_steps(verdicts: impl Iterator<Item = (Verdict, bool)>) -> Verdict {
    let mut all = Verdict::Unproved;
    for (verdict, is_soon) in verdicts {
        match verdict {
            landed @ Verdict::Landed(_) => return landed,
            Verdict::NeverApplied if !is_soon => all = Verdict::NeverApplied,
            verdict @ (Verdict::Open | Verdict::Corrupt) if all == Verdict::Unproved => all = verdict,
            Verdict::NeverApplied | Verdict::Open | Verdict::Corrupt | Verdict::Unproved => {}
        }
    }
    all
}

/// Judges a transaction after its lease was lost, by the present rows of its writes.
#[must_use]
pub fn judge_after_loss(writes: impl Iterator<Item = (SentWrite, Option<SeenRow>)>) -> Verdict {
    let mut all = Verdict::Unproved;
    for (sent, seen) in writes {
        match judge_without_copies(&sent, seen.as_ref()) {
            landed @ Verdict::Landed(_) => return landed,
            Verdict::NeverApplied => all = Verdict::NeverApplied,
            Verdict::Open | Verdict::Unproved | Verdict::Corrupt => {}
        }
    }
    all
}

/// Whether the row of a lease shows the lease with the token `mine` as lost: released, or acquired by another caller
/// since. No copy of a write under it will be applied then. A token higher than the current one proves nothing, because
/// it may become the current one later.
#[must_use]
pub fn is_lost(mine: u64, current: u64, is_held: bool) -> bool {
    current > mine || (current == mine && !is_held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::{OWN, VANISHING, create as created_by, version, write};
    use crate::memory::Trace;
    use crate::version::{Incarnation, Version};
    use std::time::{Duration, UNIX_EPOCH};

    const OURS: WriteId = WriteId::from_bytes([1; 8]);
    const THEIRS: WriteId = WriteId::from_bytes([2; 8]);
    const LANDED: Verdict = Verdict::Landed(Version::ABSENT.next());

    /// A row created by the write `by` and unchanged since, at version `at`.
    fn row_of(by: WriteId, at: u64) -> SeenRow {
        let memory = Some([(by, Trace::Applied(version(at - 1)))].into_iter().collect());
        SeenRow { version: version(at), incarnation: by.as_incarnation(), memory, fence: None, ends_at: None }
    }

    fn update(at: u64) -> Role {
        let on = Base::Row { version: version(at), window: 1, incarnation: THEIRS.as_incarnation() };
        Role::Writes(SentWrite { on, ..write(OURS, at, 1) })
    }

    fn create() -> Role {
        Role::Writes(created_by(OURS))
    }

    fn refusal(steps: &[(Role, Reason)]) -> Vec<RefusedStep<'_>> {
        let steps = steps.iter().enumerate();
        let step = |row, role: &Role| Step { row, role: *role, rules: OWN, is_named_by_client: false };
        steps.map(|(row, (role, reason))| RefusedStep { step: step(row, role), reason }).collect()
    }

    fn judged(steps: &[(Role, Reason)]) -> Verdict {
        judge_refusal(&refusal(steps), UNIX_EPOCH + Duration::from_hours(1))
    }

    fn refused(row: SeenRow) -> Reason {
        Reason::Refused(Seen::Row(Some(row)))
    }

    fn moved_on() -> (Role, Reason) {
        (update(3), refused(row_of(THEIRS, 4)))
    }

    fn went_down() -> (Role, Reason) {
        (update(9), refused(row_of(THEIRS, 4)))
    }

    #[test]
    fn the_steps_of_a_change_are_judged_together() {
        let incarnation = Incarnation::from_bytes([2; 8]);
        let checks = || (Role::Checks(Base::Row { version: version(3), window: 1, incarnation }), moved_on().1);
        let lost = || (Role::Requires(7), Reason::Refused(Seen::Row(None)));
        let still_open = || (update(4), refused(row_of(THEIRS, 4)));
        let ours = || (create(), refused(row_of(OURS, 1)));
        let taken = || (create(), refused(row_of(THEIRS, 1)));
        for (name, steps, verdict) in [
            ("one that landed, beside a dead one", vec![moved_on(), ours()], LANDED),
            (
                "one that is dead, beside a conflict",
                vec![(update(7), Reason::NotNow), moved_on()],
                Verdict::NeverApplied,
            ),
            ("one that is dead, beside no reason", vec![(update(7), Reason::None), taken()], Verdict::NeverApplied),
            ("a check leaves no id", vec![checks()], Verdict::Unproved),
            ("an add leaves no id", vec![(Role::Adds, moved_on().1)], Verdict::Unproved),
            ("no row", vec![(update(3), Reason::Refused(Seen::Row(None)))], Verdict::Unproved),
            ("no reason", vec![(update(3), Reason::None)], Verdict::Unproved),
            ("a lost lease", vec![lost(), (create(), Reason::None)], Verdict::Unproved),
            ("a lost lease, after it was applied", vec![lost(), ours()], LANDED),
            ("a lost lease, beside a dead one", vec![lost(), moved_on()], Verdict::NeverApplied),
            ("open", vec![still_open()], Verdict::Open),
            ("open, beside no reason", vec![still_open(), (create(), Reason::None)], Verdict::Open),
            ("open, beside a dead one", vec![still_open(), taken()], Verdict::NeverApplied),
            ("a dead one, beside an open one", vec![taken(), still_open()], Verdict::NeverApplied),
            ("a version that went down", vec![went_down()], Verdict::Corrupt),
            ("a version that went down, beside a dead one", vec![went_down(), moved_on()], Verdict::NeverApplied),
        ] {
            assert_eq!(judged(&steps), verdict, "{name}");
        }
    }

    #[test]
    fn a_lease_is_lost_for_good_when_its_token_is_behind_or_it_was_released() {
        for (current, is_held, lost) in
            [(8, true, true), (8, false, true), (7, false, true), (6, true, false), (6, false, false), (7, true, false)]
        {
            assert_eq!(is_lost(7, current, is_held), lost, "{current} {is_held}");
            let steps =
                [(Role::Requires(7), Reason::Refused(Seen::Lease { is_lost: lost })), (update(3), Reason::None)];
            assert_eq!(steps_may_still_land(&refusal(&steps), UNIX_EPOCH), !lost, "no copy lands without the lease");
        }
    }

    #[test]
    fn a_row_that_ttl_may_remove_soon_does_not_prove_a_create_dead() {
        for (minutes, expected) in [(80, Verdict::Unproved), (81, Verdict::NeverApplied)] {
            let row = SeenRow { ends_at: Some(minutes * 60), ..row_of(THEIRS, 1) };
            assert_eq!(judged(&[(create(), refused(row))]), expected, "{minutes} minutes");
        }
    }

    #[test]
    fn a_lower_version_than_one_that_a_client_named_proves_nothing() {
        let (role, reason) = went_down();
        let step = Step { row: 0, role, rules: OWN, is_named_by_client: true };
        let named = RefusedStep { step, reason: &reason };
        assert_eq!(judge_refusal(&[named], UNIX_EPOCH), Verdict::Unproved);
    }

    #[test]
    fn a_burn_helps_a_write_that_may_still_be_applied_or_was_not_shown() {
        let helps = |role, reason: &Reason| {
            RefusedStep { step: Step { row: 0, role, rules: OWN, is_named_by_client: false }, reason }.burn_helps()
        };
        assert!(helps(update(3), &Reason::NotNow) && helps(update(4), &refused(row_of(THEIRS, 4))));
        assert!(!helps(update(3), &refused(row_of(THEIRS, 4))), "its version has passed");
        let on = Base::NoRow(version(1));
        assert!(!helps(Role::Checks(on), &Reason::NotNow), "it leaves no id");
        let bases = [create(), Role::Checks(on), Role::Adds, Role::Requires(7), Role::Repeats].map(|role| role.base());
        assert_eq!(bases, [Some(on), Some(on), None, None, None]);
    }

    /// What other programs do to a row that nobody can read is not known.
    #[test]
    fn an_unreadable_row_is_in_the_way_of_a_create_as_long_as_it_stays() {
        let ending = TableRules { values_may_end: true, ..OWN };
        for (rules, may_land) in [(OWN, false), (VANISHING, true), (ending, true)] {
            let step = Step { row: 0, role: create(), rules, is_named_by_client: false };
            let step = RefusedStep { step, reason: &Reason::Refused(Seen::Unreadable) };
            assert_eq!(steps_may_still_land(&[step], UNIX_EPOCH), may_land, "{rules:?}");
        }
    }
}
