//! Small errors by outcome: what happened to the data, and what the caller can do about it.
//!
//! `Display` never prints the source; walk [`std::error::Error::source`] for the whole chain.

use crate::version::Versioned;
use std::error::Error;
use std::fmt;

/// What lies under an error: the SDK's error, or a sentence of ours.
pub type Source = Box<dyn Error + Send + Sync>;

/// Why a call gave no answer of its own kind. Every variant but [`Failure::OutcomeUnknown`] proves
/// that **nothing was applied**.
#[derive(Debug)]
pub enum Failure {
    /// Attempts or time were used up by conflicts. The same call may win: repeat it.
    Contention {
        /// How many observe-decide-write rounds were made.
        attempts: u32,
    },
    /// Until the deadline, `DynamoDB` throttled, could not be reached, or did not answer a read; or no time was
    /// left to send the write. Repeat the call later.
    Unavailable {
        /// The last answer, or what stood in its place.
        source: Source,
    },
    /// A write was sent, its answer was lost, and it cannot be proved whether it was applied, or
    /// still will be. Read the item, or repeat with an idempotency key where there is one.
    OutcomeUnknown {
        /// What stood in the place of the lost answer.
        source: Source,
    },
    /// The lease that the change was to be made under is not held any more: somebody else acquired it, or it was
    /// released. Nothing was applied, and under this lease nothing ever will be.
    Fenced,
    /// The item would be larger than an item may be. Nothing was written.
    TooLarge {
        /// Its size in bytes, by `DynamoDB`'s rules, rounded up.
        bytes: usize,
        /// The most that it may be.
        limit: usize,
    },
    /// The row does not carry this crate's attributes, or breaks their rules, or does not decode.
    /// Somebody else writes to the table; repair the row.
    CorruptItem {
        /// What is wrong with it.
        reason: String,
    },
    /// A value encodes to attributes that its [`Record`](crate::Record) does not declare, or not at all: a bug.
    InvalidRecord {
        /// What is wrong with it.
        reason: String,
    },
    /// The steps of a transaction cannot be sent together, or do not fit what was seen: a bug in the decision.
    InvalidTransaction {
        /// What is wrong with them.
        reason: String,
    },
    /// `DynamoDB` refused the request itself (denied, no such table, invalid). Repeating is useless.
    Rejected {
        /// The refusal.
        source: Source,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Contention { attempts } => {
                write!(f, "nothing was applied: {attempts} attempts each lost to another writer, or time ran out")
            }
            Failure::Unavailable { .. } => f.write_str("nothing was applied: the table could not be asked in time"),
            Failure::OutcomeUnknown { .. } => {
                f.write_str("outcome unknown: an answer was lost and it cannot be proved whether the write was applied")
            }
            Failure::Fenced => f.write_str("nothing was applied: the lease is not held any more"),
            Failure::TooLarge { bytes, limit } => {
                write!(f, "the item would take {bytes} bytes, more than the {limit} that it may")
            }
            Failure::CorruptItem { reason } => write!(f, "the stored item is not usable: {reason}"),
            Failure::InvalidRecord { reason } => write!(f, "the value cannot be stored: {reason}"),
            Failure::InvalidTransaction { reason } => write!(f, "the transaction cannot be sent: {reason}"),
            Failure::Rejected { .. } => f.write_str("nothing was applied: the table rejected the request"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Failure::Unavailable { source } | Failure::OutcomeUnknown { source } | Failure::Rejected { source } => {
                Some(source.as_ref())
            }
            Failure::Contention { .. }
            | Failure::Fenced
            | Failure::TooLarge { .. }
            | Failure::CorruptItem { .. }
            | Failure::InvalidRecord { .. }
            | Failure::InvalidTransaction { .. } => None,
        }
    }
}

/// How [`create`](crate::Table::create) did not create.
#[derive(Debug)]
pub enum CreateError<T> {
    /// The key is taken; this is what is there.
    Exists(Box<Versioned<T>>),
    /// See [`Failure`].
    Failed(Failure),
}

/// How [`update_with_retry`](crate::Table::update_with_retry) did not update.
#[derive(Debug)]
pub enum UpdateError<R> {
    /// Nothing is there. Nothing was written.
    NotFound,
    /// The decision was no, for this reason. Nothing was written.
    Refused(R),
    /// See [`Failure`].
    Failed(Failure),
}

/// How [`update_at_version`](crate::Table::update_at_version) did not update.
#[derive(Debug)]
pub enum VersionedUpdateError<T, R> {
    /// Nothing is there. Nothing was written.
    NotFound,
    /// The item is at another version by now: this one. Nothing was written.
    Conflict(Box<Versioned<T>>),
    /// The decision was no, for this reason. Nothing was written.
    Refused(R),
    /// See [`Failure`].
    Failed(Failure),
}

/// How a delete did not delete.
#[derive(Debug)]
pub enum DeleteError<T> {
    /// Nothing is there (any more). Nothing was written.
    NotFound,
    /// The item is at another version by now: this one. Nothing was written.
    Conflict(Box<Versioned<T>>),
    /// See [`Failure`].
    Failed(Failure),
}

/// How [`transact_with_retry`](crate::Transactions::transact_with_retry) did not change anything.
#[derive(Debug)]
pub enum TransactError<R> {
    /// The decision was no, for this reason. Nothing was written.
    Refused(R),
    /// See [`Failure`].
    Failed(Failure),
}

/// How [`add_within`](crate::Table::add_within) did not add.
#[derive(Debug)]
pub enum AddError<T> {
    /// Nothing is there. Nothing was written.
    NotFound,
    /// The result would be outside the bounds, or the item has no such number. Nothing was written.
    OutOfRange(Box<Versioned<T>>),
    /// See [`Failure`].
    Failed(Failure),
}

impl<R> From<Failure> for TransactError<R> {
    fn from(failure: Failure) -> Self {
        TransactError::Failed(failure)
    }
}

impl<T> From<Failure> for AddError<T> {
    fn from(failure: Failure) -> Self {
        AddError::Failed(failure)
    }
}

impl<T> From<Failure> for CreateError<T> {
    fn from(failure: Failure) -> Self {
        CreateError::Failed(failure)
    }
}

impl<R> From<Failure> for UpdateError<R> {
    fn from(failure: Failure) -> Self {
        UpdateError::Failed(failure)
    }
}

impl<T, R> From<Failure> for VersionedUpdateError<T, R> {
    fn from(failure: Failure) -> Self {
        VersionedUpdateError::Failed(failure)
    }
}

impl<T> From<Failure> for DeleteError<T> {
    fn from(failure: Failure) -> Self {
        DeleteError::Failed(failure)
    }
}
