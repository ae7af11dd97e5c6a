//! The verdict on a cancelled transaction.

use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, SentWrite, Verdict};
use crate::protocol::send::Reason;
use crate::table::{Record, Table};
use crate::transact::cancellation::{self, Cancelled};
use crate::transact::step::Role;
use std::time::SystemTime;

/// What a step of a transaction does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CancelledRole {
    /// It writes, and leaves an id.
    Writes(SentWrite),
    /// It demands a state of a row.
    Checks(Base),
    /// It adds, and leaves no id.
    Adds,
    /// It demands that a lease is held under this token.
    Requires(u64),
}

/// Why a transaction was cancelled, as one of its steps has it.
#[derive(Clone, PartialEq, Debug)]
pub enum StepReason {
    /// This step was not a reason.
    None,
    /// The condition did not hold. This row refused it, if there was one.
    Refused(Option<Attributes>),
    /// A conflict, or throttling.
    NotNow,
    /// The step is impossible.
    Rejected,
}

/// One step of a cancelled transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct CancelledStep {
    /// What it does.
    pub role: CancelledRole,
    /// Its reason.
    pub reason: StepReason,
}

impl CancelledStep {
    fn parts(&self) -> (Role, Reason) {
        let role = match self.role {
            CancelledRole::Writes(sent) => Role::Writes(sent),
            CancelledRole::Checks(base) => Role::Checks(base),
            CancelledRole::Adds => Role::Adds,
            CancelledRole::Requires(token) => Role::Requires(token),
        };
        let reason = match self.reason.clone() {
            StepReason::None => Reason::None,
            StepReason::Refused(row) => Reason::Refused(row),
            StepReason::NotNow => Reason::NotNow,
            StepReason::Rejected => Reason::Rejected,
        };
        (role, reason)
    }
}

/// What the reasons prove about every send of the transaction. All steps are in the table of `T`.
#[must_use]
pub fn judge_cancellation<T: Record>(steps: &[CancelledStep], now: SystemTime) -> Verdict {
    let steps: Vec<_> = steps.iter().map(CancelledStep::parts).collect();
    let layout = Table::<T>::LAYOUT;
    cancellation::judge_cancellation(steps.iter().map(|(role, reason)| Cancelled { role, reason, layout }), now)
}

/// Whether a step shows that its lease is lost.
#[must_use]
pub fn is_lease_lost(steps: &[CancelledStep]) -> bool {
    let steps: Vec<_> = steps.iter().map(CancelledStep::parts).collect();
    cancellation::is_lease_lost(steps.iter().map(|(role, reason)| (role, reason)))
}
