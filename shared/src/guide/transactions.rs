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
//!   committed with the change and counts for a day, or as long as the claim is
//!   [`lasting`](crate::IdempotencyClaim::lasting). A refusal is not recorded. A request that only creates an item
//!   needs no record if the id of the item is made by [`derived_id`](crate::derived_id).
//!
//! - **Hot items.** `DynamoDB` lets one transaction at a time touch an item, so a product takes some dozens of orders a second.
//!   Orders that create one item and take from others go without a transaction if the [`Record`](crate::Record)s declare
//!   [`Holds`](crate::Holds): hundreds a second, with the same decision and the same answers.
//!
//! Tables in several Regions with strong consistency have no transactions. There, change the items one by one.
//!
//! # A number beyond one row
//!
//! By holds, one row takes some 400 orders a second. If that is too few, put the number into several rows, each with a key of
//! its own, so that `DynamoDB` can keep them on different partitions. An order takes from the row that its id draws, and what is
//! missing there from the others:
//!
//! ```
//! use fencepost::{Attempt, Error, Holds, Item, Reads, Record, Settings, Store, Table};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Record)]
//! #[record(key = "bucketId", holds = Holds::of("stock"))]
//! struct Bucket { stock: i64 }
//!
//! #[derive(Serialize, Deserialize, Record)]
//! #[record(key = "orderId", settings = Settings::deciding())]
//! struct Order { quantity: i64 }
//!
//! const BUCKETS: u64 = 8;
//!
//! fn take(attempt: &mut Attempt, buckets: &[Item<Bucket>], quantity: i64) -> Result<(), Error<&'static str>> {
//!     let mut missing = quantity;
//!     for bucket in buckets {
//!         let stock = attempt.get(*bucket)?.map_or(0, |bucket| bucket.value.stock);
//!         let taken = missing.min(stock);
//!         if taken > 0 {
//!             attempt.edit_blind(*bucket, &Bucket::FIELDS.stock.add(-taken, 0..))?;
//!             missing -= taken;
//!         }
//!         if missing == 0 {
//!             return Ok(());
//!         }
//!     }
//!     Err(Error::Refused("sold out")) // It has looked at all of them, and waits for what is held in any.
//! }
//!
//! async fn order(store: &Store, number: u64, quantity: i64) -> Result<(), Error<&'static str>> {
//!     let orders: Table<Order> = store.table("Orders");
//!     let buckets: Table<Bucket> = store.table("Buckets").remembering_items().held_for(&orders);
//!     let mut reads = Reads::new();
//!     let row = reads.later("order", &orders, format!("o-{number}"));
//!     let in_turn = (0..BUCKETS).map(|turn| format!("mug#{}", (number + turn) % BUCKETS));
//!     let parts: Vec<_> = in_turn.map(|id| reads.remembered(id.clone(), &buckets, id)).collect();
//!     store.transact_with_retry(reads, |attempt| {
//!         if attempt.get(row)?.is_none() {
//!             take(attempt, &parts, quantity)?;
//!             attempt.put_if_absent(row, &Order { quantity })?;
//!         }
//!         Ok(()) // It was placed before, or is placed now.
//!     }).await
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = fencepost_test::Engine::embedded(&[("Buckets", "bucketId"), ("Orders", "orderId")]);
//! # let store = Store::new(&engine.client());
//! # let buckets: Table<Bucket> = store.table("Buckets");
//! # for bucket in 0..BUCKETS {
//! #     buckets.create(format!("mug#{bucket}"), &Bucket { stock: 5 }).await?;
//! # }
//!
//! let mut sold = 0; // of 40
//! for number in 0..15 {
//!     sold += if order(&store, number, 3).await.is_ok() { 3 } else { 0 };
//! }
//! assert_eq!(sold, 39);
//! order(&store, 15, 1).await?; // the last one, wherever it is
//! assert!(order(&store, 16, 1).await.is_err());
//! # let mut left = 0;
//! # for bucket in 0..BUCKETS {
//! #     left += buckets.get(format!("mug#{bucket}")).await?.map_or(1, |bucket| bucket.value.stock);
//! # }
//! # assert_eq!(left, 0);
//! # Ok(())
//! # }
//! ```
//!
//! While there is enough, an order costs what it costs with one row. Near the end it takes from several rows, with a write for
//! each. A process reads all of them once, a refusal reads all of them again, and so does whoever wants to know the sum.
