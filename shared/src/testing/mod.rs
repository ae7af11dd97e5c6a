//! The pure parts of the protocol, of the parsers and of the writers of text, public for property tests, models and
//! fuzzing, and the parts of `lambda::serve`, public for `cargo dev`. Semantic versioning does not cover this module.

#[cfg(feature = "http")]
mod answers;
mod cursors;
mod requests;
mod rows;

use crate::driver::rows::KnownRow;
use crate::driver::send::Address;
use crate::error::UpdateError;
use crate::lww::{self, OrderKey, Registration};
use crate::table::{Edit, Key, Record, Table};
use fencepost_core::format::item::Attributes;
use fencepost_core::{Names, Step, Versioned};
use std::time::SystemTime;

#[cfg(feature = "http")]
pub use answers::{RecordSays, answer_of_record, record_of_answer};
pub use cursors::{Listing, forged_cursor};
pub use requests::{LeaseWrite, RowWrite, Writer, lease_request, newest_request};
pub use rows::{ReadRow, advanced_row, first_row, read_lease, read_mapping, read_row, seen_row};

pub use crate::driver::send::Reason;
#[cfg(feature = "lambda-without-tls")]
pub use crate::lambda::testing::{
    Reported, Reporter, answer_batch, answer_request, init_tracing, logged, report_line, run_scheduled, subsegment,
};
pub use fencepost_core::Role;
pub use fencepost_core::condition::LeaseTimes;
pub use fencepost_core::format::AsKind;
pub use fencepost_core::{Base, SeenRow, SentWrite, TableRules, Verdict, judge};
pub use fencepost_core::{Trace, WriteId};

/// Adds, and changes the item by the decision instead if the item refuses the add, as the routes of `http` do.
///
/// # Errors
/// See [`Table::update_with_retry`].
pub async fn edit_or_update<T: Record, R>(
    table: &Table<T>,
    key: &Key,
    add: &Edit<T>,
    decide: impl Fn(&T) -> Result<Option<T>, R>,
) -> Result<Versioned<T>, UpdateError<R>> {
    table.edit_or_update(key, add, decide).await
}

/// The names of all attributes of this crate.
#[must_use]
pub fn own_attributes() -> [&'static str; 10] {
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

/// The steps of a transaction on the table of `T`, each with the reason of its refusal.
fn refused<T: Record>(steps: &[(Role, Reason)]) -> Vec<(Step, fencepost_core::Reason)> {
    let layout = Table::<T>::LAYOUT;
    let step = |(row, (role, reason)): (usize, &(Role, Reason))| {
        let address = Address { table: String::new(), key: Attributes::new() };
        let known = KnownRow::new(String::new(), address, layout);
        let step = Step { row, role: *role, rules: layout.rules(), is_named_by_client: false };
        (step, known.reason(role, reason))
    };
    steps.iter().enumerate().map(step).collect()
}

/// The proof in the reasons about every send of the transaction. All steps are in the table of `T`.
#[must_use]
pub fn judge_cancellation<T: Record>(steps: &[(Role, Reason)], now: SystemTime) -> Verdict {
    fencepost_core::judge_cancellation(&refused::<T>(steps), now)
}

/// Whether a step shows that its lease is lost.
#[must_use]
pub fn is_lease_lost<T: Record>(steps: &[(Role, Reason)]) -> bool {
    let is_lost = fencepost_core::Reason::Refused(fencepost_core::Seen::Lease { is_lost: true });
    refused::<T>(steps).iter().any(|(_, reason)| *reason == is_lost)
}
