//! Judges a refused change of one step or of several (pure): the proof about every send, given by the refusing rows.

use super::condition::{HOLDER, TOKEN};
use super::fate::may_still_land;
use super::judge::{Base, SeenRow, SentWrite, Verdict, judge, judge_without_copies};
use super::memory::WriteId;
use super::row::{self, is_soon};
use super::send::Reason;
use super::settle::burn_helps;
use crate::layout::Layout;
use std::time::SystemTime;

/// The effect of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Role {
    /// The step writes to the observed state, and leaves the write id.
    Writes(SentWrite),
    /// The step demands the row in the observed state.
    Checks(Base),
    /// The step adds to numbers at any version, and leaves no id.
    Adds,
    /// The step demands a lease held under this token.
    Requires(u64),
}

impl Role {
    pub(crate) fn base(&self) -> Option<Base> {
        match self {
            Role::Writes(sent) => Some(sent.on),
            Role::Checks(on) => Some(*on),
            Role::Adds | Role::Requires(_) => None,
        }
    }
}

/// Whether the row in the way of a create may vanish while a copy of the create can still arrive.
pub(super) fn vanishes_soon(sent: &SentWrite, seen: Option<&SeenRow>, now: SystemTime) -> bool {
    matches!(sent.on, Base::NoRow(_)) && is_soon(seen.and_then(|row| row.ends_at), now)
}

/// The verdict of the row on a write, and whether the row [vanishes soon](vanishes_soon).
pub(super) fn judge_one(sent: &SentWrite, seen: Option<&SeenRow>, now: SystemTime) -> (Verdict, bool) {
    (judge(sent, seen), vanishes_soon(sent, seen, now))
}

pub(crate) struct RefusedStep<'a> {
    /// The place of its row among the rows of the change.
    pub row: usize,
    pub role: Role,
    pub layout: &'static Layout,
    pub reason: &'a Reason,
    /// The row that refused the step, if there was one and it is readable.
    pub seen: Option<SeenRow>,
    /// Whether the demanded version may be made up by a client. A lower version then proves nothing.
    pub is_named_by_client: bool,
}

impl<'a> RefusedStep<'a> {
    pub(crate) fn new(row: usize, role: Role, layout: &'static Layout, reason: &'a Reason) -> Self {
        let seen = if let Reason::Refused(Some(item)) = reason { row::seen(layout, item) } else { None };
        RefusedStep { row, role, layout, reason, seen, is_named_by_client: false }
    }

    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.reason, Reason::Refused(_))
    }

    pub(crate) fn write(&self) -> Option<SentWrite> {
        if let Role::Writes(sent) = self.role { Some(sent) } else { None }
    }

    /// The write as it is judged. A create may have been applied, and its value ended and removed since. So neither
    /// another row nor a free key proves anything about a pending send of it.
    pub(crate) fn judged_write(&self) -> Option<SentWrite> {
        let sent = self.write()?;
        Some(SentWrite { rows_may_vanish: sent.rows_may_vanish || self.layout.values_may_end(), ..sent })
    }

    pub(crate) fn burn_helps(&self) -> bool {
        self.judged_write()
            .is_some_and(|sent| burn_helps(&sent, self.is_shown().then(|| judge(&sent, self.seen.as_ref()))))
    }

    pub(crate) fn is_lease_lost(&self) -> bool {
        let (Role::Requires(mine), Reason::Refused(Some(row))) = (self.role, self.reason) else { return false };
        let current = row.get(TOKEN).and_then(row::read_number);
        current.is_some_and(|current| is_lost(mine, current, row.contains_key(HOLDER)))
    }

    /// Whether a second copy of the step may still be applied, if no send of it is pending.
    fn may_still_land(&self, now: SystemTime) -> bool {
        if !self.is_shown() {
            return true;
        }
        let sent = match self.role {
            Role::Writes(sent) => sent,
            Role::Checks(on) => SentWrite::new(self.layout, WriteId::from_random(0), None, on),
            Role::Adds => return true,
            Role::Requires(_) => return !self.is_lease_lost(),
        };
        may_still_land(&sent, self.seen.as_ref(), vanishes_soon(&sent, self.seen.as_ref(), now))
    }
}

/// Judges all steps by each. Steps are applied together or not at all. So if one step landed, all did, and if one step
/// is never applied, none is.
///
/// Checks and plain adds leave no id and prove nothing. Their rows may have moved on before or after.
pub(crate) fn judge_refusal(steps: &[RefusedStep<'_>], now: SystemTime) -> Verdict {
    judge_steps(steps.iter().filter(|step| step.is_shown()).filter_map(|step| {
        Some(match judge_one(&step.judged_write()?, step.seen.as_ref(), now) {
            (Verdict::Corrupt, is_soon) if step.is_named_by_client => (Verdict::Unproved, is_soon),
            judged => judged,
        })
    }))
}

/// Whether a second copy of these steps may still be applied, if no send of them is pending: no reason shows that the
/// condition of its step cannot hold again.
pub(crate) fn steps_may_still_land(steps: &[RefusedStep<'_>], now: SystemTime) -> bool {
    steps.iter().any(|step| step.write().is_some()) && steps.iter().all(|step| step.may_still_land(now))
}

/// Judges all steps by the verdicts on the refused writes with an id. The flag beside each verdict: the row may vanish
/// while a copy of a create can still arrive.
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
pub fn is_lost(mine: u64, current: u64, is_held: bool) -> bool {
    current > mine || (current == mine && !is_held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Settings;
    use crate::protocol::item::Attributes;
    use crate::protocol::judge::tests::{create as created_by, version, write};
    use crate::version::{Incarnation, Version};
    use aws_sdk_dynamodb::types::AttributeValue;
    use std::time::{Duration, UNIX_EPOCH};

    const OURS: WriteId = WriteId::from_bytes([1; 8]);
    const THEIRS: WriteId = WriteId::from_bytes([2; 8]);
    const LAYOUT: Layout = Layout {
        expires_at: Some("expiresAt"),
        settings: Settings { keeps_ends: true, ..Settings::own() },
        ..Layout::of_key("id")
    };
    const LANDED: Verdict = Verdict::Landed(Version::ABSENT.next());

    /// A row created by the write `by` and unchanged since, at version `at`.
    fn row_of(by: WriteId, at: u64) -> Attributes {
        let mut row = row::first_attributes(&LAYOUT, by);
        row.insert("_version".to_owned(), AttributeValue::N(at.to_string()));
        let trace = (by.name(), AttributeValue::N((at - 1).to_string()));
        row.insert("_writes".to_owned(), AttributeValue::M([trace].into()));
        row
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
        steps.map(|(row, (role, reason))| RefusedStep::new(row, *role, &LAYOUT, reason)).collect()
    }

    fn judged(steps: &[(Role, Reason)]) -> Verdict {
        judge_refusal(&refusal(steps), UNIX_EPOCH + Duration::from_hours(1))
    }

    fn refused(row: Attributes) -> Reason {
        Reason::Refused(Some(row))
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
        let lost = || (Role::Requires(7), Reason::Refused(None));
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
            ("no row", vec![(update(3), Reason::Refused(None))], Verdict::Unproved),
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
        let lease = |token: u64, holder: bool| {
            let mut row = Attributes::from([(TOKEN.to_owned(), AttributeValue::N(token.to_string()))]);
            if holder {
                row.insert(HOLDER.to_owned(), AttributeValue::S("a".to_owned()));
            }
            Reason::Refused(Some(row))
        };
        let is_lost = |reason: Reason| {
            let steps = [(Role::Requires(7), reason), (update(3), Reason::None)];
            let steps = refusal(&steps);
            let is_lost = steps[0].is_lease_lost();
            assert_eq!(steps_may_still_land(&steps, UNIX_EPOCH), !is_lost, "no copy lands without the lease");
            is_lost
        };
        assert!(is_lost(lease(8, true)) && is_lost(lease(8, false)) && is_lost(lease(7, false)));
        assert!(!is_lost(lease(6, true)) && !is_lost(lease(6, false)) && !is_lost(lease(7, true)));
        assert!(!is_lost(Reason::Refused(None)) && !is_lost(Reason::NotNow) && !is_lost(Reason::None));
    }

    #[test]
    fn a_row_that_ttl_may_remove_soon_does_not_prove_a_create_dead() {
        for (minutes, expected) in [(80, Verdict::Unproved), (81, Verdict::NeverApplied)] {
            let mut row = row_of(THEIRS, 1);
            row.insert("expiresAt".to_owned(), AttributeValue::N((minutes * 60).to_string()));
            assert_eq!(judged(&[(create(), refused(row))]), expected, "{minutes} minutes");
        }
    }

    #[test]
    fn a_lower_version_than_one_that_a_client_named_proves_nothing() {
        let (role, reason) = went_down();
        let named = RefusedStep { is_named_by_client: true, ..RefusedStep::new(0, role, &LAYOUT, &reason) };
        assert_eq!(judge_refusal(&[named], UNIX_EPOCH), Verdict::Unproved);
    }
}
