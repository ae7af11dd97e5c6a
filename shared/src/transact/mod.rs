//! Many items in one all-or-nothing change: named reads, a decision that adds steps, one transaction.
//!
//! [`Transactions::transact_with_retry`] is [`Table::update_with_retry`](crate::Table::update_with_retry) over more
//! than one item. It reads the named items, decides, and sends the steps as one transaction. After a conflict it
//! decides again on the items that the cancellation returned, without a read.
//!
//! Every step that creates or updates leaves the write id in its row, and so does a delete unless it
//! [removes](crate::WithoutTtl::removed) the row. So the rows judge a lost answer even when `DynamoDB` has forgotten the
//! token of the transaction. One row that remembers is enough. Adds beside it leave no id and demand no version, so they
//! do not conflict. If all writing steps are adds, the first add to a known item leaves the id. If an answer is lost and
//! the rows prove nothing, that row is used to burn the transaction: afterwards no copy of it can be applied.

mod attempt;
mod reads;
mod step;
mod transactions;

pub use attempt::Attempt;
pub use reads::{Item, Reads};
pub use transactions::Transactions;
