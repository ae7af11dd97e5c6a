//! Errors by outcome: the state of the data, and the remedy.

use crate::throttling::{Throttled, ThrottlingLimit};
use aws_sdk_dynamodb::error::ErrorMetadata;
use fencepost_core::edit::brief;
use fencepost_core::format::Unwritable;
use fencepost_core::{Attributes, InvalidValue, Versioned};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use thiserror::Error as ThisError;

/// The cause below an error: an error of the SDK or a sentence of this crate.
pub type Source = Box<dyn StdError + Send + Sync>;

/// A call failed. Every [kind](FailureKind) except [`FailureKind::OutcomeUnknown`] proves that **nothing was applied**.
///
/// `Display` names the remedy, what a client lacks or `DynamoDB` said of a request that it rejected, and the
/// [place](Place). The kinds may grow: ask [`Failure::is_retryable`] and [`Failure::is_outcome_unknown`] instead of listing
/// them.
///
/// Walk [`source`](std::error::Error::source) for the whole chain. It is the SDK's, and like `Debug` it may show the whole
/// request with the values in it, such as that of a client whose endpoint lacks its `http://`. So log only `Display` where
/// values are secret: it shows the innermost cause.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// What failed.
    pub kind: FailureKind,
    /// The operation that failed, and its items. `None` where there is none, such as of a decision's own mistake.
    pub place: Option<Box<Place>>,
}

/// The place of a failure: an operation, and the items that it was about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Place {
    /// The operation that failed, such as `edit`. A change by `Idempotency` is a `transact_with_retry`.
    pub operation: &'static str,
    /// The table and the key of each item. Only the first few items of a transaction are shown by `Display`.
    pub items: Vec<PlacedItem>,
}

/// An item that an operation was about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PlacedItem {
    /// The name of the table.
    pub table: String,
    /// The names and the values of the key, if the operation was about one item.
    pub key: Attributes,
}

/// Why a call failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum FailureKind {
    /// Conflicts used up the attempts or the time. Repeat the call, because it may win.
    #[error(
        "nothing was applied: {attempts} attempts lost to other writers, or time ran out; repeat the call, it may win"
    )]
    Contention {
        /// The number of attempts (observe-decide-write rounds).
        attempts: u32,
    },
    /// `DynamoDB` throttled until the deadline, or for so long that this client waits for other answers first; or it was
    /// not reachable, or did not answer a read; or no time was left to send the write. Repeat the call later.
    #[error(
        "nothing was applied: DynamoDB did not carry out the request in time ({}); repeat the call later, and if no call ever \
         succeeds, correct what this names: the endpoint, the network, the credentials, the time limit or the capacity",
        innermost(source)
    )]
    Unavailable {
        /// The last answer, or the reason for its absence.
        source: Source,
    },
    /// Nothing proves whether a write was applied or still will be. Usually its answer was lost. In rare cases it was
    /// refused, but a second copy may have been applied since.
    ///
    /// Repeat the change under its idempotency key, if it has one, or if it is safe to repeat by itself. Otherwise wait 15
    /// minutes, and then read the item. Reading it earlier does not settle the outcome, because a late copy of the write may
    /// still be applied, and whoever repeats the change may apply it twice. After 15 minutes every signature has expired, so
    /// the item is settled.
    #[error(
        "outcome unknown: nothing proves whether the write was applied ({}); repeat the call under its idempotency key, or \
         wait 15 minutes and then read the item",
        innermost(source)
    )]
    OutcomeUnknown {
        /// The reason why nothing is proved.
        source: Source,
    },
    /// The lease of the change was released or acquired by another holder. Nothing will ever be applied under this
    /// token. Acquire the lease again before anything else.
    #[error("nothing was applied: the lease is no longer held; acquire it again before anything else")]
    Fenced,
    /// An item of a transaction refused the edit: it is not there, or does not meet the conditions of the edit. Refuse, or
    /// decide otherwise, because the same edit is refused as long as the item stays as it is.
    #[error("nothing was applied: {name} refused the edit: {reason}; change the edit or the item")]
    EditRefused {
        /// The name of the item in its [`Reads`](crate::Reads).
        name: String,
        /// Why it refused the edit.
        reason: String,
    },
    /// Parts of an item are [held](crate::Holds) for orders of which nobody knows yet whether they are placed. Without these
    /// parts, the item refuses the change. Repeat the call in a second.
    #[error(
        "nothing was applied: parts of {name} are held for orders that are not decided yet; repeat the call in a second"
    )]
    Held {
        /// The name of the item in its [`Reads`](crate::Reads), or its key.
        name: String,
    },
    /// The item would exceed the size limit. Store less in it.
    #[error("nothing was applied: the item would take {bytes} bytes of at most {limit}; store less in it")]
    TooLarge {
        /// The size of the item in bytes, by the rules of `DynamoDB`, rounded up.
        bytes: usize,
        /// The size limit in bytes.
        limit: usize,
    },
    /// The row lacks attributes of this crate, breaks their rules, or does not decode. Repair the row.
    #[error(
        "nothing was applied: the stored item cannot be used: {reason}; correct its type if that is wrong, or repair the item"
    )]
    CorruptItem {
        /// The problem with the row.
        reason: String,
    },
    /// A value cannot be stored and read back as it is, encodes to attributes that its [`Record`](crate::Record) does not
    /// declare, or does not encode at all. Or a key is empty, too long, or not one of the table; or a bound of a
    /// query holds for no key; or a lease would have a holder without a name. The reason names the
    /// attribute. Correct the `Record`, the value or the key.
    #[error("nothing was applied: {reason}; correct the value, the key, the query or the Record")]
    InvalidRecord {
        /// The problem with the value.
        reason: String,
    },
    /// The steps of a transaction cannot be sent together, or do not fit the read items. This is a bug in the decision.
    #[error("nothing was applied: the transaction cannot be sent, correct the decision: {reason}")]
    InvalidTransaction {
        /// The problem with the steps.
        reason: String,
    },
    /// The client cannot send anything: it has no region, or its provider three times found no credentials or is not set up
    /// rightly. A client without any provider is [`FailureKind::Unavailable`], because the SDK does not tell it apart. The text
    /// says what to correct; repeating the call is useless until then.
    #[error("nothing was applied: the client cannot send requests: {source}")]
    NotConfigured {
        /// What the client lacks.
        source: Source,
    },
    /// `DynamoDB` refused the request itself: access denied, no such table, invalid request. Correct the set-up,
    /// because repeating the call is useless.
    #[error("nothing was applied: the request was rejected, and repeating it as it is would be useless: {source}")]
    Rejected {
        /// The refusal, by its code and message.
        source: Source,
    },
}

/// The innermost cause. The outer errors of the SDK only say which layer failed, and may show the request. A failure as the
/// cause is that of one attempt, so it does not say here that nothing was applied.
fn innermost(source: &Source) -> String {
    let mut cause: &dyn StdError = &**source;
    while !cause.is::<Throttled>() // it names the limit
        && let Some(inner) = cause.source()
    {
        cause = inner;
    }
    if let Some(metadata) = cause.downcast_ref::<ErrorMetadata>() {
        // Its own `Display` is that of a struct.
        return format!("{}: {}", metadata.code().unwrap_or("no code"), metadata.message().unwrap_or("no message"));
    }
    if let Some(FailureKind::Contention { attempts }) = cause.downcast_ref().map(|failure: &Failure| &failure.kind) {
        return format!("{attempts} attempts lost to other writers, or time ran out");
    }
    let said = cause.to_string();
    said.strip_prefix("nothing was applied: ").unwrap_or(&said).to_owned()
}

impl Failure {
    /// A failure of this kind, without a place.
    #[must_use]
    pub fn of(kind: FailureKind) -> Self {
        Failure { kind, place: None }
    }

    /// The same failure in this place, unless it has one that is nearer.
    pub(crate) fn at(self, place: impl FnOnce() -> Place) -> Self {
        Failure { place: self.place.or_else(|| Some(Box::new(place()))), ..self }
    }

    /// Whether nothing was applied and the same call may succeed when it is made again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, FailureKind::Contention { .. } | FailureKind::Unavailable { .. } | FailureKind::Held { .. })
    }

    /// The limit that the call ran into, if it failed because `DynamoDB` throttled it.
    #[must_use]
    pub fn throttling_limit(&self) -> Option<ThrottlingLimit> {
        let FailureKind::Unavailable { source } = &self.kind else { return None };
        Throttled::of(&**source).map(|throttled| throttled.limit)
    }

    /// Whether the change may have been applied, or may still be. [`FailureKind::OutcomeUnknown`] says what to do then.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self.kind, FailureKind::OutcomeUnknown { .. })
    }
}

impl Place {
    /// The operation on the items with these tables and keys.
    pub(crate) fn of<'a>(
        operation: &'static str,
        items: impl IntoIterator<Item = (&'a String, &'a Attributes)>,
    ) -> Self {
        let item = |(table, key): (&String, &Attributes)| PlacedItem { table: table.clone(), key: key.clone() };
        Place { operation, items: items.into_iter().map(item).collect() }
    }

    /// The operation on this table, or on no usable key of it.
    pub(crate) fn of_table(operation: &'static str, table: &str) -> Self {
        Place { operation, items: vec![PlacedItem { table: table.to_owned(), key: Attributes::new() }] }
    }

    /// The table of all its items, if they are in one.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        let (first, others) = self.items.split_first()?;
        others.iter().all(|item| item.table == first.table).then_some(&*first.table)
    }
}

impl From<FailureKind> for Failure {
    fn from(kind: FailureKind) -> Self {
        Failure::of(kind)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.kind.source()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        write!(f, "in {}", self.operation)?;
        for (index, item) in self.items.iter().take(SHOWN).enumerate() {
            write!(f, "{}{item}", if index == 0 { " of " } else { ", " })?;
        }
        if self.items.len() > SHOWN { write!(f, " and {} more", self.items.len() - SHOWN) } else { Ok(()) }
    }
}

impl PlacedItem {
    /// The names and values of the key.
    pub(crate) fn key_in_words(&self) -> String {
        let in_order: BTreeMap<_, _> = self.key.iter().collect();
        let parts: Vec<_> = in_order.iter().map(|(name, value)| format!("{name} {}", brief(Some(value)))).collect();
        parts.join(", ")
    }
}

impl fmt::Display for PlacedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.table.is_empty() { "a table without a name" } else { &self.table })?;
        if self.key.is_empty() { Ok(()) } else { write!(f, ", {}", self.key_in_words()) }
    }
}

/// Why an operation did nothing: a refusal, with the reason `R`, or a failure.
///
/// A decision refuses for a reason of the program. The other reasons are plain data beside their operations, such as
/// [`Exists`](crate::Exists) of a create. `Display` shows a reason in its own words.
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
    /// An operation without refusals can only fail.
    fn from(error: Error) -> Self {
        let Error::Failed(failure) = error;
        failure
    }
}

/// Why a change of an item at any version changed nothing: [`update_with_retry`](crate::Table::update_with_retry),
/// [`edit`](crate::Table::edit), [`delete`](crate::Table::delete).
#[derive(Debug, ThisError)]
pub enum UpdateError<R = Infallible> {
    /// The key has no item. Nothing was written.
    #[error("nothing was changed: the key has no item")]
    NotFound,
    /// The reason for which the decision refused, or the item refused the edit. Nothing was written.
    #[error("{0}")]
    Refused(R),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why a change at the version that the client has seen changed nothing:
/// [`update_at_version`](crate::Table::update_at_version), [`delete_at_version`](crate::Table::delete_at_version).
#[derive(ThisError)]
pub enum VersionError<T, R = Infallible> {
    /// The key has no item now. Nothing was written.
    #[error("nothing was changed: the key has no item")]
    NotFound,
    /// The item is at another version now. Nothing was written. Decide again on this item.
    #[error("nothing was changed: the item is at version {} by now; decide again on that version", .0.version())]
    Conflict(Box<Versioned<T>>),
    /// The decision refused, for this reason. Nothing was written.
    #[error("{0}")]
    Refused(R),
    /// See [`Failure`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why a change with an idempotency key returned no answer: [`Idempotency::change`](crate::Idempotency::change),
/// [`Leases::acquire_once`](crate::lease::Leases::acquire_once).
#[derive(Debug, ThisError)]
pub enum IdempotencyError<R = Infallible> {
    /// The key was used for a request with another payload. Nothing was written. Use a new key.
    #[error("nothing was changed: the idempotency key belongs to another request; use a new key")]
    KeyReused,
    /// It was refused, for this reason. Nothing was written. The key stays open.
    #[error("{0}")]
    Refused(R),
    /// See [`Failure`]. It speaks about this call only. An earlier copy of the request may have been applied. Repeat
    /// the request with the same claim: that is always safe and finds out.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The same three questions to each error of an operation. A refusal is not retryable: it is an answer.
macro_rules! ask {
    ($error:ident $(<$value:ident>)?) => {
        impl<$($value,)? R> $error<$($value,)? R> {
            /// The failure, if the operation was not refused.
            #[must_use]
            pub fn failure(&self) -> Option<&Failure> {
                if let $error::Failed(failure) = self { Some(failure) } else { None }
            }

            /// See [`Failure::is_retryable`].
            #[must_use]
            pub fn is_retryable(&self) -> bool {
                self.failure().is_some_and(Failure::is_retryable)
            }

            /// See [`Failure::is_outcome_unknown`].
            #[must_use]
            pub fn is_outcome_unknown(&self) -> bool {
                self.failure().is_some_and(Failure::is_outcome_unknown)
            }
        }
    };
}

ask!(Error);
ask!(UpdateError);
ask!(VersionError<T>);
ask!(IdempotencyError);

impl<R> Error<R> {
    /// The error as one of your own, which is made from a refusal or from a failure.
    ///
    /// ```
    /// use fencepost::{Error, Failure};
    ///
    /// #[derive(Debug)]
    /// enum OrderError {
    ///     SoldOut,
    ///     Store(Failure),
    /// }
    ///
    /// impl From<Failure> for OrderError {
    ///     fn from(failure: Failure) -> Self {
    ///         OrderError::Store(failure)
    ///     }
    /// }
    ///
    /// let refused = Error::Refused("there are 3 left");
    /// assert!(matches!(refused.into_own(|_| OrderError::SoldOut), OrderError::SoldOut));
    /// ```
    pub fn into_own<E: From<Failure>>(self, refused: impl FnOnce(R) -> E) -> E {
        match self {
            Error::Refused(reason) => refused(reason),
            Error::Failed(failure) => failure.into(),
        }
    }
}

impl<R> UpdateError<R> {
    /// The error as one of your own. `refused` gets `None` if the key has no item.
    pub fn into_own<E: From<Failure>>(self, refused: impl FnOnce(Option<R>) -> E) -> E {
        match self {
            UpdateError::NotFound => refused(None),
            UpdateError::Refused(reason) => refused(Some(reason)),
            UpdateError::Failed(failure) => failure.into(),
        }
    }
}

impl From<InvalidValue> for Failure {
    fn from(value: InvalidValue) -> Self {
        Failure::of(FailureKind::InvalidTransaction { reason: value.to_string() })
    }
}

impl<R> From<InvalidValue> for IdempotencyError<R> {
    fn from(invalid: InvalidValue) -> Self {
        IdempotencyError::Failed(invalid.into())
    }
}

impl From<Unwritable> for Failure {
    fn from(unwritable: Unwritable) -> Self {
        match unwritable {
            Unwritable::Fenced => Failure::of(FailureKind::Fenced),
            Unwritable::TooLarge { bytes, limit } => Failure::of(FailureKind::TooLarge { bytes, limit }),
            Unwritable::CorruptItem { reason } => Failure::of(FailureKind::CorruptItem { reason }),
            Unwritable::InvalidRecord { reason } => Failure::of(FailureKind::InvalidRecord { reason }),
            Unwritable::Held => Failure::of(FailureKind::Held { name: "the item".to_owned() }),
        }
    }
}

/// An error with an item shows only its version in `Debug`. Values may be secret, and need not be `Debug`.
impl<T, R: fmt::Debug> fmt::Debug for VersionError<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VersionError::NotFound => f.write_str("NotFound"),
            VersionError::Conflict(current) => f.debug_tuple("Conflict").field(&current.at).finish(),
            VersionError::Refused(reason) => f.debug_tuple("Refused").field(reason).finish(),
            VersionError::Failed(failure) => f.debug_tuple("Failed").field(failure).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::InvalidCursor;
    use crate::table::{Exists, NotEdited, NotEditedReason};
    use fencepost_core::{AttributeValue, Incarnation, ItemVersion, Version};

    /// A value without `Debug` and without `Display`.
    struct Secret;

    fn current() -> Versioned<Secret> {
        let version = Version::new(7).expect("small");
        Versioned { value: Secret, at: ItemVersion { version, incarnation: Incarnation::from_bytes([1; 8]) } }
    }

    fn not_edited(reason: NotEditedReason) -> NotEdited<Secret> {
        NotEdited { reason, clause: None, item: Box::new(current()) }
    }

    #[test]
    fn every_error_converts_with_a_question_mark_whatever_the_value_is() {
        fn chained<E: StdError + Send + Sync + 'static>(error: E) -> Result<(), Source> {
            Err(error)?
        }
        let failure = || Failure::of(FailureKind::Contention { attempts: 3 });
        let sentences = [
            chained(failure()),
            chained(Error::<&str>::Failed(failure())),
            chained(UpdateError::<&str>::Failed(failure())),
            chained(VersionError::<Secret>::Failed(failure())),
            chained(IdempotencyError::<&str>::Failed(failure())),
            chained(Error::Refused(Exists(Box::new(current())))),
            chained(Error::Refused(InvalidCursor)),
            chained(UpdateError::<&str>::NotFound),
            chained(UpdateError::Refused(not_edited(NotEditedReason::OutOfRange))),
            chained(VersionError::<Secret>::NotFound),
            chained(VersionError::<Secret, &str>::Conflict(Box::new(current()))),
            chained(IdempotencyError::<&str>::KeyReused),
        ]
        .map(|refused| refused.expect_err("an error").to_string());
        for sentence in sentences {
            assert!(sentence.starts_with("nothing was "), "{sentence}");
        }
        assert_eq!(Error::Refused("there is too little").to_string(), "there is too little");
    }

    #[test]
    fn an_error_that_holds_an_item_shows_only_its_version() {
        let shown = [
            format!("{:?}", VersionError::<Secret>::Conflict(Box::new(current()))),
            format!("{:?}", Error::Refused(Exists(Box::new(current())))),
            format!("{:?}", UpdateError::Refused(not_edited(NotEditedReason::NotANumber))),
        ];
        for shown in shown {
            assert!(shown.contains("Version(7)"), "{shown}");
        }
    }

    #[test]
    fn only_what_was_not_applied_for_now_is_retryable_and_only_a_lost_answer_is_unknown() {
        let source = || -> Source { "x".into() };
        for (failure, retryable, unknown) in [
            (Failure::of(FailureKind::Contention { attempts: 1 }), true, false),
            (Failure::of(FailureKind::Unavailable { source: source() }), true, false),
            (Failure::of(FailureKind::OutcomeUnknown { source: source() }), false, true),
            (Failure::of(FailureKind::Fenced), false, false),
            (Failure::of(FailureKind::EditRefused { name: "x".to_owned(), reason: "x".to_owned() }), false, false),
            (Failure::of(FailureKind::NotConfigured { source: source() }), false, false),
            (Failure::of(FailureKind::Rejected { source: source() }), false, false),
        ] {
            let asked = [(failure.is_retryable(), failure.is_outcome_unknown()), {
                let error = VersionError::<Secret>::Failed(failure);
                (error.is_retryable(), error.is_outcome_unknown())
            }];
            assert_eq!(asked, [(retryable, unknown); 2]);
        }
        let refused = Error::Refused("sold out");
        assert!(refused.failure().is_none() && !refused.is_retryable() && !refused.is_outcome_unknown());
    }

    #[test]
    fn a_failure_names_its_operation_and_the_first_items_and_the_nearest_place_counts() {
        let row = |key: &str| {
            let key = [("id".to_owned(), AttributeValue::S(key.to_owned()))];
            ("Accounts".to_owned(), Attributes::from(key))
        };
        let rows: Vec<_> = ["a", "b", "c", "d"].map(row).into();
        let place = |count: usize| Place::of("transact", rows[..count].iter().map(|(table, key)| (table, key)));
        let said = |count| Failure::of(FailureKind::Fenced).at(|| place(count)).at(|| place(1)).to_string();
        assert!(said(1).ends_with("(in transact of Accounts, id \"a\")"), "{}", said(1));
        assert!(said(4).ends_with("id \"c\" and 1 more)"), "{}", said(4));
        assert!(said(0).ends_with("(in transact)"), "{}", said(0));
        assert_eq!(
            PlacedItem { table: String::new(), key: row("a").1 }.to_string(),
            "a table without a name, id \"a\""
        );
    }

    #[test]
    fn a_failure_shows_its_innermost_cause_as_a_sentence_and_no_other_outcome_in_it() {
        let throttled = ErrorMetadata::builder().code("ThrottlingException").message("too much").build();
        for (source, shown) in [
            ("no answer".into(), "(no answer)"),
            (throttled.into(), "(ThrottlingException: too much)"),
            (
                Failure::of(FailureKind::Contention { attempts: 3 }).into(),
                "(3 attempts lost to other writers, or time ran out)",
            ),
            (Failure::of(FailureKind::TooLarge { bytes: 2, limit: 1 }).into(), "(the item would take 2 bytes"),
        ] {
            let source: Source = source;
            let unknown = Failure::of(FailureKind::OutcomeUnknown { source }).to_string();
            assert!(unknown.starts_with("outcome unknown") && unknown.contains(shown), "{unknown}");
        }
    }

    #[test]
    fn a_refusal_and_a_failure_become_an_error_of_the_caller() {
        let own = |reason: &str| -> Source { reason.into() };
        assert_eq!(Error::Refused("sold out").into_own(own).to_string(), "sold out");
        assert!(Error::<&str>::Failed(Failure::of(FailureKind::Fenced)).into_own(own).to_string().contains("lease"));
        let own = |reason: Option<&str>| -> Source { reason.unwrap_or("no item").into() };
        assert_eq!(UpdateError::NotFound.into_own(own).to_string(), "no item");
        assert_eq!(UpdateError::Refused("empty").into_own(own).to_string(), "empty");
        assert!(
            UpdateError::<&str>::Failed(Failure::of(FailureKind::Fenced)).into_own(own).to_string().contains("lease")
        );
    }
}
