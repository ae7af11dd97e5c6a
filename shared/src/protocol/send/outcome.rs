//! The outcome of one send or read.

use crate::error::Source;
use std::time::Duration;

/// The proof that the answer to one send of a write gives about **that send**.
#[derive(Debug)]
pub(crate) enum SendOutcome<A, F> {
    /// The send was applied. Holds the attributes that the answer returned.
    Applied(A),
    /// The condition did not hold. Holds the row, or the reasons, of the refusal.
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
    /// Nothing is proved: `DynamoDB` claims that another request has used the token. Tokens are random, so that cannot
    /// be true.
    Mismatch(Source),
}

impl<A, F> SendOutcome<A, F> {
    /// The outcome in one word, for the span of the send.
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

/// The outcome of one read.
#[derive(Debug)]
pub(crate) enum ReadOutcome<A> {
    /// The answer.
    Read(A),
    /// No answer, or a refusal for now. Read again.
    Again(Source),
    /// The connection broke before an answer came. Read again.
    Broken(Source),
    /// The signature was too old or wrong. Sign it again, once.
    Expired(Source),
    /// The read was refused for good. Reading again is useless.
    Rejected(Source),
}

impl<A> ReadOutcome<A> {
    /// The outcome in one word, for the span of the read.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            ReadOutcome::Read(_) => "read",
            ReadOutcome::Again(_) => "not_read",
            ReadOutcome::Broken(_) => "connection_broken",
            ReadOutcome::Expired(_) => "signature_refused",
            ReadOutcome::Rejected(_) => "rejected",
        }
    }
}

/// The reason if no answer arrived within `timeout`.
pub(super) fn no_answer(timeout: Duration) -> Source {
    format!("no answer within {} ms", timeout.as_millis()).into()
}
