//! [`serve_queue`]: a function behind a queue. Each message of a batch has its own outcome.
//!
//! The answer to a batch names the messages that must come again (`ReportBatchItemFailures`). The queue removes all
//! others. A message that fails again and again ends in the dead-letter queue.
#![expect(clippy::disallowed_methods, reason = "measures how long a batch took, which no logic depends on")]

use super::allowance::call;
use super::event::read;
use super::logs::{Severity, causes};
use super::metrics::{Outcomes, Report, Reporter};
use super::start::start;
use super::xray::invocation_span;
use crate::call::Call;
use crate::error::Source;
use crate::http::Problem;
use crate::store::Store;
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use tokio::time::Instant;
use tracing::Instrument;

/// A finished task. Its message does not come again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// The item of the task, for the log.
    pub key: String,
    /// The outcome in one word, for the log.
    pub outcome: &'static str,
}

/// The outcome of a message. A failed message comes again.
pub type Outcome = Result<Done, Problem>;

/// Serves the batches of a queue until Lambda ends the process.
///
/// `init` makes the state of the function from a store. `handle` returns one outcome for each body, in order.
///
/// # Errors
/// `init` failed or the runtime API of Lambda is not reachable. The process ends, and Lambda reports it.
pub async fn serve_queue<A>(
    init: impl FnOnce(&Store) -> Result<A, Source>,
    handle: impl AsyncFn(&A, &[&str], &Call) -> Vec<Outcome>,
) -> Result<(), Source> {
    let (app, reporter) = start(init)?;
    let answer = async |event| answer_batch(&app, &handle, event, &reporter).await;
    lambda_runtime::run(service_fn(answer)).await
}

/// Answers one event as it comes from Lambda.
///
/// # Errors
/// The event is none of a queue, or as for [`respond_batch`].
pub async fn answer_batch<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &[&str], &Call) -> Vec<Outcome>,
    event: LambdaEvent<Box<RawValue>>,
    reporter: &Reporter,
) -> Result<SqsBatchResponse, Source> {
    respond_and_report(app, handle, read(event)?, reporter).await
}

/// Answers one batch. [`serve_queue`] does the same, and writes a line about each batch. Tests call this.
///
/// # Errors
/// A failed message without an id cannot be named. All messages of the batch come again.
pub async fn respond_batch<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &[&str], &Call) -> Vec<Outcome>,
    event: LambdaEvent<SqsEvent>,
) -> Result<SqsBatchResponse, Source> {
    respond_and_report(app, handle, event, &Reporter::silent()).await
}

async fn respond_and_report<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &[&str], &Call) -> Vec<Outcome>,
    event: LambdaEvent<SqsEvent>,
    reporter: &Reporter,
) -> Result<SqsBatchResponse, Source> {
    let began = Instant::now();
    let function = &event.context.env_config.function_name;
    let call = call(&event.context);
    let messages = &event.payload.records;
    let bodies: Vec<&str> = messages.iter().map(|message| message.body.as_deref().unwrap_or_default()).collect();
    let span = invocation_span(event.context.xray_trace_id.as_deref());
    let mut told = handle(app, &bodies, &call).instrument(span).await.into_iter();
    let mut outcomes = Outcomes::default();
    let mut failed = BTreeSet::new();
    let mut unnamed = false;
    for message in messages {
        let outcome = told.next();
        log_message(function, message, outcome.as_ref());
        match &outcome {
            Some(Ok(done)) => {
                outcomes.count(done.outcome, None);
                continue;
            }
            Some(Err(problem)) => outcomes.count_failed(problem),
            None => outcomes.count_missing(),
        }
        match message.message_id.as_ref().filter(|id| !id.is_empty()) {
            Some(id) => {
                failed.insert(id);
            }
            None => unnamed = true,
        }
    }
    let details = vec![
        ("request_id", json!(event.context.request_id)),
        ("trace_id", json!(event.context.xray_trace_id)),
        ("failed", json!(failed.len())),
    ];
    let report = Report {
        message: "batch",
        function,
        route: "queue",
        requests: messages.len(),
        tally: call.tally(),
        outcomes,
        took: began.elapsed(),
        severity: Severity::Info,
        details,
    };
    reporter.write(report);
    if unnamed {
        return Err("a message that failed has no id, so the whole batch has to come again".into());
    }
    let failures = failed.into_iter().map(|id| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier.clone_from(id);
        failure
    });
    let mut answer = SqsBatchResponse::default();
    answer.batch_item_failures = failures.collect();
    Ok(answer)
}

/// Logs one line per message. A failed message is a warning, because it comes again or ends in the dead-letter queue.
/// The body of the message is not logged.
fn log_message(function: &str, message: &SqsMessage, outcome: Option<&Outcome>) {
    let message_id = message.message_id.as_deref();
    match outcome {
        Some(Ok(Done { key, outcome })) => tracing::info!(function, messageId = message_id, key, outcome, "task"),
        Some(Err(problem)) if problem.is_fault() => {
            let error = causes(problem);
            tracing::warn!(function, messageId = message_id, outcome = problem.code(), error, "task");
        }
        Some(Err(problem)) => {
            let (outcome, field, error) = (problem.code(), problem.field(), problem.detail());
            tracing::warn!(function, messageId = message_id, outcome, field, error, "task");
        }
        None => tracing::error!(function, messageId = message_id, outcome = "internal", "task"),
    }
}
