//! The writes, checks and queries of this crate. Only this folder has the text of expressions. `None` in place of a write:
//! an expression would exceed a limit of `DynamoDB`. Of an update, send the whole item instead.

mod demand;
mod edit;
mod lease;
mod newest;
mod query;
mod ticket;
mod versioned;
mod write;

pub use demand::Demand;
pub use edit::{AddedNumber, Clauses, Comparison, Condition, Demanded, Holds, burn, edit_anywhere, edit_within};
pub use lease::LeaseTimes;
pub use lease::{
    ACQUIRE_ID, EXPIRES_AT, HOLDER, LEASE_KEY, LEASE_PURGE_AT, RENEWALS, TOKEN, acquire, check_held, lease_key,
    release, renew,
};
pub use newest::{OrderedBy, put_if_newer, put_unless_newer};
pub use query::{AT_LEAST, AT_MOST, BEGINS_WITH, BETWEEN, EQUAL_TO, LESS_THAN, MORE_THAN, key_condition};
pub use query::{Selected, Selection, SortBound};
pub use ticket::take_ticket;
pub use versioned::{
    adopt_at, bury_at, check_absent, check_at, put_at, put_if_absent, raise_tombstone, remove_at, restamp_at, sweep_at,
    update_at,
};
pub use write::{Commit, ConditionalWrite, Operation, Returned, fenced};
