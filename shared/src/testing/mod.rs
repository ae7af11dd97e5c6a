//! The pure parts of the protocol, of the parsers and of the writers of text, public for property tests, models and
//! fuzzing, and the parts of `lambda::serve`, public for `cargo dev`. Semantic versioning does not cover this module.

#[cfg(feature = "http")]
mod answers;
mod cursors;
mod requests;
mod rows;

use crate::error::UpdateError;
use crate::lww::{self, OrderKey, Registration};
use crate::names::Names;
use crate::protocol::item::Attributes;
use crate::protocol::refusal::{self, RefusedStep};
use crate::retry::RetryPolicy;
use crate::table::{Edit, Key, Record, Table};
use crate::version::Versioned;
use std::time::{Duration, SystemTime};

#[cfg(feature = "http")]
pub use answers::{RecordSays, answer_of_record, record_of_answer};
pub use cursors::{Listing, forged_cursor};
pub use requests::{LeaseWrite, RowWrite, Writer, lease_request, newest_request};
pub use rows::{ReadRow, advanced_row, first_row, read_lease, read_mapping, read_row, seen_row};

#[cfg(feature = "lambda-without-tls")]
pub use crate::lambda::testing::{
    Reported, Reporter, answer_batch, answer_request, init_tracing, logged, report_line, subsegment,
};
pub use crate::lease::judge::{AfterAcquire, judge_acquire, judge_renewal};
pub use crate::protocol::condition::LeaseTimes;
pub use crate::protocol::fate::{judge_open, may_still_land};
pub use crate::protocol::judge::{Base, SeenRow, SentWrite, Verdict, judge};
pub use crate::protocol::memory::{Memory, Trace, WriteId};
pub use crate::protocol::refusal::{Role, is_lost, judge_after_loss, judge_steps};
pub use crate::protocol::row::is_soon;
pub use crate::protocol::send::Reason;
pub use crate::protocol::settle::{
    After, Facts, after, anchors_of, burn_helps, can_be_burned, is_in_window, writes_to,
};
pub use crate::table::stand::Stand;

/// The default policy with pauses for round trips up to this long.
#[must_use]
pub fn slow_round_trips(longest: Duration) -> RetryPolicy {
    RetryPolicy { max_round_trip: longest, ..RetryPolicy::default() }
}

/// Adds, and changes the item by the decision instead if the item refuses the add, as the routes of `http` do.
///
/// # Errors
/// See [`Table::update_with_retry`].
pub async fn edit_or_update<T: Record, R>(
    table: &Table<T>,
    key: &Key,
    add: &Edit,
    decide: impl Fn(&T) -> Result<Option<T>, R>,
) -> Result<Versioned<T>, UpdateError<R>> {
    table.edit_or_update(key, add, decide).await
}

/// The names of all attributes of this crate.
#[must_use]
pub fn own_attributes() -> [&'static str; 8] {
    Names::DEFAULT.all()
}

/// The item as this client saw it last, if the table remembers items.
#[must_use]
pub fn last_seen<T: Record>(table: &Table<T>, key: &Key) -> Option<Versioned<T>> {
    table.last_seen(key)
}

/// The outcome of a refused registration of `instance`. The row holds `live`, or is the tombstone of `stored`.
#[must_use]
pub fn judge_registration<T: PartialEq>(
    mine: &OrderKey,
    stored: &OrderKey,
    live: Option<T>,
    instance: &T,
) -> Registration<T> {
    lww::judge_registration(mine, stored, live, instance)
}

/// How an item stands to an add that it refused. `passed` says that the row has left the window.
#[must_use]
pub fn stand(add: &Edit, item: &Attributes, passed: bool) -> Stand {
    add.stand(item, passed)
}

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
