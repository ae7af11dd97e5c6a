//! Leases: one process at a time does the work, and a process that was replaced changes nothing.
//!
//! [`Leases::while_held`](crate::lease::Leases::while_held) acquires a lease, does the work, renews the lease
//! meanwhile, and releases it. The work gets a [`FencingToken`](crate::FencingToken) and makes its changes under it:
//!
//! ```
//! use fencepost::lease::LeaseTerms;
//! use fencepost::{Error, Reads, Record, Store, Table};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize, Record)]
//! #[record(key = "reportId")]
//! struct Report { pages: u32 }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = fencepost_test::Engine::embedded(&[("Leases", "leaseKey"), ("Reports", "reportId")]);
//! # let store = Store::new(&engine.client());
//! let (leases, reports): (_, Table<Report>) = (store.leases("Leases"), store.table("Reports"));
//! let written = leases.while_held("nightly-report", "host-1", LeaseTerms::default(), async |token| {
//!     let mut reads = Reads::new();
//!     let (held, report) = (reads.lease("lease", &token), reads.item("report", &reports, "r-1"));
//!     let written: Result<_, Error> = store.transact_with_retry(reads, |attempt| {
//!         attempt.require(held)?; // applied only while the lease is held under this token
//!         Ok(attempt.put_if_absent(report, &Report { pages: 3 })?)
//!     }).await;
//!     written?;
//!     // The other way, for one item: it refuses every token lower than the highest that it has seen.
//!     reports.fenced_by(&token).edit("r-1", &Report::FIELDS.pages.add(1, ..)).await?;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! });
//! written.await??;
//! # assert_eq!(reports.get("r-1").await?.map(|report| report.pages), Some(4));
//! # assert!(leases.get("nightly-report").await?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! **The lease alone protects no write.** [`FencingToken`](crate::FencingToken) says why. Choose how a replaced holder
//! is stopped:
//!
//! | fence | excludes | needs |
//! |---|---|---|
//! | [`Attempt::require`](crate::Attempt::require) | every change after the lease was released or acquired again | a transaction |
//! | [`Table::fenced_by`](crate::Table::fenced_by) | every change after the first write of the next holder to this item | all writers of the item to use it |
//!
//! Nothing fences an effect outside `DynamoDB`, such as a mail that is sent, unless its receiver compares tokens too.
//! The page of [`lease`](crate::lease) says which times keep two holders apart, and what each operation costs.
//!
//! If the lease is lost, the work is cancelled at its next `await`, and the call ends as
//! [`Unfinished`](crate::lease::Unfinished). A write that was in flight then has an unknown outcome. Under `require`,
//! it was applied before the lease was lost or never will be.
//!
//! A service that leads for long uses [`Leases::campaign`](crate::lease::Leases::campaign). It waits for the lease, and a
//! signal ends the work and passes the lease on. The example `leader` of the crate is such a service:
//!
//! ```no_run
//! # async fn lead(leases: fencepost::lease::Leases) -> Result<(), Box<dyn std::error::Error>> {
//! use fencepost::lease::LeaseTerms;
//!
//! let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
//! leases.campaign("controller", "host-1", LeaseTerms::default(), stop, async |token| {
//!     // Work under the token.
//! }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Code that is no future, or that begins and ends its work in several places, [holds](crate::lease::Leases::hold) the
//! lease as a value: [`Held`](crate::lease::Held) has the token, and its `lost()` can be awaited.
//!
//! | what happens | when the next holder can begin |
//! |---|---|
//! | the work ends, or `stop` is ready | At once. What the work has given to `spawn_blocking` is not cancelled: it goes on beside the next holder, so write under the token there too. |
//! | the future is dropped, or the work panics | at once, because the task that renews the lease releases it. If the runtime is shut down first, see below. |
//! | the process is killed, or its machine is lost | when the lease has ended and the clock skew is over |
//! | the process is frozen | likewise. When it wakes up, the work is not polled any more. |
//! | the work blocks its thread | When the lease has ended, if the block is longer: nothing may renew it meanwhile, also on a runtime with several threads, whose timers may wait for the blocked one. The answer is then `Lost` if another holder had it, and `Unknown` if none had. `tokio::task::spawn_blocking` and `block_in_place` keep the runtime going. |
//!
//! `stop` ends the work at an `await`. For a worker that finishes its job first, let the work look at a flag of yours
//! between two jobs, and give a `stop` that never is ready. While it waits for the lease, dropping the future is as good.
//!
//! On Lambda, where nothing runs between two invocations, and for a holder in several processes, acquire and renew by
//! hand: [`Leases`](crate::lease::Leases) shows how.
