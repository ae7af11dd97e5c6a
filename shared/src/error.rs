//! Errors by outcome: what happened to the data, and what to do about it.
//!
//! `Display` says what to do and never prints the source. Walk [`std::error::Error::source`] for the whole chain.
//!
//! The outcomes of an operation are complete, because another outcome would need another operation. The causes in
//! [`Failure`] may grow, so it is `#[non_exhaustive]`. Ask [`Failure::is_retryable`] and
//! [`Failure::is_outcome_unknown`] instead of listing them.

use crate::version::Versioned;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use thiserror::Error as ThisError;

/// The cause below an error: an error of the SDK, or a sentence of this crate.
pub type Source = Box<dyn StdError + Send + Sync>;

/// Why a call failed. Every variant except [`Failure::OutcomeUnknown`] proves that **nothing was applied**.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Failure {
    /// Conflicts used up the attempts or the time. Repeat the call, because it may win.
    #[error(
        "nothing was applied: {attempts} attempts lost to other writers, or time ran out; repeat the call, it may win"
    )]
    Contention {
        /// The number of attempts (observe-decide-write rounds).
        attempts: u32,
    },
    /// Until the deadline, `DynamoDB` throttled, was not reachable, or did not answer a read; or no time was left to
    /// send the write. Repeat the call later.
    #[error("nothing was applied: DynamoDB could not be asked in time; repeat the call later")]
    Unavailable {
        /// The last answer, or the reason why there was none.
        source: Source,
    },
    /// Nothing proves whether a write was applied or still will be. Usually its answer was lost. Rarely it was refused, and
    /// a second copy may have been applied since. Read the item. If the change has an idempotency key, repeat it with the
    /// same key instead.
    #[error(
        "outcome unknown: an answer was lost, and nothing proves whether the write was applied; read the item to find out"
    )]
    OutcomeUnknown {
        /// The reason why the answer was lost.
        source: Source,
    },
    /// The lease of the change is no longer held: another holder acquired it, or it was released. Nothing will ever be
    /// applied under this token. Acquire the lease again before anything else.
    #[error("nothing was applied: the lease is no longer held; acquire it again before anything else")]
    Fenced,
    /// The item would exceed the size limit. Store less in it.
    #[error("nothing was applied: the item would take {bytes} bytes of at most {limit}; store less in it")]
    TooLarge {
        /// The size of the item in bytes, by the rules of `DynamoDB`, rounded up.
        bytes: usize,
        /// The size limit in bytes.
        limit: usize,
    },
    /// The row lacks attributes of this crate, breaks their rules, or does not decode. Another program writes to the
    /// table. Repair the row.
    #[error("nothing was applied: the stored item is not usable, repair it: {reason}")]
    CorruptItem {
        /// The problem with the row.
        reason: String,
    },
    /// A value encodes to attributes that its [`Record`](crate::Record) does not declare, or does not encode at all.
    /// This is a bug in the `Record`.
    #[error("nothing was applied: the value cannot be stored, correct its Record: {reason}")]
    InvalidRecord {
        /// The problem with the value.
        reason: String,
    },
    /// The steps of a transaction cannot be sent together, or do not fit the items that were read. This is a bug in the
    /// decision.
    #[error("nothing was applied: the transaction cannot be sent, correct the decision: {reason}")]
    InvalidTransaction {
        /// The problem with the steps.
        reason: String,
    },
    /// `DynamoDB` refused the request itself: access denied, no such table, invalid request. Correct the set-up,
    /// because repeating the call is useless.
    #[error("nothing was applied: DynamoDB rejected the request; correct the set-up, repeating is useless")]
    Rejected {
        /// The refusal.
        source: Source,
    },
}

impl Failure {
    /// Whether nothing was applied and the same call may succeed when it is made again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Failure::Contention { .. } | Failure::Unavailable { .. } => true,
            Failure::OutcomeUnknown { .. }
            | Failure::Fenced
            | Failure::TooLarge { .. }
            | Failure::CorruptItem { .. }
            | Failure::InvalidRecord { .. }
            | Failure::InvalidTransaction { .. }
            | Failure::Rejected { .. } => false,
        }
    }

    /// Whether the change may have been applied, or may still be. If so, read the item before anything else.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Failure::OutcomeUnknown { .. })
    }
}

/// Why an operation that may be refused changed nothing. `R` is the reason of a refusal: that of a decision is made by the
/// program, and those of this crate stand beside their operations. `Display` shows the reason as it is.
#[derive(Debug, ThisError)]
pub enum Error<R = Infallible> {
    /// It was refused, for this reason. Nothing was written.
    #[error("{0}")]
    Refused(R),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Error::Failed(failure) = error;
        failure
    }
}

/// Why [`create`](crate::Table::create) did not create.
#[derive(ThisError)]
pub enum CreateError<T> {
    /// The key is taken by this item.
    #[error("nothing was created: the key is taken, by an item at version {}", .0.version())]
    Exists(Box<Versioned<T>>),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why [`update_with_retry`](crate::Table::update_with_retry) did not update.
#[derive(Debug, ThisError)]
pub enum UpdateError<R> {
    /// The key has no item. Nothing was written.
    #[error("nothing was updated: the key has no item")]
    NotFound,
    /// The decision refused, for this reason. Nothing was written.
    #[error("nothing was updated: the decision refused: {0:?}")]
    Refused(R),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why [`update_at_version`](crate::Table::update_at_version) did not update.
#[derive(ThisError)]
pub enum VersionedUpdateError<T, R> {
    /// The key has no item. Nothing was written.
    #[error("nothing was updated: the key has no item")]
    NotFound,
    /// The item is at another version now. Nothing was written. Decide again on this item.
    #[error("nothing was updated: the item is at version {} by now; decide again on that version", .0.version())]
    Conflict(Box<Versioned<T>>),
    /// The decision refused, for this reason. Nothing was written.
    #[error("nothing was updated: the decision refused: {0:?}")]
    Refused(R),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why [`delete_at_version`](crate::Table::delete_at_version) or [`delete`](crate::Table::delete) did not delete.
#[derive(ThisError)]
pub enum DeleteError<T> {
    /// The key has no item, or no longer has one. Nothing was written.
    #[error("nothing was deleted: the key has no item")]
    NotFound,
    /// The item is at another version now. Nothing was written. Decide again on this item.
    #[error("nothing was deleted: the item is at version {} by now; decide again on that version", .0.version())]
    Conflict(Box<Versioned<T>>),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why [`Idempotency::change`](crate::idempotency::Idempotency::change) returned no answer.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum IdempotencyError<R> {
    /// The key was used for a request with another payload. Nothing was written. Use a new key.
    #[error("nothing was changed: the idempotency key belongs to another request; use a new key")]
    KeyReused,
    /// The decision refused, for this reason. Nothing was written, and the key stays open.
    #[error("nothing was changed: the decision refused: {0:?}")]
    Refused(R),
    /// See [`Failure`]. It speaks about this call only. An earlier copy of the request, whose outcome was unknown, may
    /// have been applied. Repeat the request with the same claim: that is always safe and finds out.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why [`add`](crate::Table::add) did not add.
#[derive(ThisError)]
#[non_exhaustive]
pub enum AddError<T> {
    /// The key has no item. Nothing was written.
    #[error("nothing was added: the key has no item")]
    NotFound,
    /// The result would be outside the bounds. Nothing was written.
    #[error("nothing was added: the result would be outside the bounds (the item is at version {})", .0.version())]
    OutOfRange(Box<Versioned<T>>),
    /// The item has no number there. Nothing was written.
    #[error("nothing was added: the item has no such number (it is at version {})", .0.version())]
    NotANumber(Box<Versioned<T>>),
    /// An attribute is not as the add demands. Nothing was written.
    #[error("nothing was added: an attribute is not as demanded (the item is at version {})", .0.version())]
    NotAsDemanded(Box<Versioned<T>>),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why a [`Query`](crate::table::Query) returned no page.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum QueryError {
    /// The cursor is not one of this query: it is damaged or made up, or it belongs to another table, index, partition,
    /// order or bound of the sort key. Begin again without a cursor.
    #[error("nothing was read: the cursor does not belong to this query; begin again without a cursor")]
    InvalidCursor,
    /// See [`Failure`]. If it [is retryable](Failure::is_retryable), ask for the same page again.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// An error that holds an item shows only the version of the item in `Debug`. Values may be secret, and need not be
/// `Debug`.
macro_rules! debug_by_version {
    ($error:ident<T $(, $reason:ident)?> { $($unit:ident)* ; $($item:ident)* ; $($other:ident)* }) => {
        impl<T $(, $reason: fmt::Debug)?> fmt::Debug for $error<T $(, $reason)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($error::$unit => f.write_str(stringify!($unit)),)*
                    $($error::$item(item) => f.debug_tuple(stringify!($item)).field(&item.at).finish(),)*
                    $($error::$other(other) => f.debug_tuple(stringify!($other)).field(other).finish(),)*
                }
            }
        }
    };
}

debug_by_version!(CreateError<T> { ; Exists ; Failed });
debug_by_version!(VersionedUpdateError<T, R> { NotFound ; Conflict ; Refused Failed });
debug_by_version!(DeleteError<T> { NotFound ; Conflict ; Failed });
debug_by_version!(AddError<T> { NotFound ; OutOfRange NotANumber NotAsDemanded ; Failed });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{Incarnation, ItemVersion, Version};

    /// A value without `Debug` and without `Display`.
    struct Secret;

    fn current() -> Versioned<Secret> {
        let version = Version::new(7).expect("small");
        Versioned { value: Secret, at: ItemVersion { version, incarnation: Incarnation::from_bytes([1; 8]) } }
    }

    #[test]
    fn every_error_converts_with_a_question_mark_whatever_the_value_is() {
        fn chained<E: StdError + Send + Sync + 'static>(error: E) -> Result<(), Source> {
            Err(error)?
        }
        let sentences = [
            chained(CreateError::Exists(Box::new(current()))),
            chained(UpdateError::Refused("no")),
            chained(VersionedUpdateError::<Secret, &str>::Conflict(Box::new(current()))),
            chained(DeleteError::Conflict(Box::new(current()))),
            chained(Error::Refused("no")),
            chained(IdempotencyError::<&str>::KeyReused),
            chained(AddError::OutOfRange(Box::new(current()))),
            chained(QueryError::InvalidCursor),
        ]
        .map(|refused| refused.expect_err("an error").to_string());
        for sentence in sentences {
            assert!(sentence.starts_with("nothing was "), "{sentence}");
        }
    }

    #[test]
    fn a_failure_shows_its_source_through_the_operations_error_and_says_what_to_do() {
        let error = UpdateError::<&str>::Failed(Failure::Unavailable { source: "timed out".into() });
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("timed out"));
        assert!(error.to_string().ends_with("repeat the call later"));
    }

    #[test]
    fn only_what_was_not_applied_for_now_is_retryable_and_only_a_lost_answer_is_unknown() {
        let source = || -> Source { "x".into() };
        for (failure, retryable, unknown) in [
            (Failure::Contention { attempts: 1 }, true, false),
            (Failure::Unavailable { source: source() }, true, false),
            (Failure::OutcomeUnknown { source: source() }, false, true),
            (Failure::Fenced, false, false),
            (Failure::Rejected { source: source() }, false, false),
        ] {
            assert_eq!((failure.is_retryable(), failure.is_outcome_unknown()), (retryable, unknown), "{failure}");
        }
    }
}
