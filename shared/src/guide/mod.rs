//! The guides: one for each task, from a first program to its limits.
//!
//! Begin with [`Table::update_with_retry`](crate::Table::update_with_retry), whose decision sees the whole item. These
//! guides are about other operations:
//!
//! - [`patterns`]: which operation is which everyday pattern.
//! - [`edits`]: for a change that needs no old value. Many writers of one item then rarely refuse each other.
//! - [`transactions`]: for items that must change together, and for requests that their caller may send again.
//! - [`leases`]: for work that only one process at a time may do, perhaps outside the table.
//!
//! Three are about the program around them:
//!
//! - [`errors`]: what to do after each outcome, and what traces show.
//! - [`testing`]: how to test your program against lost answers, throttling and conflicts, without a table.
//! - [`existing_tables`]: how to begin on a table with rows, and perhaps writers, that know nothing of this crate.
//!
//! For a whole task, such as a webhook, an outbox, a saga or a payment, take a recipe: `examples/README.md` of the crate
//! finds one by need, with its requests. Each has a test that plays a lost answer, a crash or a repeat.
//!
//! Two tasks need no guide. [`Table::update_at_version`](crate::Table::update_at_version) is for a client that says
//! which version it has seen, as an `If-Match` does. [`lww`](crate::lww) is for reports that arrive in any order, of
//! which the newest counts. The [first page](crate#what-it-costs) compares what each operation costs.

pub mod edits;
pub mod errors;
pub mod existing_tables;
pub mod leases;
pub mod patterns;
pub mod testing;
pub mod transactions;
