//! Change shared state in `DynamoDB` exactly once, however many callers race and however often an answer is lost.
//!
//! A call observes an item, decides purely what follows from it, and writes on the condition that the
//! item is still what was observed. Each change leaves its id in the item, so a write whose answer was
//! lost is recognised when its resend is refused. Why that is exact is argued in `DESIGN.md`.
//!
//! # What is promised
//!
//! Whatever ends a call says what became of the change:
//!
//! | the call ends with | the change was applied |
//! |---|---|
//! | `Ok` | exactly once (`Keep`: there was nothing to apply) |
//! | [`Failure::OutcomeUnknown`] | at most once: it may have been, or may still be; read the item |
//! | any other error | not at all, and it never will be |
//!
//! | operation | changes | requests |
//! |---|---|---|
//! | [`Table::get`] | nothing; strongly consistent | 1 read |
//! | [`Table::create`] | a key that is free | 1 write; 2 where a deleted item left its tombstone |
//! | [`Table::update_with_retry`] | the item that is there, decided again after each conflict | 1 read + 1 write, + 1 write a conflict |
//! | [`Table::update_at_version`] | the version that the client has seen, and no other | 1 read + 1 write; 1 read when stale |
//! | [`Table::delete_at_version`] | the version that the client has seen, and no other | 1 write |
//! | [`Table::delete`] | the item that is there | 1 read + 1 write, + 1 write a conflict |
//! | [`Transactions::transact_with_retry`] | many items, all or none, decided again after each conflict | 1 read + 1 transaction, + 1 a conflict |
//! | [`Once::change`](once::Once::change) | the same, once for each idempotency key | the same; 1 read for a replay |
//! | [`Newest::register`](newest::Newest::register), [`Newest::delete`](newest::Newest::delete) | a key that instances follow each other under, in any order of arrival | 1 write |
//! | [`Leases::acquire`], [`Leases::renew`], [`Leases::release`] | a lease; what is written under its token is safe from whoever held it before | 1 write |
//! | [`Table::add_within`] | a number within bounds, whatever the version is; promises less than the others | 1 transaction |
//!
//! Resends come on top. The SDK makes none ([`Table::new`] switches its retries off), so all are seen and
//! judged here, and [`Call::tally`] counts the answers that were lost. The rest is the caller's part: whoever
//! else writes to the table raises `_version` by one each time, leaves our other attributes alone, and never
//! makes, replaces or deletes a row.
//!
//! # An example
//!
//! ```
//! use fencepost::error::UpdateError;
//! use fencepost::{Call, Decision, Failure, Key, Record, Table};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Account {
//!     balance: u64,
//! }
//!
//! impl Record for Account {
//!     const PARTITION_KEY: &'static str = "accountId";
//!     const ATTRIBUTES: &'static [&'static str] = &["balance"];
//! }
//!
//! async fn withdraw(accounts: &Table<Account>, id: &str, amount: u64, call: &Call) -> String {
//!     // Pure, so that it can be made again on another writer's result.
//!     let decide = |account: &Account| match account.balance.checked_sub(amount) {
//!         Some(_) if amount == 0 => Decision::Keep,
//!         Some(balance) => Decision::Put(Account { balance }),
//!         None => Decision::Refuse(account.balance),
//!     };
//!     match accounts.update_with_retry(&Key::from(id), call, decide).await {
//!         Ok(account) => format!("{} left, at version {}", account.value.balance, account.version()),
//!         Err(UpdateError::NotFound) => "there is no such account".to_owned(),
//!         Err(UpdateError::Refused(balance)) => format!("refused: there are only {balance}"),
//!         Err(UpdateError::Failed(failure)) => match failure {
//!             Failure::Contention { .. } | Failure::Unavailable { .. } => "nothing was applied: try again".to_owned(),
//!             Failure::OutcomeUnknown { .. } => "perhaps applied: read the account before anything else".to_owned(),
//!             Failure::Fenced => "nothing was applied: the lease is lost".to_owned(),
//!             Failure::TooLarge { .. } => "nothing was applied: the account has grown too large".to_owned(),
//!             Failure::CorruptItem { .. } | Failure::InvalidRecord { .. } | Failure::InvalidTransaction { .. } | Failure::Rejected { .. } => {
//!                 format!("nothing was applied, and repeating is useless: {failure}")
//!             }
//!         },
//!     }
//! }
//! ```
//!
//! A whole function around such a call is in `README.md`, and one behind an HTTP API in `functions/device-state`.
//!
//! # Contents, in reading order
//!
//! 1. [`version`]: which state of which row; [`Version`], [`Incarnation`], [`Versioned`].
//! 2. [`write_id`]: which change; the slots that remember the recent ones; [`judge`](write_id::judge): did mine land?
//! 3. [`table`]: [`Record`] (value to item and back), [`Key`], [`Table`], the diff of attributes.
//! 4. `row`, `condition`: the attributes that are ours; the only file with condition-expression text.
//! 5. `send`: one request, and what its answer proves about it.
//! 6. `prepare`, `resend`, `commit`: one change, its write sent until it is proved what became of it.
//! 7. [`update`]: the operations on one item; [`Decision`]. [`transact`]: those on many; [`Attempt`], [`Plan`].
//!    `counter`: [`Table::add_within`]. [`idempotency`]: which request, and the record that commits with its effect.
//!    [`newest`]: the newest instance wins. [`lease`]: who may do something until when; [`fencing_token`]: under which
//!    acquire of it.
//! 8. [`retry`], [`call`], [`ambient`]: how long to wait, when to stop, what it cost, where time and chance come from.
//! 9. [`error`]: how it can end, by outcome.
//! 10. [`json`], [`timestamp`]: free-form values and moments, kept exactly.
//! 11. [`request`], [`http`], [`once`]: what a client asked, the only file with HTTP status codes, and one effect for each
//!     idempotency key.
//! 12. [`client`], [`runtime`]: a function on Lambda.
//!
//! A file names only files of its own row or of rows to the right: `{runtime, client} → {http, request, once} → {update, transact,
//! counter, newest, lease, idempotency, commit, resend, prepare} → {table, row, condition, send} → {error, retry, write_id, fencing_token,
//! ambient, call} → {version, json, timestamp}`. So nothing below `http` and `request` knows of HTTP, and nothing below `runtime` of Lambda.

pub mod call;
pub mod clock;
pub mod error;
pub mod fencing_token;
#[cfg(feature = "http")]
pub mod http;
pub mod idempotency;
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod lease;
pub mod lww;
mod protocol;
pub mod retry;
mod store;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod timestamp;
pub mod transact;
pub mod version;

pub use call::{Call, Tally};
pub use clock::{Clock, Rng};
pub use error::{
    AddError, CreateError, DeleteError, Failure, IdempotencyError, Source, TransactError, UpdateError,
    VersionedUpdateError,
};
pub use fencing_token::FencingToken;
pub use idempotency::{Answer, Idempotency, IdempotencyClaim};
pub use lease::{Lease, LeaseTerms, Leases};
pub use lww::{LwwRecord, LwwTable};
pub use protocol::item::Attributes;
pub use retry::{Deadline, RetryPolicy};
pub use store::Store;
pub use table::{Decision, Key, KeyPart, Record, Table};
pub use transact::{Attempt, Plan, Reads, Transactions};
pub use version::{Incarnation, ItemVersion, Version, Versioned};
