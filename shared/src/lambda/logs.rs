//! Log lines as JSON, the level that filters them, and where traces go.

use super::env::first_set;
use super::xray::XRay;
use crate::http::Problem;
use std::error::Error;
use std::time::Duration;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Format, Json, JsonFields};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Writes JSON lines with timestamps, and traces if a daemon takes them. Without timestamps, Lambda files every line as
/// INFO. The lines of the crates that `without` names are left out.
pub fn init_tracing(without: &[&str]) {
    let filter = filter(level().as_deref()).with_targets(without.iter().map(|name| (*name, LevelFilter::OFF)));
    let subscriber = tracing_subscriber::registry().with(lines().with_filter(filter));
    // An error means that another subscriber is set already. Then that one is used. Without a daemon there is no second
    // layer, because even an empty one makes the start 5 % slower.
    let _ = match XRay::from_env() {
        Some(traces) => subscriber.with(traces.with_filter(XRay::filter())).try_init(),
        None => subscriber.try_init(),
    };
}

pub(super) fn lines<S: Subscriber + for<'a> LookupSpan<'a>>() -> fmt::Layer<S, JsonFields, Format<Json>> {
    fmt::layer().json().flatten_event(true).with_span_list(false).with_target(false)
}

/// The level of the log: `AWS_LAMBDA_LOG_LEVEL` (from the logging configuration of the function), or `RUST_LOG`, or
/// `POWERTOOLS_LOG_LEVEL`. Powertools too lets the logging configuration win.
pub(super) fn level() -> Option<String> {
    first_set(&["AWS_LAMBDA_LOG_LEVEL", "RUST_LOG"])
        .or_else(|| first_set(&["POWERTOOLS_LOG_LEVEL"]).map(|level| of_powertools(&level).to_owned()))
}

/// The level that Powertools means by this word, in Python, TypeScript, Java or .NET.
fn of_powertools(level: &str) -> &str {
    match level.to_ascii_lowercase().as_str() {
        "information" => "INFO",
        "warning" => "WARN",
        "critical" => "FATAL",
        "silent" | "none" => "OFF",
        _ => level,
    }
}

/// How severe a line is. The least severe comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Severity {
    Info,
    Warn,
    Error,
    Fatal,
    /// No line is so severe.
    Off,
}

impl Severity {
    /// The least severe lines that a level lets through. Info if nothing is said.
    pub(super) fn threshold(level: Option<&str>) -> Self {
        // Lambda knows this level, and `tracing` does not.
        if level.is_some_and(|level| level.eq_ignore_ascii_case("fatal")) {
            return Severity::Fatal;
        }
        match filter(level).default_level() {
            Some(LevelFilter::OFF) => Severity::Off,
            Some(LevelFilter::ERROR) => Severity::Error,
            Some(LevelFilter::WARN) => Severity::Warn,
            _ => Severity::Info,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Warn => "WARN",
            Severity::Error => "ERROR",
            Severity::Fatal | Severity::Off => "FATAL",
        }
    }
}

/// Parses a level, or a list such as `warn,fencepost=debug`. `EnvFilter` could do more, but takes 380 KB.
pub(super) fn filter(level: Option<&str>) -> Targets {
    let named = level.filter(|level| !level.is_empty()).and_then(|level| level.parse().ok());
    named.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO))
}

pub(super) fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The error behind a problem, and its innermost cause unless it quotes that. Those between may show a whole request of the
/// SDK, with the values in it.
pub(super) fn causes(problem: &Problem) -> String {
    let Some(mut cause) = problem.source() else { return String::new() };
    let said = cause.to_string();
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let innermost = cause.to_string();
    if said.contains(&innermost) { said } else { format!("{said}: {innermost}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Failure, FailureKind};
    use aws_sdk_dynamodb::error::SdkError;
    use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
    use aws_sdk_dynamodb::types::error::ResourceNotFoundException;

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
    fn the_words_of_powertools_are_levels() {
        for (word, threshold) in [
            ("Information", Severity::Info),
            ("WARNING", Severity::Warn),
            ("warn", Severity::Warn),
            ("ERROR", Severity::Error),
            ("CRITICAL", Severity::Fatal),
            ("SILENT", Severity::Off),
            ("None", Severity::Off),
        ] {
            assert_eq!(Severity::threshold(Some(of_powertools(word))), threshold, "{word}");
        }
        assert!(filter(Some(of_powertools("TRACE"))).would_enable("fencepost", &tracing::Level::TRACE));
    }

    #[test]
    fn the_log_has_the_innermost_cause_of_a_fault_once_and_no_request() {
        let told = |source| causes(&Problem::from(Failure::of(FailureKind::OutcomeUnknown { source })));
        let said = told("no route".into());
        assert!(said.matches("no route").count() == 1 && said.ends_with("then read the item"), "{said}");
        let built = SdkError::<UpdateItemError, ()>::construction_failure(UpdateItemError::unhandled("no scheme"));
        let said = told(built.into());
        assert!(said.contains("(no scheme)") && !said.contains("failed to construct"), "{said}");
        let exception = ResourceNotFoundException::builder().message("no such table").build();
        let error = UpdateItemError::ResourceNotFoundException(exception);
        let said = causes(&Problem::from(Failure::of(FailureKind::Rejected { source: error.into() })));
        assert_eq!(said.matches("no such table").count(), 1, "{said}");
    }
}
