//! The verdict on a cancelled transaction.

use crate::protocol::judge::Verdict;
use crate::protocol::refusal::{self, RefusedStep, Role};
use crate::protocol::send::Reason;
use crate::table::{Record, Table};
use std::time::SystemTime;

fn refused<T: Record>(steps: &[(Role, Reason)]) -> Vec<RefusedStep<'_>> {
    let step = |(row, (role, reason))| {
        let (role, layout): (&Role, _) = (role, Table::<T>::LAYOUT);
        RefusedStep::new(row, *role, layout, reason)
    };
    steps.iter().map(|(role, reason)| (role, reason)).enumerate().map(step).collect()
}

/// The proof in the reasons about every send of the transaction. All steps are in the table of `T`.
#[must_use]
pub fn judge_cancellation<T: Record>(steps: &[(Role, Reason)], now: SystemTime) -> Verdict {
    refusal::judge_refusal(&refused::<T>(steps), now)
}

/// Whether a step shows that its lease is lost.
#[must_use]
pub fn is_lease_lost<T: Record>(steps: &[(Role, Reason)]) -> bool {
    refused::<T>(steps).iter().any(RefusedStep::is_lease_lost)
}
