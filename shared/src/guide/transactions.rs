//! Transactions: several items change together or not at all, once per request if the request has a key.
//!
//! [`Reads`](crate::Reads) names the items, at most 100, of any tables of one store. The decision gets an
//! [`Attempt`](crate::Attempt), looks at them, and adds at most one step for each. It must be pure, because it runs
//! again after a conflict.
//!
//! ```
//! use fencepost::{Answer, Error, IdempotencyClaim, Reads, Record, Store, Table};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize, Record)]
//! #[record(key = "accountId")]
//! struct Account { balance: u64 }
//!
//! /// Moves the amount once, however often the message comes. Returns what the payer has left.
//! async fn transfer(store: &Store, message: &str, amount: u32) -> Result<Answer<u64>, Box<dyn std::error::Error>> {
//!     let accounts: Table<Account> = store.table("Accounts");
//!     let mut reads = Reads::new();
//!     let (payer, payee) = (reads.item("payer", &accounts, "a-1"), reads.item("payee", &accounts, "a-2"));
//!     let claim = IdempotencyClaim::new(&["transfer", message], &[&amount.to_string()])?;
//!     let requests = store.idempotency("Requests"); // a table for the answers
//!     let moved = requests.change(&claim, reads, |attempt| {
//!         let from = attempt.get(payer)?.ok_or(Error::Refused("nobody pays"))?;
//!         let left = from.balance.checked_sub(amount.into()).ok_or(Error::Refused("there is too little"))?;
//!         attempt.update_at(payer, &Account { balance: left })?; // demands the item as it was read
//!         attempt.edit(payee, &Account::FIELDS.balance.add(i64::from(amount), ..))?; // demands only that it is there
//!         Ok(left)
//!     });
//!     Ok(moved.await?)
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = fencepost_test::Engine::embedded(&[("Accounts", "accountId"), ("Requests", "recordId")]);
//! # let store = Store::new(&engine.client());
//! # let accounts: Table<Account> = store.table("Accounts");
//! # accounts.create("a-1", &Account { balance: 100 }).await?;
//! # accounts.create("a-2", &Account { balance: 0 }).await?;
//! assert_eq!(transfer(&store, "m-1", 30).await?, Answer::New(70));
//! assert_eq!(transfer(&store, "m-1", 30).await?, Answer::Replayed(70)); // moves nothing
//! # assert_eq!(accounts.get("a-2").await?.map(|account| account.value.balance), Some(30));
//! # Ok(())
//! # }
//! ```
//!
//! Without a key, [`Store::transact_with_retry`](crate::Store::transact_with_retry) takes the same reads and the same
//! decision. The page of [`Reads`](crate::Reads) shows the other steps.
//!
//! - **A step demands its item as it was read**, except an edit. An item that only influences the decision needs a
//!   [`check`](crate::Attempt::check). Otherwise another writer may change it between the read and the commit.
//! - **`edit` or `edit_blind`.** Both demand only the conditions of the edit of an item that was read. They differ for
//!   a [remembered](crate::Reads::remembered) item, which saves the read: if the decision has looked at it, `edit`
//!   demands it as it was seen, and `edit_blind` says that the conditions of the edit suffice. So orders that take from
//!   one stock do not refuse each other.
//! - **A refused edit** ends the call as [`FailureKind::EditRefused`](crate::FailureKind::EditRefused). The page of
//!   [`Attempt::edit`](crate::Attempt::edit) turns it into a refusal of your own.
//! - **A key is for requests that may come again**, by a queue or an impatient client. The record of its answer is
//!   committed with the change and counts for a day. A refusal is not recorded. A request that only creates an item
//!   needs no record if the id of the item is made by [`derived_id`](crate::derived_id).
//!
//! - **Hot items.** `DynamoDB` lets one transaction at a time touch an item, so a product takes some dozens of orders a second.
//!   Orders that create one item and take from others go without a transaction if the [`Record`](crate::Record)s declare
//!   [`Holds`](crate::Holds): hundreds a second, with the same decision and the same answers.
//!
//! Tables in several Regions with strong consistency have no transactions. There, change the items one by one.
