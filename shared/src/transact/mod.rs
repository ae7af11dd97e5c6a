//! Many items in one all-or-nothing change: named reads, a decision that adds steps, one transaction.
//!
//! [`Store::transact_with_retry`](crate::Store::transact_with_retry) is [`Table::update_with_retry`](crate::Table::update_with_retry) over more
//! than one item. It reads the named items, decides, and sends the steps as one transaction. After a conflict it
//! decides again on the items in the cancellation, without a read.
//!
//! Every create or update leaves the write id in its row. So does a delete, unless it
//! [removes](crate::WithoutTtl::removed) the row. So the rows judge a lost answer even when `DynamoDB` has forgotten
//! the token of the transaction. One row with the id is enough. Adds beside it do not conflict, because they leave no
//! id and demand no version. If all writing steps are adds, the first add to a known item leaves the id. If an answer
//! is lost and the rows prove nothing, that row serves to burn the transaction: no copy of it can be applied then.

mod attempt;
mod reads;
mod transactions;

pub use crate::driver::attempt::Attempt;
pub use reads::{Item, Reads};
