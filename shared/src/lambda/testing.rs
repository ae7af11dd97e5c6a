//! The output of a function for `CloudWatch` and X-Ray, for fuzzing. The parts of [`serve`](super::serve), for a
//! program that runs several functions.

use super::logs::{Severity, filter, lines};
use super::metrics::{Outcomes, Report};
use super::xray;
use crate::call::{Call, Tally};
use crate::deadline::Deadline;
use crate::http::Problem;
use crate::timestamp::Timestamp;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;

pub use super::logs::init_tracing;
pub use super::metrics::Reporter;
pub use super::queue::answer_batch;
pub use super::schedule::run_scheduled;
pub use super::serve::answer_request;

/// A reported request or batch.
#[derive(Debug)]
pub struct Reported<'a> {
    /// The namespace of the metrics, if there are any.
    pub namespace: Option<&'a str>,
    /// The level below which lines are left out.
    pub level: Option<&'a str>,
    /// The name of the function.
    pub function: &'a str,
    /// The route.
    pub route: &'a str,
    /// A name and a text beside the metrics.
    pub details: Vec<(&'static str, &'a str)>,
    /// The outcomes, with the problem where it is none of success.
    pub outcomes: Vec<(&'a str, Option<Problem>)>,
    /// How long it took.
    pub took: Duration,
    /// When it is reported.
    pub now: Timestamp,
}

/// The line about a request or a batch. `None` if the level leaves it out.
#[must_use]
pub fn report_line(reported: Reported<'_>) -> Option<String> {
    let mut outcomes = Outcomes::default();
    let mut severity = Severity::Info;
    for (outcome, problem) in &reported.outcomes {
        outcomes.count(outcome, problem.as_ref());
        if problem.as_ref().is_some_and(Problem::is_fault) {
            severity = Severity::Error;
        }
    }
    let tally: Tally = Call::new(Deadline::within(Duration::ZERO)).tally();
    let report = Report {
        message: "request",
        function: reported.function,
        route: reported.route,
        requests: reported.outcomes.len(),
        tally,
        outcomes,
        took: reported.took,
        severity,
        details: reported.details.into_iter().map(|(name, text)| (name, json!(text))).collect(),
    };
    let namespace = reported.namespace.map(str::to_owned);
    let reporter = Reporter::new(namespace, Severity::threshold(reported.level));
    reporter.line(report, reported.now).map(|line| line.to_string())
}

/// The log of `work` at the level INFO, in the form of the functions.
pub fn logged(work: impl FnOnce()) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::registry().with(lines().with_writer(move || writer.clone()).with_filter(filter(None)));
    tracing::subscriber::with_default(subscriber, work);
    let bytes = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The subsegment of a send with these fields, under an invocation with this trace header.
#[must_use]
pub fn subsegment(header: &str, fields: &[(&'static str, &str)]) -> Option<Value> {
    xray::subsegment_of(header, fields)
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
