//! The outcome of one send.

use crate::error::Source;
use std::convert::Infallible;
use std::time::Duration;

/// The outcome of one send of a read. No read is refused by a condition.
pub(crate) type ReadOutcome<A> = SendOutcome<A, Infallible>;

/// The proof from the answer to one send about **this send** alone. A read is applied if its answer is complete.
#[derive(Debug)]
pub(crate) enum SendOutcome<A, F> {
    /// The send was applied. Holds the answer.
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
    /// Nothing is proved either: the connection broke before an answer came. After the process was frozen, it may have
    /// been dead before the send.
    Broken(Source),
    /// Nothing is proved: `DynamoDB` claims that another request has used the token. This cannot be true of random
    /// tokens.
    Mismatch(Source),
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
