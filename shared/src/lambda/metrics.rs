//! The line about a request or a batch. It carries metrics in the embedded metric format.
//!
//! `CloudWatch` makes metrics of the numbers that the member `_aws` names. The function sends nothing itself. Source:
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use super::env::first_set;
use super::logs::{Severity, level, millis};
use crate::call::Tally;
use crate::clock::Clock;
use crate::error::{Failure, FailureKind, Source};
use crate::http::Problem;
use crate::timestamp::Timestamp;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The environment variables with the namespace of the metrics. The first that is set counts. Without one, or if it is
/// empty, the lines have no metrics.
const NAMESPACE_VARIABLES: [&str; 2] = ["METRICS_NAMESPACE", "POWERTOOLS_METRICS_NAMESPACE"];

/// The environment variable with the name of the service that the function belongs to. It has no metrics of its own.
const SERVICE_VARIABLE: &str = "POWERTOOLS_SERVICE_NAME";

/// The metrics that are also kept for each route. They show where contention is. Each name and route costs money.
const BY_ROUTE: [&str; 4] = ["requests", "attempts", "conflicts", DURATION];

const DURATION: &str = "duration_ms";

/// The metric that is also kept for each limit for which requests were throttled.
const THROTTLED: &str = "throttled";

const LIMIT: &str = "throttling_limit";

/// Writes the line about each request or batch of one function.
pub struct Reporter {
    namespace: Option<String>,
    service: Option<String>,
    /// The least severe written lines. With metrics, every line is written.
    threshold: Severity,
    is_cold: AtomicBool,
    write: Box<dyn Fn(String) + Send + Sync>,
}

pub(super) struct Report<'a> {
    /// `request` or `batch`.
    pub message: &'static str,
    pub function: &'a str,
    /// The route as the API names it, such as `POST /orders`. A batch has `queue`.
    pub route: &'a str,
    /// HTTP requests, or messages of a batch.
    pub requests: usize,
    pub tally: Tally,
    pub outcomes: Outcomes,
    pub took: Duration,
    pub severity: Severity,
    /// Members beside the metrics, such as keys and ids. Null is left out.
    pub details: Vec<(&'static str, Value)>,
}

/// The outcomes that operators count. `faults` counts beside the others, and each request is in one other at most.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Outcomes {
    unknowns: u32,
    replays: u32,
    refusals: u32,
    superseded: u32,
    fenced: u32,
    faults: u32,
    corrupt_items: u32,
}

impl Outcomes {
    pub(super) fn count(&mut self, outcome: &str, problem: Option<&Problem>) {
        match outcome {
            "outcome_unknown" => self.unknowns += 1,
            "replayed" => self.replays += 1,
            "superseded" => self.superseded += 1,
            "fenced" => self.fenced += 1,
            _ if problem.is_some_and(Problem::is_refusal) => self.refusals += 1,
            _ => {}
        }
        if problem.is_some_and(Problem::is_fault) {
            self.faults += 1;
        }
        let failure = problem.and_then(Problem::source).and_then(|source| source.downcast_ref());
        if let Some(Failure { kind: FailureKind::CorruptItem { .. }, .. }) = failure {
            self.corrupt_items += 1;
        }
    }

    /// Counts a message that failed. It comes again, whatever the reason.
    pub(super) fn count_failed(&mut self, problem: &Problem) {
        let faults = self.faults;
        self.count(problem.code(), Some(problem));
        self.faults = faults + 1;
    }

    pub(super) fn count_missing(&mut self) {
        self.faults += 1;
    }
}

/// Refuses a namespace whose metrics `CloudWatch` drops without a word.
fn check_namespace(namespace: &str) -> Result<(), Source> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./# :".contains(&byte);
    let is_reserved = namespace.starts_with(':') || namespace.starts_with("AWS/");
    if namespace.len() <= 255 && namespace.bytes().all(is_taken) && !is_reserved {
        return Ok(());
    }
    let [name, other] = NAMESPACE_VARIABLES;
    Err(format!(
        "{name} or {other} must be a namespace that CloudWatch takes: at most 255 letters, digits and . - _ / # : with no \
         colon and no AWS/ at the beginning"
    )
    .into())
}

impl Reporter {
    /// # Errors
    /// `CloudWatch` would drop the metrics. Correct the variable that the sentence names.
    pub(super) fn from_env() -> Result<Self, Source> {
        let service = first_set(&[SERVICE_VARIABLE]).filter(|service| !service.is_empty());
        let threshold = Severity::threshold(level().as_deref());
        let namespace = first_set(&NAMESPACE_VARIABLES);
        check_namespace(namespace.as_deref().unwrap_or_default())?;
        Ok(Reporter { service, ..Self::new(namespace, threshold) })
    }

    /// Gives each line to `write`, with metrics in this namespace. The level is that of the environment.
    #[cfg(feature = "testing")]
    pub fn to(namespace: &str, write: impl Fn(String) + Send + Sync + 'static) -> Self {
        let threshold = Severity::threshold(level().as_deref());
        Reporter { write: Box::new(write), ..Self::new(Some(namespace.to_owned()), threshold) }
    }

    pub(super) fn silent() -> Self {
        Self::new(None, Severity::Off)
    }

    pub(super) fn new(namespace: Option<String>, threshold: Severity) -> Self {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let write = Box::new(|line: String| {
            // If the log is gone, no other channel is left.
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        });
        Reporter { namespace, service: None, threshold, is_cold: AtomicBool::new(true), write }
    }

    pub(super) fn write(&self, report: Report) {
        if let Some(line) = self.line(report, Timestamp::from(Clock::system().now())) {
            (self.write)(line.to_string());
        }
    }

    /// The line, unless the level filters it out. Lambda drops lines below its level. So a line with metrics takes it.
    pub(super) fn line(&self, report: Report, now: Timestamp) -> Option<Value> {
        let is_cold = self.is_cold.swap(false, Relaxed);
        if self.namespace.is_none() && report.severity < self.threshold {
            return None;
        }
        let known = report.details.into_iter().filter(|(_, value)| !value.is_null());
        let mut line: Map<_, _> = known.map(|(name, value)| (name.to_owned(), value)).collect();
        let timestamp = now.to_string();
        let texts = [
            ("timestamp", timestamp.as_str()),
            ("level", report.severity.max(self.threshold).name()),
            ("message", report.message),
            ("function", report.function),
            ("route", if report.route.is_empty() { "none" } else { report.route }),
        ];
        line.extend(texts.map(|(name, text)| (name.to_owned(), json!(text))));
        line.extend(self.service.iter().map(|service| ("service".to_owned(), json!(service))));
        let (tally, outcomes) = (report.tally, report.outcomes);
        line.extend(tally.throttling_limit.map(|limit| (LIMIT.to_owned(), json!(limit.name()))));
        let metrics = [
            ("requests", json!(report.requests)),
            ("changes", json!(tally.changes)),
            ("attempts", json!(tally.attempts)),
            ("conflicts", json!(tally.conflicts)),
            ("lost_answers", json!(tally.lost_answers)),
            (THROTTLED, json!(tally.throttled)),
            ("unknowns", json!(outcomes.unknowns)),
            ("replays", json!(outcomes.replays)),
            ("refusals", json!(outcomes.refusals)),
            ("superseded", json!(outcomes.superseded)),
            ("fenced", json!(outcomes.fenced)),
            ("faults", json!(outcomes.faults)),
            ("corrupt_items", json!(outcomes.corrupt_items)),
            ("cold_starts", json!(u8::from(is_cold))),
            (DURATION, json!(millis(report.took))),
        ];
        let holds = [
            ("holds_removed", tally.holds_removed),
            ("holds_given_back", tally.holds_given_back),
            ("holds_burned", tally.holds_burned),
        ];
        // Most functions have none, and each metric costs money.
        let of_holds = holds.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name, json!(count)));
        let metrics: Vec<_> = metrics.into_iter().chain(of_holds).collect();
        if let Some(namespace) = &self.namespace {
            let names = metrics.iter().map(|(name, _)| *name);
            line.insert("_aws".to_owned(), directives(namespace, now, &names.collect::<Vec<_>>(), tally));
        }
        line.extend(metrics.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Some(Value::Object(line))
    }
}

/// Tells `CloudWatch` which members are metrics. All of them are kept in total and by function.
fn directives(namespace: &str, now: Timestamp, names: &[&str], tally: Tally) -> Value {
    let directive = |dimensions: Value, names: &[&str]| {
        let unit = |name: &str| if name == DURATION { "Milliseconds" } else { "Count" };
        let metrics: Vec<_> = names.iter().map(|name| json!({"Name": name, "Unit": unit(name)})).collect();
        json!({"Namespace": namespace, "Dimensions": dimensions, "Metrics": metrics})
    };
    let mut all =
        vec![directive(json!([[], ["function"]]), names), directive(json!([["function", "route"]]), &BY_ROUTE)];
    all.extend(tally.throttling_limit.map(|_| directive(json!([[LIMIT], ["function", LIMIT]]), &[THROTTLED])));
    json!({"Timestamp": now.epoch_millis(), "CloudWatchMetrics": all})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-03-07T10:00:00.000Z".parse().expect("a moment")
    }

    fn report(severity: Severity) -> Report<'static> {
        let tally = Tally { changes: 1, attempts: 3, conflicts: 2, lost_answers: 1, ..Tally::default() };
        Report {
            message: "request",
            function: "device-state",
            route: "GET /devices/{deviceId}",
            requests: 1,
            tally,
            outcomes: Outcomes::default(),
            took: Duration::from_micros(2500),
            severity,
            details: vec![("key", json!("d-1")), ("version", Value::Null)],
        }
    }

    #[test]
    fn a_namespace_that_cloudwatch_drops_is_refused() {
        for namespace in ["", "Fencepost", "a/b.c-d_e#f:g h", "AWSome/x", &"x".repeat(255)] {
            assert!(check_namespace(namespace).is_ok(), "{namespace}");
        }
        for namespace in [":a", "AWS/Lambda", "a,b", "a\n", "\u{e9}", &"x".repeat(256)] {
            let refused = check_namespace(namespace).expect_err(namespace).to_string();
            assert!(refused.starts_with("METRICS_NAMESPACE or "), "{refused}");
        }
    }

    #[test]
    fn a_line_with_metrics_is_never_filtered_out_and_one_without_is() {
        for (level, severity, without, with) in [
            ("DEBUG", Severity::Info, Some("INFO"), "INFO"),
            ("INFO", Severity::Warn, Some("WARN"), "WARN"),
            ("WARN", Severity::Info, None, "WARN"),
            ("ERROR", Severity::Warn, None, "ERROR"),
            ("ERROR", Severity::Error, Some("ERROR"), "ERROR"),
            ("FATAL", Severity::Error, None, "FATAL"),
        ] {
            let threshold = Severity::threshold(Some(level));
            for (namespace, expected) in
                [(None, without), (Some(String::new()), without), (Some("Shop".to_owned()), Some(with))]
            {
                let line = Reporter::new(namespace, threshold).line(report(severity), now());
                let shown = line.as_ref().map(|line| line["level"].as_str().expect("a level"));
                assert_eq!(shown, expected, "{level}");
            }
        }
    }

    /// `tests/devices/metrics.rs` counts the other outcomes.
    #[test]
    fn an_outcome_counts_once_and_a_fault_beside_it() {
        let counted = |outcome: &str, problem: Option<Problem>| {
            let mut outcomes = Outcomes::default();
            outcomes.count(outcome, problem.as_ref());
            outcomes
        };
        let none = Outcomes::default();
        assert_eq!(counted("superseded", None), Outcomes { superseded: 1, ..none });
        assert_eq!(counted("superseded", Some(Problem::refused("superseded", ""))), Outcomes { superseded: 1, ..none });
        assert_eq!(
            counted("fenced", Some(Problem::from(Failure::of(FailureKind::Fenced)))),
            Outcomes { fenced: 1, ..none }
        );
        let failed = |problem: &Problem| {
            let mut outcomes = none;
            outcomes.count_failed(problem);
            outcomes
        };
        let corrupt = Problem::from(Failure::of(FailureKind::CorruptItem { reason: "x".to_owned() }));
        assert_eq!(failed(&corrupt), Outcomes { faults: 1, corrupt_items: 1, ..none });
        assert_eq!(failed(&Problem::invalid("", "missing_field", "")), Outcomes { faults: 1, ..none });
    }
}
