//! The outcome of one send.

use crate::error::Source;
use crate::throttling::Throttled;
use fencepost_core::format::item::Attributes;
use fencepost_core::{Outcome, Why};
use std::time::Duration;
use tracing::field::Empty;
use tracing::{Span, debug_span};

/// The proof from the answer to one send about **this send** alone. A read is applied if its answer is complete.
///
/// It is an [`Outcome`] with what the answer holds.
#[derive(Debug)]
pub(crate) enum SendOutcome {
    Applied(Shown),
    /// The condition did not hold. Holds one reason for each step.
    Refused(Vec<Reason>),
    NotApplied(Source),
    Expired(Source),
    Rejected(Source),
    Unknown(Source),
    Broken(Source),
    Mismatch(Source),
}

/// The cancellation reason of one step of a transaction.
#[derive(Clone, PartialEq, Debug)]
pub enum Reason {
    /// This step was not a reason.
    None,
    /// The condition of the step did not hold. Holds the row that refused it, if there was one.
    Refused(Option<Attributes>),
    /// Another transaction or a throttled table stood in the way. The step may pass when it is sent again.
    NotNow,
    /// The step is impossible. Sending it again is useless.
    Rejected,
}

impl Reason {
    pub(crate) fn into_item(self) -> Option<Attributes> {
        if let Reason::Refused(item) = self { item } else { None }
    }
}

/// The rows from one request to a table or an index, with the key after which it left off (`None` at the end).
pub(crate) type ReadRows = (Vec<Attributes>, Option<Attributes>);

/// What an answer shows.
#[derive(Debug)]
pub(crate) enum Shown {
    Nothing,
    /// The row of a read, or the attributes that an applied write returned.
    Row(Option<Attributes>),
    /// The rows of a batch, by their positions. The others were left out.
    Rows(Vec<(usize, Option<Attributes>)>),
    Page(ReadRows),
}

impl SendOutcome {
    /// What it proves, with the error for the one who is told.
    pub(crate) fn split(self) -> (Outcome, Option<Source>, Shown, Vec<Reason>) {
        let (outcome, source) = match self {
            SendOutcome::Applied(shown) => return (Outcome::Applied, None, shown, Vec::new()),
            SendOutcome::Refused(reasons) => return (Outcome::Refused, None, Shown::Nothing, reasons),
            SendOutcome::NotApplied(source) => {
                let throttled = Throttled::of(&*source).map(|throttled| throttled.retry_after.unwrap_or_default());
                (Outcome::NotApplied { throttled }, source)
            }
            SendOutcome::Expired(source) => (Outcome::Expired, source),
            SendOutcome::Rejected(source) => (Outcome::Rejected, source),
            SendOutcome::Unknown(source) => (Outcome::Unknown, source),
            SendOutcome::Broken(source) => (Outcome::Broken, source),
            SendOutcome::Mismatch(source) => (Outcome::Mismatch, source),
        };
        (outcome, Some(source), Shown::Nothing, Vec::new())
    }
}

/// The outcome in one word, as spans name it.
pub(crate) fn name(outcome: Outcome, is_read: bool) -> &'static str {
    match outcome {
        Outcome::Applied if is_read => "read",
        Outcome::NotApplied { .. } | Outcome::Unknown if is_read => "not_read",
        Outcome::Applied => "applied",
        Outcome::Refused => "refused",
        Outcome::NotApplied { .. } => "not_applied",
        Outcome::Expired => "signature_refused",
        Outcome::Rejected => "rejected",
        Outcome::Unknown => "answer_lost",
        Outcome::Broken => "connection_broken",
        Outcome::Mismatch => "token_mismatch",
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
pub(crate) fn send_span(operation: &Span, attempt: u32, why: Why) -> Span {
    let why = match why {
        Why::First => "first",
        Why::Conflict => "conflict",
        Why::Hedge => "hedge",
        Why::After(outcome) => name(outcome, attempt == 0),
    };
    // Where the spans of operations are off, it is a child of the span of the caller.
    let parent = if operation.is_disabled() { Span::current().id() } else { operation.id() };
    debug_span!(target: SEND_TARGET, parent: parent, "send", operation = Empty, table = Empty, attempt, why, outcome = Empty)
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
