//! Many items in one all-or-nothing change: named reads, a decision that adds steps, one transaction.
//!
//! [`Transactions::transact_with_retry`] is [`Table::update_with_retry`](crate::Table::update_with_retry) over more
//! than one item. It reads the named items, decides, and sends the steps as one transaction. After a conflict it
//! decides again on the items that the cancellation returned, without a read. Every step that writes at a version
//! leaves the write id in its row. So the rows judge a lost answer even when `DynamoDB` has forgotten the token of the
//! transaction.

mod attempt;
mod cancellation;
mod reads;
mod transactions;

pub use attempt::{Attempt, Plan};
pub use reads::{Item, Reads, Required};
pub use transactions::Transactions;
