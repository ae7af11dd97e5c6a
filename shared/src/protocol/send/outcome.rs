//! The outcome of one send.

use crate::error::Source;
use std::convert::Infallible;
use std::time::Duration;
use tracing::field::Empty;
use tracing::{Span, debug_span};

/// The outcome of one send of a read. No read is refused by a condition.
pub(crate) type ReadOutcome<A> = SendOutcome<A, Infallible>;

/// The proof from the answer to one send about **this send** alone. A read is applied if its answer is complete.
#[derive(Debug)]
pub(crate) enum SendOutcome<A, F> {
    Applied(A),
    /// The condition did not hold. Holds the row or the reasons of the refusal.
    Refused(F),
    /// The send was not applied. The same request may be applied when it is sent again.
    NotApplied(Source),
    /// The send was not applied, because its signature was too old or wrong. Sign it again, once.
    Expired(Source),
    /// The send was not applied, and sending it again is useless.
    Rejected(Source),
    /// Nothing is proved: the send may have been applied, or may be applied later.
    Unknown(Source),
    /// Nothing is proved either: the connection broke before an answer came. It may have been dead before the send.
    Broken(Source),
    /// Nothing is proved: `DynamoDB` claims that another request has used the token. Tokens are random.
    Mismatch(Source),
}

impl<Row> SendOutcome<Row, Row> {
    /// The outcome of a write that is sent like a read, because it may be applied any number of times. A refused one
    /// shows nothing.
    pub(crate) fn into_read<T>(self, shown: impl FnOnce(Row) -> Option<T>) -> ReadOutcome<Option<T>> {
        match self {
            SendOutcome::Applied(answer) => SendOutcome::Applied(shown(answer)),
            SendOutcome::Refused(_) => SendOutcome::Applied(None),
            SendOutcome::NotApplied(source) => SendOutcome::NotApplied(source),
            SendOutcome::Expired(source) => SendOutcome::Expired(source),
            SendOutcome::Rejected(source) => SendOutcome::Rejected(source),
            SendOutcome::Unknown(source) => SendOutcome::Unknown(source),
            SendOutcome::Broken(source) => SendOutcome::Broken(source),
            SendOutcome::Mismatch(source) => SendOutcome::Mismatch(source),
        }
    }
}

impl<A, F> SendOutcome<A, F> {
    pub(crate) fn name_of_read(&self) -> &'static str {
        match self {
            SendOutcome::Applied(_) => "read",
            SendOutcome::NotApplied(_) | SendOutcome::Unknown(_) => "not_read",
            other => other.name(),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            SendOutcome::Applied(_) => "applied",
            SendOutcome::Refused(_) => "refused",
            SendOutcome::NotApplied(_) => "not_applied",
            SendOutcome::Expired(_) => "signature_refused",
            SendOutcome::Rejected(_) => "rejected",
            SendOutcome::Unknown(_) => "answer_lost",
            SendOutcome::Broken(_) => "connection_broken",
            SendOutcome::Mismatch(_) => "token_mismatch",
        }
    }
}

pub(super) fn no_answer(timeout: Duration) -> Source {
    format!("no answer within {} ms", timeout.as_millis()).into()
}

pub(crate) const SEND_TARGET: &str = "fencepost::send";

/// Creates the span of one send, at the level `DEBUG` with the target `fencepost::send`.
///
/// `attempt` counts the rounds of the change (0 for a read). `why` says why the send leaves: `first`, `conflict`,
/// `hedge`, or the outcome of the send before it. The outcome stays empty if the answer to another send decided.
pub(crate) fn send_span(attempt: u32, why: &'static str) -> Span {
    debug_span!(target: SEND_TARGET, "send", operation = Empty, table = Empty, attempt, why, outcome = Empty)
}

/// Records the operation and its table in the current span. A request about several tables names none.
pub(super) fn record_request(operation: &str, table: Option<&str>) {
    let span = Span::current();
    // Where the spans of sends are off, this is the span of the caller.
    if span.metadata().is_none_or(|metadata| metadata.target() != SEND_TARGET) {
        return;
    }
    span.record("operation", operation);
    span.record("table", table);
}
