//! [`serve_schedule`]: a function that a schedule starts.
#![expect(clippy::disallowed_methods, reason = "measures how long the work took, which no logic depends on")]

use super::allowance::call;
use super::logs::{Severity, causes};
use super::metrics::{Outcomes, Report, Reporter};
use super::queue::{Done, Outcome};
use super::start::start;
use super::xray::invocation_span;
use crate::call::Call;
use crate::error::Source;
use crate::store::Store;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::Instrument;

/// Does scheduled work until Lambda ends the process.
///
/// `init` makes the state of the function from a store. `work` does the work once. Nothing of the event is read. If the work
/// fails, the invocation does, so that Lambda counts an error and runs it again.
///
/// # Errors
/// `init` failed or the runtime API of Lambda is not reachable. The process ends, and Lambda reports it.
pub async fn serve_schedule<A>(
    init: impl FnOnce(&Store) -> Result<A, Source>,
    work: impl AsyncFn(&A, &Call) -> Outcome,
) -> Result<(), Source> {
    let (app, reporter) = start(init)?;
    let run = async |event| run_scheduled(&app, &work, event, &reporter).await;
    lambda_runtime::run(service_fn(run)).await
}

/// Does the work once, for one event as it comes from Lambda. Answers with what was done.
///
/// # Errors
/// The work failed.
pub async fn run_scheduled<A>(
    app: &A,
    work: &impl AsyncFn(&A, &Call) -> Outcome,
    event: LambdaEvent<Box<RawValue>>,
    reporter: &Reporter,
) -> Result<String, Source> {
    let (began, context) = (Instant::now(), event.context);
    let call = call(&context);
    let done = work(app, &call).instrument(invocation_span(context.xray_trace_id.as_deref())).await;
    let mut outcomes = Outcomes::default();
    let (outcome, severity) = match &done {
        Ok(done) => {
            outcomes.count(done.outcome, None);
            (done.outcome, Severity::Info)
        }
        Err(problem) => {
            outcomes.count_failed(problem);
            (problem.code(), Severity::Error)
        }
    };
    let details = vec![
        ("request_id", json!(context.request_id)),
        ("trace_id", json!(context.xray_trace_id)),
        ("key", json!(done.as_ref().ok().map(|done| &done.key))),
        ("outcome", json!(outcome)),
        ("error", json!(done.as_ref().err().map(causes))),
    ];
    reporter.write(Report {
        message: "run",
        function: &context.env_config.function_name,
        route: "schedule",
        requests: 1,
        tally: call.tally(),
        outcomes,
        took: began.elapsed(),
        severity,
        details,
    });
    let Done { key, .. } = done?;
    Ok(key)
}
