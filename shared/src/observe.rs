//! [`Observed`]: what the observer of a store is told of each operation.

use crate::call::Tally;
use crate::error::{Failure, Place};
use std::fmt;
use std::time::Duration;

/// An operation that has ended: a change with all its attempts, or a read. A listing is one for each page.
///
/// An operation that consists of several, such as waiting for a lease, is told as these.
#[derive(Debug)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The operation, and its items.
    pub place: &'a Place,
    /// How it ended.
    pub ending: Ending<'a>,
    /// The requests that it sent, reads included.
    pub requests: u32,
    /// Its cost, which also counts in the [`Call`](crate::Call) that it belongs to.
    pub tally: Tally,
    /// The time that it took.
    pub took: Duration,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Ending<'a> {
    /// Its change was applied.
    Applied,
    /// It was answered without a change: a read, a decision that kept the item, or a refusal.
    Answered,
    /// It failed.
    Failed(&'a Failure),
    /// Its future was dropped, so nobody was told. A change may have been applied, or may still be.
    Dropped,
}

impl fmt::Display for Ending<'_> {
    /// One word: `applied`, `answered`, `failed`, `unknown` or `dropped`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::Applied => "applied",
            Ending::Answered => "answered",
            Ending::Failed(failure) if failure.is_outcome_unknown() => "unknown",
            Ending::Failed(_) => "failed",
            Ending::Dropped => "dropped",
        })
    }
}

pub(crate) type Observer = dyn Fn(&Observed<'_>) + Send + Sync;
