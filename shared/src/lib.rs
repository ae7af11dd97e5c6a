//! Change shared state in `DynamoDB` exactly once, however many callers race and however often an answer is lost.
//!
//! A call reads an item, decides by a function of yours, and writes on the condition that the item is unchanged; after
//! a conflict, it decides again. Each change leaves its id in the item, so a write whose answer was lost is sent again,
//! and the item itself shows whether the first send was applied.
//!
//! This program needs no table: the crate [`fencepost-test`](https://docs.rs/fencepost-test) has an embedded `DynamoDB`.
//! It belongs under `[dev-dependencies]`, and the program into `examples`. In production, give [`Store::new`] a client of
//! the AWS SDK.
//!
//! ```
//! use fencepost::{Record, Store, Table};
//! use fencepost_test::Engine; // [dev-dependencies] fencepost-test
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Record)]
//! #[record(key = "accountId")]
//! struct Account { balance: u64 }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::embedded(&[("Accounts", "accountId")]);
//!     let accounts: Table<Account> = Store::new(&engine.client()).table("Accounts");
//!     accounts.create("a-1", &Account { balance: 100 }).await?;
//!
//!     // Decides on the whole item. The closure is pure, because it runs again after a conflict.
//!     let withdraw = |account: &Account| match account.balance.checked_sub(30) {
//!         Some(balance) => Ok(Account { balance }),
//!         None => Err("there is too little"), // nothing is written
//!     };
//!     let account = accounts.update_with_retry("a-1", withdraw).await?;
//!     assert_eq!(account.balance, 70);
//!
//!     // Needs neither the old value nor the version.
//!     accounts.edit("a-1", &Account::FIELDS.balance.add(5, 0..=1_000)).await?;
//!     let account = accounts.get("a-1").await?;
//!     assert_eq!(account.map(|account| account.balance), Some(75));
//!     Ok(())
//! }
//! ```
//!
//! The [guides](guide) say which operation to take, and go on from here: [everyday patterns](guide::patterns), [edits](guide::edits),
//! [transactions](guide::transactions) and idempotency keys, [leases](guide::leases), [errors](guide::errors) and
//! traces, [tests](guide::testing), and [tables that are there already](guide::existing_tables). In the repository,
//! `README.md` of the crate lists tables and permissions, `docs/operations.md` and `docs/troubleshooting.md` are for
//! operators, and `docs/proof.md` says what was tested.
//!
//! # What is promised
//!
//! Every call tells you what happened:
//!
//! | the call ends with | the change was applied |
//! |---|---|
//! | `Ok` | exactly once; a decision that kept the item applied nothing |
//! | [`FailureKind::OutcomeUnknown`], which says what to do then | at most once: it may have been, or may still be |
//! | any other error | not at all, and it never will be |
//!
//! A second copy of a request, which the network delivers after the call, can still break the last line. `DESIGN.md`
//! argues why the promises hold. It lists these cases under "What is not promised", with the settings of a table that
//! weaken the first line. [`lww`] and [`lease`] say where they promise less.
//!
//! # What it costs
//!
//! Reads are strongly consistent, except on a global index.
//!
//! | operation | what it changes | requests |
//! |---|---|---|
//! | [`Table::get`] | nothing | 1 read |
//! | [`Table::get_many`] | nothing | 1 read per 100 keys |
//! | [`Table::query`], [`Table::query_index`], [`Table::scan`] | nothing | 1 read per page of at most 1 MB, + up to 9 where a page with a limit meets tombstones (rows of deleted items) or what its filter leaves out |
//! | [`Query::count`] | nothing | 1 read per MB |
//! | [`Table::create`] | a key without an item | 1 write; 2 on a tombstone |
//! | [`Table::update_with_retry`] | the item, decided again after each conflict | 1 read + 1 write, + 1 write per conflict, mostly with 1 read before it, + 1 write for a ticket where others wait; 1 read if it is kept or refused |
//! | the same on a [remembered](Table::remembering_items) item | the item, decided on as it was seen last | 1 write, + 1 write if it has moved on, then as above |
//! | [`Table::upsert_with_retry`] | the item, or a key without one | as `update_with_retry` |
//! | [`Table::update_at_version`] | the version that the client has seen | 1 read + 1 write; 1 read if that is stale |
//! | [`Table::delete_at_version`] | the version that the client has seen | 1 write; 1 read + 1 write if another program wrote the row |
//! | [`Table::delete`], [`Table::delete_returning`] | the item at any version | 1 read + 1 write, then as above |
//! | [`Table::edit`] | values under conditions, at any version | 1 write; 1 read + 1 write if this client has not edited the item before; [sometimes one more](Table::edit) |
//! | [`Store::transact_with_retry`] | many items, all or none, decided again after each conflict | 1 read + 1 transaction, + 1 per conflict, + 1 write per burn |
//! | the same with [`Attempt::edit_blind`] on [remembered](Reads::remembered) items | many items, all or none; edits demand no version | 1 transaction, + 1 per conflict or refused edit |
//! | the same, if it creates one item and takes from others that [hold](Holds) parts | the same, but readers may see the numbers fall before the item is there | 1 read + 1 write per item, + up to 2 reads of each where others crowd; each hold rides with a later write, or costs 1 read + 1 write |
//! | [`Table::get_with_held`] | nothing; shows what is [held](Holds), too | 1 read |
//! | [`Table::settle`] | the holds of an item whose orders never came | 1 read; with holds, some reads, and at most 2 writes for each |
//! | [`Table::settle_all`] | the same for all items of a table | 1 read per MB, at half the price; then as `settle` for each item with holds |
//! | [`Idempotency::change`] | many items, once per request | the same, + 1 read for a refusal; 1 read for a replay |
//! | [`Store::check`] | nothing; compares the table with its `Record` at the start of a program | 2 reads, of its description and of its TTL |
//! | [`LwwTable::register`](lww::LwwTable::register), [`LwwTable::delete`](lww::LwwTable::delete) | a key whose newest instance wins | 1 write |
//! | [`Leases::acquire`](lease::Leases::acquire), [`Leases::renew`](lease::Leases::renew), [`Leases::release`](lease::Leases::release) | a lease and its fencing token | 1 write |
//!
//! A burn is a write that excludes an attempt which might still be applied. A lost answer or a throttled request costs
//! one more send. The SDK sends nothing again by itself, because a [`Store`] switches its retries off. So this crate
//! sees and judges every lost answer, and [`Call::tally`] counts them.
//!
//! An operation takes at most [`Store::TIME_LIMIT`], or the limit that the store was given. Operations that share the
//! time left, as in one invocation of a function, share a [`Call`]: see [`Store::in_call`].
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none (the default) | everything above |
//! | `json` | [`json`]: free-form JSON, kept exactly; switches on `serde_json/arbitrary_precision` for the whole build |
//! | `http` | [`http`]: requests, preconditions, problems and stored responses behind any framework; implies `json` |
//! | `axum` | extractors and answers for axum 0.8; implies `http` |
//! | `lambda` | [`lambda`]: a router of axum behind an HTTP API, or a function behind a queue; implies `axum` |
//! | `lambda-without-tls` | the same, for development: its client reaches only endpoints without TLS |
//! | `maintenance` | for the operators of a table: [`maintenance`] explains a row and runs over all rows |
//! | `uuid` | ids of the crate `uuid` as [keys](KeyPart) |
//! | `testing` | the pure parts of the protocol, for property tests; not covered by semantic versioning |
//!
#![cfg_attr(
    not(feature = "maintenance"),
    doc = " [`maintenance`]: https://docs.rs/fencepost/latest/fencepost/maintenance/"
)]
#![cfg_attr(not(feature = "json"), doc = " [`json`]: https://docs.rs/fencepost/latest/fencepost/json/")]
#![cfg_attr(not(feature = "http"), doc = " [`http`]: https://docs.rs/fencepost/latest/fencepost/http/")]
#![cfg_attr(
    not(feature = "lambda-without-tls"),
    doc = " [`lambda`]: https://docs.rs/fencepost/latest/fencepost/lambda/"
)]

// The files in reading order:
//
// 1. `timestamp`, `clock`, `deadline`, `throttling`, `call`, `error`, `fencing_token`, `settings`: small files that
//    depend on no later part. `settings` is how a table is set up beside its values.
// 2. The package `fencepost-core`: the exactly-once protocol, without I/O. `format` defines the stored data,
//    `condition` has all expression text, `edit` and `plan` make the request for an observed row. `judge` finds out
//    from a row what became of a write, and `change` plays a change from its decision to the proof, with at most two
//    sends in flight (`exchange`).
// 3. `driver`: does what the machine says. `attempt` is the one loop of decisions, `drive` the one loop of sends.
//    `send` sends one request and reads the proof in its answer. `row_cache` keeps the rows that the client saw last.
// 4. `store`: one client, and the settings for its requests.
// 5. `table`: one item, by decisions or by edits. `listing`: the items of a partition. `maintenance`: all rows, after a
//    restore. `transact`: many items. `idempotency`: once per request. `lease`: timed claims with fencing tokens.
//    `lww`: the newest instance wins.
// 6. `json`, `http`, `lambda`: from an event to a response.
//
// Dependencies point in one direction only: `lambda -> http -> {lww, lease -> idempotency -> transact -> table} ->
// store -> driver -> fencepost-core`. Nothing below `http` knows HTTP, and nothing below `lambda` knows Lambda.

mod call;
mod check;
mod clock;
mod deadline;
mod driver;
mod error;
mod fencing_token;
pub mod guide;
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
#[cfg(feature = "maintenance")]
pub mod maintenance;
mod observe;
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
pub use listing::{Cursor, Index, InvalidCursor, Items, Listed, Page, Pages, Partition, Projection, Query, Sort};
pub use observe::{Ending, Observed};
pub use settings::{Settings, WithoutTtl};
pub use store::Store;
pub use table::field;
pub use table::{
    Condition, Decision, Edit, Edited, Exists, HoldSweep, Holds, Key, KeyPart, NotEdited, NotEditedReason, Record,
    Table, Undecodable, Upserted,
};
pub use throttling::ThrottlingLimit;
pub use timestamp::Timestamp;
pub use transact::{Attempt, Item, Reads};

/// What the derive macro names. Not covered by semantic versioning.
#[doc(hidden)]
pub mod __private {
    use crate::table::field::not_read;
    pub use crate::table::field::{Written, check_same};
    pub use serde::{Deserialize, Serialize};
    pub use serde_dynamo::Serializer;
    use serde_dynamo::{AttributeValue, Deserializer, Error};

    pub trait Stored: Serialize + serde::de::DeserializeOwned {}

    impl<T: Serialize + serde::de::DeserializeOwned> Stored for T {}

    /// Refuses a record that no table can have where it is derived, and not only where its first table is made.
    pub const fn checked<T: crate::Record>() {
        let _ = crate::table::handle::layout_of::<T>();
    }

    /// What serde wrote for a value.
    pub fn written(written: Result<AttributeValue, Error>) -> Result<AttributeValue, crate::Source> {
        Ok(written?)
    }

    pub fn deserializer(written: &AttributeValue) -> Deserializer {
        Deserializer::from_attribute_value(written.clone())
    }

    /// What serde read back.
    pub fn read<V>(read: Result<V, Error>) -> Result<V, crate::Source> {
        read.map_err(|error| not_read(&error))
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
