//! What one answer proves.

use crate::error::Source;
use std::time::Duration;

/// What the answer to one send of a write proves about **that send**.
#[derive(Debug)]
pub(crate) enum SendOutcome<A, F> {
    /// The send was applied. Holds what the answer shows of the row.
    Applied(A),
    /// The condition did not hold. Holds what refused the send.
    Refused(F),
    /// The send was not applied. The same request may be applied when it is sent again.
    NotApplied(Source),
    /// The send was not applied, because its signature was too old or wrong. Sign it again, once.
    Expired(Source),
    /// The send was not applied, and sending it again is useless.
    Rejected(Source),
    /// Nothing is proved: the send may have been applied, or may be applied later.
    Unknown(Source),
    /// Nothing is proved: `DynamoDB` claims to have seen the token with another request. Tokens are random, so it has
    /// not.
    Mismatch(Source),
}

/// What the answer to a read gives.
#[derive(Debug)]
pub(crate) enum ReadOutcome<A> {
    /// What was asked for.
    Read(A),
    /// No answer, or "not now". Read again.
    Again(Source),
    /// The signature was too old or wrong. Sign it again, once.
    Expired(Source),
    /// Reading again is useless.
    Rejected(Source),
}

/// The reason to give when no answer came within `timeout`.
pub(super) fn no_answer(timeout: Duration) -> Source {
    format!("no answer within {} ms", timeout.as_millis()).into()
}
