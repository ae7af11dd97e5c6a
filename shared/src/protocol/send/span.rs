//! The span of one send. A subscriber can make a trace of it.

use tracing::field::Empty;
use tracing::{Span, debug_span};

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
