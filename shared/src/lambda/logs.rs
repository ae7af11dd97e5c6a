//! Log lines as JSON: one per request, message or batch.

use crate::call::Call;
use crate::http::{Problem, Request, Response};
use std::error::Error;
use std::time::Duration;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Writes JSON lines with timestamps. Without timestamps, Lambda files every line as INFO. The level is
/// `AWS_LAMBDA_LOG_LEVEL` (from the logging configuration of the function), or `RUST_LOG`, or info.
pub(super) fn log_json() {
    let level = std::env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| std::env::var("RUST_LOG"));
    let lines = fmt::layer().json().flatten_event(true).with_span_list(false).with_target(false);
    // An error means that another subscriber is set already. Then that one is used.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter(level.ok().as_deref()))).try_init();
}

/// Parses a level, or a list such as `warn,fencepost=debug`. `EnvFilter` could do more, but takes 380 KB.
fn filter(level: Option<&str>) -> Targets {
    let named = level.filter(|level| !level.is_empty()).and_then(|level| level.parse().ok());
    named.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO))
}

pub(super) fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The text of all sources below a problem, for the log.
pub(super) fn chain(problem: &Problem) -> String {
    let mut text = String::new();
    let mut next = problem.source();
    while let Some(error) = next {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// Logs one line per request. 503 and 504 are warnings, because the table causes them. 500 is an error.
pub(super) fn log_request(
    function: &str,
    request: &Request,
    call: &Call,
    response: &Response,
    fault: Option<&str>,
    took: Duration,
) {
    let tally = call.tally();
    let key = request.key();
    let version = response.version();
    let duration_ms = millis(took);
    macro_rules! line {
        ($level:ident $(, $extra:ident)?) => {
            tracing::$level!(
                function,
                key,
                attempts = tally.attempts,
                conflicts = tally.conflicts,
                lost_answers = tally.lost_answers,
                outcome = response.outcome(),
                version,
                duration_ms,
                $($extra,)?
                "request"
            )
        };
    }
    match fault {
        None => line!(info),
        Some(error) if response.outcome() == "internal" => line!(error, error),
        Some(error) => line!(warn, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;

    #[test]
    fn lines_are_filtered_by_level_and_by_info_where_nothing_is_said() {
        for (said, info, debug) in [
            (None, true, false),
            (Some(""), true, false),
            (Some("no, such=level"), true, false),
            (Some("INFO"), true, false),
            (Some("DEBUG"), true, true),
            (Some("WARN"), false, false),
            (Some("error,fencepost=info"), true, false),
        ] {
            let filter = filter(said);
            assert_eq!(filter.would_enable("fencepost::lambda", &tracing::Level::INFO), info, "{said:?}");
            assert_eq!(filter.would_enable("fencepost::lambda", &tracing::Level::DEBUG), debug, "{said:?}");
        }
    }

    #[test]
    fn the_log_has_the_whole_chain_of_a_fault() {
        let problem = Problem::from(Failure::Rejected { source: "no such table".into() });
        assert!(chain(&problem).ends_with("repeating is useless: no such table"), "{}", chain(&problem));
    }
}
