//! Change shared state in `DynamoDB` exactly once, although callers race and answers get lost.
//!
//! An operation reads an item, decides, and writes on the condition that the item is unchanged. An [`Edit`] adds
//! to numbers, or sets values, under conditions. It demands no exact version: it conflicts only if the row moves on by
//! [`Settings::edit_window`] versions before it arrives. Each change leaves its id in the item. If an answer is lost,
//! the same write is sent again. The id in a refusal tells whether the first send was applied. `DESIGN.md` argues why
//! that is exact.
//!
//! ```
//! use fencepost::{Record, Store, Table};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Record)]
//! #[record(key = "accountId")]
//! struct Account { balance: u64 }
//!
//! async fn withdraw(store: &Store, id: &str, amount: u64) -> Result<u64, Box<dyn std::error::Error>> {
//!     let accounts: Table<Account> = store.table("Accounts");
//!     let account = accounts
//!         .update_with_retry(id, |account| match account.balance.checked_sub(amount) {
//!             Some(balance) => Ok(Some(Account { balance })), // None would keep it as it is
//!             None => Err("there is too little"),
//!         })
//!         .await?;
//!     Ok(account.balance)
//! }
//! ```
//!
//! A transaction changes several items, all or none:
//!
//! ```
//! # use fencepost::{Error, Reads, Record, Store, Table};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize, Record)]
//! # #[record(key = "accountId")]
//! # struct Account { balance: u64 }
//! async fn transfer(store: &Store, from: &str, to: &str, amount: u64) -> Result<(), Box<dyn std::error::Error>> {
//!     let accounts: Table<Account> = store.table("Accounts");
//!     let mut reads = Reads::new();
//!     let (payer, payee) = (reads.item("payer", &accounts, from), reads.item("payee", &accounts, to));
//!     let moved = store.transact_with_retry(reads, |attempt| {
//!         let from = attempt.get(payer)?.ok_or(Error::Refused("nobody pays"))?;
//!         let to = attempt.get(payee)?.ok_or(Error::Refused("nobody is paid"))?;
//!         let left = from.balance.checked_sub(amount).ok_or(Error::Refused("there is too little"))?;
//!         attempt.update_at(payer, &Account { balance: left })?;
//!         attempt.update_at(payee, &Account { balance: to.balance + amount })?;
//!         Ok(())
//!     });
//!     Ok(moved.await?)
//! }
//! ```
//!
//! An edit needs no version, so many callers can change one item at once:
//!
//! ```
//! # use fencepost::{Record, Store, Table};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Debug, Serialize, Deserialize, Record)]
//! # #[record(key = "accountId")]
//! # struct Account { balance: u64 }
//! async fn deposit(store: &Store, id: &str) -> Result<(), Box<dyn std::error::Error>> {
//!     let accounts: Table<Account> = store.table("Accounts");
//!     accounts.edit(id, &Account::FIELDS.balance.add(7, 0..=1_000_000)).await?;
//!     Ok(())
//! }
//! ```
//!
//! A leader works as long as it holds a lease, and writes under the token of the lease:
//!
//! ```
//! # use fencepost::lease::LeaseTerms;
//! # use fencepost::{Record, Store, Table};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize, Record)]
//! # #[record(key = "accountId")]
//! # struct Account { balance: u64 }
//! async fn lead(store: &Store, me: &str) -> Result<(), Box<dyn std::error::Error>> {
//!     let accounts: Table<Account> = store.table("Accounts");
//!     let leases = store.leases("Leases");
//!     let work = async |token| accounts.fenced_by(&token).delete("a-1").await.is_ok();
//!     let deleted = leases.while_held("leader", me, LeaseTerms::default(), work).await?;
//!     if deleted { Ok(()) } else { Err("the account is still there".into()) }
//! }
//! ```
//!
//! A request that comes again gets the first answer again:
//!
//! ```
//! # use fencepost::{Answer, Error, IdempotencyClaim, Reads, Record, Store, Table};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize, Record)]
//! # #[record(key = "accountId")]
//! # struct Account { balance: u64 }
//! async fn pay_in(store: &Store, message: &str, id: &str) -> Result<u64, Box<dyn std::error::Error>> {
//!     let accounts: Table<Account> = store.table("Accounts");
//!     let claim = IdempotencyClaim::new(&["pay-in", message], &[id]);
//!     let mut reads = Reads::new();
//!     let item = reads.item("account", &accounts, id);
//!     let payments = store.idempotency("Payments");
//!     let answer = payments.change(&claim, reads, |attempt| {
//!         let account = attempt.get(item)?.ok_or(Error::Refused("there is no such account"))?;
//!         let balance = account.balance + 7;
//!         attempt.update_at(item, &Account { balance })?;
//!         Ok(balance)
//!     });
//!     Ok(match answer.await? {
//!         Answer::New(balance) | Answer::Replayed(balance) => balance,
//!     })
//! }
//! ```
//!
//! # What is promised
//!
//! The result of a call states the outcome of the change:
//!
//! | the call ends with | the change was applied |
//! |---|---|
//! | `Ok` | exactly once; a decision that kept the item applied nothing |
//! | [`FailureKind::OutcomeUnknown`](crate::FailureKind::OutcomeUnknown), which says what to do then | at most once: it may have been, or may still be |
//! | any other error | not at all, and it never will be |
//!
//! A second copy of a request, which the network delivers after the call, may still break the last line. `DESIGN.md` lists
//! the cases under "What is not promised", with the settings of a table that weaken the first line.
//!
//! | operation | what it changes | requests |
//! |---|---|---|
//! | [`Table::get`] | nothing; strongly consistent | 1 read |
//! | [`Table::get_many`] | nothing; strongly consistent | 1 read per 100 keys |
//! | [`Table::query`], [`Table::query_index`] | nothing; strongly consistent except on a global index | 1 read per page, + up to 9 where a page meets tombstones |
//! | [`Table::create`] | a key without an item | 1 write; 2 on the tombstone of a deleted item |
//! | [`Table::update_with_retry`] | the item, decided again after each conflict | 1 read + 1 write, + 1 write per conflict, mostly with 1 read before it, + 1 write for a ticket where others wait; 1 read if it is kept or refused |
//! | the same on a [remembered](Table::remembering_items) item | the item, decided on as it was seen last | 1 write, + 1 write if it has moved on, then as above |
//! | [`Table::update_at_version`] | the version that the client has seen | 1 read + 1 write; 1 read if that is stale |
//! | [`Table::delete_at_version`] | the version that the client has seen | 1 write; 1 read + 1 write if another program wrote the row |
//! | [`Table::delete`] | the item at any version | 1 read + 1 write, then as above |
//! | [`Table::edit`] | numbers within bounds, other values under conditions, at any version | 1 write; 1 read + 1 write if this client has not seen the item |
//! | [`Store::transact_with_retry`] | many items, all or none, decided again after each conflict | 1 read + 1 transaction, + 1 per conflict, + 1 write per burn |
//! | the same with [`Attempt::edit_blind`] on [remembered](Reads::remembered) items, such as an order | many items, all or none; edits demand no version | 1 transaction, + 1 per conflict or refused edit |
//! | [`Idempotency::change`] | many items, once per request | the same, + 1 read for a refusal; 1 read for a replay |
//! | [`Store::check`] | nothing; compares the table with its `Record` at the start of a program | 2 reads, of its description and of its TTL |
//! | [`LwwTable::register`](lww::LwwTable::register), [`LwwTable::delete`](lww::LwwTable::delete) | a key whose newest instance wins | 1 write |
//! | [`Leases::acquire`](lease::Leases::acquire), [`Leases::renew`](lease::Leases::renew), [`Leases::release`](lease::Leases::release) | a lease and its fencing token | 1 write |
//!
//! Begin with `update_with_retry`: its decision sees the whole item. `edit` says the change without the old value, so that
//! many writers of one item rarely refuse each other. `update_at_version` is for a client that shows which version it has
//! seen, such as an `If-Match`. Items that must change together take a transaction, and a request that its caller may send
//! again takes `Idempotency::change`. `register` is for reports that arrive in any order, and a lease for work outside the table.
//!
//! [`lww`] and [`lease`] name the cases in which they promise less than the first table.
//!
//! An edit sends one more write if its window has passed, if it guessed a band wrong, if it has to remove ids from an item
//! that its client has not read ([`Edit::seen`]), or if it must be burned after a
//! lost answer. A lost answer or a throttled request costs one more send. The SDK sends nothing again by itself,
//! because a [`Store`] switches its retries off. So this crate sees and judges every lost answer, and [`Call::tally`]
//! counts them.
//!
//! An operation takes at most [`Store::TIME_LIMIT`], or the time that the store was given. Where several share the time
//! that is left, as in an invocation of a function, [`Store::in_call`] gives them one [`Call`].
//!
//! # A table that is there already
//!
//! A table may have rows that another program wrote, its own names, and programs that go on writing.
//! [`Record::SETTINGS`] says so. Rows of other programs are read, tagged, and adopted by the first change.
//! `docs/adoption.md` lists the settings that a library needs, with the promises beside it.
//!
//! Programs that use this crate on one table must have the same stored format (3) and the same settings in their
//! `Record`s. Only [`Settings::edit_window`] may differ, and a build may know fewer attributes than another one.
//!
//! A table that was restored to an earlier moment needs new incarnations before anybody writes to it: see
//! [`maintenance::Task::Restamp`] and the section "Restore" of `docs/operations.md`.
//!
//! # Errors
//!
//! ```
//! # use fencepost::{Record, Table, UpdateError};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize, Record)]
//! # #[record(key = "accountId")]
//! # struct Account { balance: u64 }
//! async fn withdraw(accounts: &Table<Account>, id: &str, amount: u64) -> String {
//!     // Pure, so that it can be made again on another writer's result.
//!     let decide = |account: &Account| match account.balance.checked_sub(amount) {
//!         Some(_) if amount == 0 => Ok(None),
//!         Some(balance) => Ok(Some(Account { balance })),
//!         None => Err(account.balance),
//!     };
//!     match accounts.update_with_retry(id, decide).await {
//!         Ok(account) => format!("{} left, at version {}", account.value.balance, account.version()),
//!         Err(UpdateError::NotFound) => "there is no such account".to_owned(),
//!         Err(UpdateError::Refused(balance)) => format!("refused: there are only {balance}"),
//!         Err(UpdateError::Failed(failure)) if failure.is_retryable() => "nothing was applied: try again".to_owned(),
//!         Err(UpdateError::Failed(failure)) if failure.is_outcome_unknown() => {
//!             "perhaps applied, or still will be: read the account in 15 minutes, before anything else".to_owned()
//!         }
//!         Err(UpdateError::Failed(failure)) => failure.to_string(), // says what to correct
//!     }
//! }
//! ```
//!
//! # Traces
//!
//! Each send to `DynamoDB` is a `tracing` span named `send`, at `DEBUG` with the target `fencepost::send`. Its fields
//! are `operation`, `table`, `attempt`, `why` (why this send left) and `outcome` (the proof in its answer). The
//! functions give these spans to X-Ray. A service gives them to the subscriber that it uses. Where a refused write is
//! judged, an event at `DEBUG` with the target `fencepost::judge` has the `verdict`: `landed`, `never_applied`, `open`,
//! `unproved` or `corrupt`.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none (the default) | the exactly-once core: everything in the tables above |
//! | `json` | [`json`]: free-form JSON, kept exactly; switches on `serde_json/arbitrary_precision` for the whole build |
//! | `http` | [`http`]: requests, preconditions, problems and stored responses behind any framework; implies `json` |
//! | `axum` | extractors and answers for axum 0.8: a router that runs on Lambda, in a container and in a test; implies `http` |
//! | `lambda` | [`lambda`]: a router of axum behind an HTTP API, or a function behind a queue; implies `axum` |
//! | `lambda-without-tls` | the same, for development: its client reaches only endpoints without TLS |
//! | `testing` | the pure parts of the protocol, for property tests; not covered by semantic versioning |
//!
//! To test your own program against lost answers, throttling and conflicts, use the crate
//! [`fencepost-test`](https://docs.rs/fencepost-test). It needs no feature.
//!
//! # Contents, in reading order
//!
//! 1. `timestamp`, `clock`, `deadline`, `throttling`, `call`, `error`, `fencing_token`, `settings`: small files that
//!    depend on no later part. `settings` is how a table is set up beside its values.
//! 2. The package `fencepost-core`: the exactly-once protocol, without I/O. `format` defines the stored data, `condition` has
//!    all expression text, `edit` and `plan` make the request for an observed row. `judge` finds out from a row what became
//!    of a write, and `change` plays a change from its decision to the proof, with at most two sends in flight (`exchange`).
//! 3. `driver`: does what the machine says. `attempt` is the one loop of decisions, `drive` the one loop of sends. `send`
//!    sends one request and reads the proof in its answer. `row_cache` keeps the rows that the client saw last.
//! 4. [`Store`]: one client, and the settings for its requests.
//! 5. `table`: one item, by decisions or by edits; listings; and all rows, after a restore.
//!    `transact`: many items. `idempotency`: once per request. [`lease`]: timed claims with fencing tokens. [`lww`]:
//!    the newest instance wins.
//! 6. [`json`], [`http`], [`lambda`]: from an event to a response.
//!
//! Dependencies point in one direction only: `lambda -> http -> {lww, lease -> idempotency -> transact -> table} ->
//! Store -> driver -> fencepost-core`. Nothing below `http` knows HTTP, and nothing below `lambda` knows Lambda.
//!
#![cfg_attr(not(feature = "json"), doc = " [`json`]: https://docs.rs/fencepost/latest/fencepost/json/")]
#![cfg_attr(not(feature = "http"), doc = " [`http`]: https://docs.rs/fencepost/latest/fencepost/http/")]
#![cfg_attr(
    not(feature = "lambda-without-tls"),
    doc = " [`lambda`]: https://docs.rs/fencepost/latest/fencepost/lambda/"
)]

mod call;
mod check;
mod clock;
mod deadline;
mod driver;
mod error;
mod fencing_token;
#[cfg(feature = "http")]
pub mod http;
mod idempotency;
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "lambda-without-tls")]
pub mod lambda;
pub mod lease;
mod listing;
pub mod lww;
pub mod maintenance;
mod rejection;
mod settings;
mod store;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod throttling;
mod timestamp;
mod transact;

pub use call::{Call, Tally};
pub use check::{SchemaMismatch, TableSchema};
pub use clock::{Clock, Rng};
pub use deadline::Deadline;
pub use driver::send::{from_sdk, to_sdk};
pub use error::{Error, Failure, FailureKind, IdempotencyError, Place, PlacedItem, Source, UpdateError, VersionError};
pub use fencepost_core::{
    AttributeValue, Attributes, Bounds, Diff, Incarnation, InvalidValue, ItemVersion, Names, Number, RetryPolicy,
    Version, Versioned,
};
pub use fencepost_derive::Record;
pub use fencing_token::FencingToken;
pub use idempotency::{Answer, Idempotency, IdempotencyClaim, derived_id};
pub use listing::{Cursor, Index, InvalidCursor, Listed, Page, PageStream, Pages, Projection, Query, Sort};
pub use settings::{Settings, WithoutTtl};
pub use store::Store;
pub use table::field;
pub use table::{
    Condition, Edit, Edited, Exists, Key, KeyPart, NotEdited, NotEditedReason, Record, Table, Undecodable,
};
pub use throttling::ThrottlingLimit;
pub use timestamp::Timestamp;
pub use transact::{Attempt, Item, Reads};

/// What the derive macro names. Not covered by semantic versioning.
#[doc(hidden)]
pub mod __private {
    pub use serde::Serialize;
    pub use serde_dynamo::Serializer;

    pub trait Stored: Serialize + serde::de::DeserializeOwned {}

    impl<T: Serialize + serde::de::DeserializeOwned> Stored for T {}

    /// What serde wrote for a value.
    pub fn stored(
        written: Result<serde_dynamo::AttributeValue, serde_dynamo::Error>,
    ) -> Result<Option<serde_dynamo::AttributeValue>, crate::Source> {
        Ok(Some(written?))
    }
}

/// Compiles the examples of the README of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CratePage;

/// Compiles the example of the README of the repository.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct RepositoryPage;

/// Compiles the example of the adoption guide.
#[cfg(doctest)]
#[doc = include_str!("../../docs/adoption.md")]
struct AdoptionPage;
