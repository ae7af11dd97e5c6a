//! Judges a cancelled transaction: what it proves about every send (pure).

use super::step::Role;
use crate::layout::Layout;
use crate::protocol::condition::{HOLDER, TOKEN};
use crate::protocol::judge::{SeenRow, SentWrite, Verdict, judge, judge_without_copies};
use crate::protocol::row;
use crate::protocol::send::Reason;
use crate::table::prepare::item_soon_purged;
use std::time::SystemTime;

/// One step of a cancelled transaction.
pub(crate) struct Cancelled<'a> {
    pub role: &'a Role,
    pub reason: &'a Reason,
    /// What the record of the row says of its table.
    pub layout: &'static Layout,
}

/// Judges all steps by each. Steps are applied together or not at all. So if one step landed, all did, and if one step
/// is never applied, none is.
///
/// Steps that only check or add leave no id, and prove nothing. Their rows may have moved on before or after.
pub(crate) fn judge_cancellation<'a>(steps: impl Iterator<Item = Cancelled<'a>>, now: SystemTime) -> Verdict {
    judge_steps(steps.filter_map(|Cancelled { role, reason, layout }| {
        let (Role::Writes(sent), Reason::Refused(item)) = (role, reason) else { return None };
        let seen = item.as_ref().and_then(|item| row::seen(layout, item));
        let verdict = judge(sent, seen.as_ref());
        let is_soon = || item_soon_purged(layout, sent, item.as_ref(), now);
        Some((verdict, verdict == Verdict::NeverApplied && is_soon()))
    }))
}

/// Judges all steps by the verdicts on the refused ones that leave an id. Each verdict comes with whether the row may
/// vanish while a copy of a create can still arrive.
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

/// Judges a transaction whose lease is lost, by the rows that it would have written, as they are now.
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

/// Whether the row of a lease shows that the lease with the token `mine` is lost: another caller has acquired it since,
/// or it was released. No copy of a write that requires it will be applied then. A token higher than the current one
/// proves nothing, because it may become the current one later.
pub fn is_lost(mine: u64, current: u64, is_held: bool) -> bool {
    current > mine || (current == mine && !is_held)
}

/// Whether a step shows that its lease is lost.
pub(crate) fn is_lease_lost<'a>(mut steps: impl Iterator<Item = (&'a Role, &'a Reason)>) -> bool {
    steps.any(|(role, reason)| match (role, reason) {
        (Role::Requires(mine), Reason::Refused(Some(row))) => {
            let current = row.get(TOKEN).and_then(row::read_number);
            current.is_some_and(|current| is_lost(*mine, current, row.contains_key(HOLDER)))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::item::Attributes;
    use crate::protocol::judge::Base;
    use crate::protocol::memory::WriteId;
    use crate::version::{Incarnation, Version};
    use aws_sdk_dynamodb::types::AttributeValue;
    use std::time::{Duration, UNIX_EPOCH};

    const OURS: WriteId = WriteId::from_bytes([1; 8]);
    const THEIRS: WriteId = WriteId::from_bytes([2; 8]);
    const LAYOUT: Layout = Layout { expires_at: Some("expiresAt"), ..Layout::of_key("id") };
    const LANDED: Verdict = Verdict::Landed(Version::ABSENT.next());

    /// A row that `by` created and wrote last, at version `at`.
    fn row_of(by: WriteId, at: u64) -> Attributes {
        let mut row = row::first_attributes(&LAYOUT, by);
        row.insert("_version".to_owned(), AttributeValue::N(at.to_string()));
        let trace = (by.name(), AttributeValue::N((at - 1).to_string()));
        row.insert("_writes".to_owned(), AttributeValue::M([trace].into()));
        row
    }

    fn update(at: u64) -> Role {
        let version = Version::new(at).expect("small");
        Role::Writes(SentWrite {
            id: OURS,
            on: Base::Row { version, window: 1, incarnation: THEIRS.as_incarnation() },
            remembered: 16,
            fence: None,
            rows_may_vanish: false,
            versions_may_repeat: false,
        })
    }

    fn create() -> Role {
        Role::Writes(SentWrite {
            id: OURS,
            on: Base::NoRow(Version::ABSENT.next()),
            remembered: 16,
            fence: None,
            rows_may_vanish: false,
            versions_may_repeat: false,
        })
    }

    fn judged(steps: &[(Role, Reason)]) -> Verdict {
        let steps = steps.iter().map(|(role, reason)| Cancelled { role, reason, layout: &LAYOUT });
        judge_cancellation(steps, UNIX_EPOCH + Duration::from_hours(1))
    }

    fn refused(row: Attributes) -> Reason {
        Reason::Refused(Some(row))
    }

    #[test]
    fn one_step_that_landed_means_that_all_did_whatever_the_others_show() {
        let moved_on = (update(3), refused(row_of(THEIRS, 4)));
        let ours = (create(), refused(row_of(OURS, 1)));
        assert_eq!(judged(&[moved_on, ours]), LANDED);
    }

    #[test]
    fn one_step_that_is_dead_means_that_all_are() {
        assert_eq!(
            judged(&[(update(7), Reason::NotNow), (update(3), refused(row_of(THEIRS, 4)))]),
            Verdict::NeverApplied
        );
        assert_eq!(judged(&[(update(7), Reason::None), (create(), refused(row_of(THEIRS, 1)))]), Verdict::NeverApplied);
    }

    #[test]
    fn steps_that_leave_no_id_prove_nothing() {
        let version = Version::new(3).expect("small");
        let base = Base::Row { version, window: 1, incarnation: Incarnation::from_bytes([2; 8]) };
        assert_eq!(judged(&[(Role::Checks(base), refused(row_of(THEIRS, 4)))]), Verdict::Unproved);
        assert_eq!(judged(&[(Role::Adds, refused(row_of(THEIRS, 4)))]), Verdict::Unproved);
        assert_eq!(judged(&[(update(3), Reason::Refused(None))]), Verdict::Unproved);
        assert_eq!(judged(&[(update(3), Reason::None)]), Verdict::Unproved);
    }

    #[test]
    fn a_refused_lease_proves_nothing_about_what_was_applied_before() {
        let lost = || (Role::Requires(7), Reason::Refused(None));
        assert_eq!(judged(&[lost(), (create(), Reason::None)]), Verdict::Unproved);
        assert_eq!(judged(&[lost(), (create(), refused(row_of(OURS, 1)))]), LANDED);
        assert_eq!(judged(&[lost(), (update(3), refused(row_of(THEIRS, 4)))]), Verdict::NeverApplied);
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
        let is_lost = |reason: Reason| is_lease_lost([(&Role::Requires(7), &reason)].into_iter());
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
    fn a_step_that_its_row_may_still_take_leaves_the_transaction_open() {
        assert_eq!(judged(&[(update(4), refused(row_of(THEIRS, 4)))]), Verdict::Open);
        assert_eq!(judged(&[(update(4), refused(row_of(THEIRS, 4))), (create(), Reason::None)]), Verdict::Open);
        let dead = (create(), refused(row_of(THEIRS, 1)));
        assert_eq!(judged(&[(update(4), refused(row_of(THEIRS, 4))), dead]), Verdict::NeverApplied);
        let dead = (create(), refused(row_of(THEIRS, 1)));
        assert_eq!(judged(&[dead, (update(4), refused(row_of(THEIRS, 4)))]), Verdict::NeverApplied);
    }

    #[test]
    fn a_version_that_went_down_is_corrupt_unless_another_step_proves_more() {
        let back = || (update(9), refused(row_of(THEIRS, 4)));
        assert_eq!(judged(&[back()]), Verdict::Corrupt);
        assert_eq!(judged(&[back(), (update(3), refused(row_of(THEIRS, 4)))]), Verdict::NeverApplied);
    }
}
