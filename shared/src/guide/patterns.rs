//! Everyday patterns: each is one operation, or a few lines.
//!
//! | you want | take |
//! |---|---|
//! | to create or change an item | [`upsert_with_retry`](crate::Table::upsert_with_retry) |
//! | the item, or a new one if there is none | [`create`](crate::Table::create): its refusal holds [the one that is there](crate::Exists) |
//! | an update that shows the item before and after it | [`upsert_with_retry`](crate::Table::upsert_with_retry), with `\|now\| now.map(..)` |
//! | a delete that shows the item | [`delete_returning`](crate::Table::delete_returning) |
//! | to change an item in place, for example a counter | an [edit](super::edits) |
//! | to move something from one item to another | two edits in a [transaction](super::transactions) |
//! | the last writer to win, by the time of its report | an edit that demands an older time, or [`lww`](crate::lww) if deletes arrive late too |
//! | to hide an item and keep it (a soft delete) | an edit that sets the time of the deletion, and a [filter](crate::Query::filter) |
//! | all items, some of them, or their number | [`scan`](crate::Table::scan), [`query`](crate::Table::query), [`count`](crate::Query::count) |
//! | the item in a row that the plain SDK has read | [`Table::live`](crate::Table::live) |
//!
//! A decision that cannot refuse answers the new value itself: no `Ok`, no `Some`. Then only a
//! [`Failure`](crate::Failure) is left, and `?` turns the error of an upsert into it.
//!
//! ```
//! use fencepost::{Failure, Record, Store, Table};
//! use fencepost_test::Engine;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize, Record)]
//! #[record(key = "id")]
//! struct Account {
//!     id: String, // the key, shown as a field
//!     balance: u64,
//!     seen_at: u64,
//!     #[serde(default)]
//!     deleted_at: Option<u64>,
//! }
//!
//! async fn deposit(accounts: &Table<Account>, id: &str, amount: u64) -> Result<u64, Failure> {
//!     let next = |now: Option<&Account>| match now {
//!         Some(now) => Account { balance: now.balance + amount, ..now.clone() },
//!         None => Account { id: id.to_owned(), balance: amount, seen_at: 0, deleted_at: None },
//!     };
//!     let deposited = accounts.upsert_with_retry(id, next).await?;
//!     Ok(deposited.item().map_or(0, |item| item.balance))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::embedded(&[("Accounts", "id")]);
//! let accounts: Table<Account> = Store::new(&engine.client()).table("Accounts");
//! # engine.take_counts();
//! assert_eq!(deposit(&accounts, "a-1", 5).await?, 5);
//! assert_eq!(deposit(&accounts, "a-1", 5).await?, 10);
//! assert_eq!(engine.take_counts(), (2, 2)); // reads and writes
//!
//! // The last writer wins: this report of 20 is newer than what the item has, and one of 10 would be refused.
//! let account = Account::FIELDS;
//! let report = account.balance.set(7).and(account.seen_at.set(20)).only_if(account.seen_at.is_less_than(20));
//! accounts.edit("a-1", &report).await?;
//!
//! accounts.edit("a-1", &account.deleted_at.set_if_none(30)).await?;
//! assert_eq!(accounts.scan().filter(account.deleted_at.is_none()).count().await?, 0);
//! # engine.take_counts();
//! assert_eq!(accounts.delete_returning("a-1").await?.balance, 7);
//! # assert_eq!(engine.take_counts(), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! For whole tasks, `examples/README.md` of the crate finds a recipe by need.
