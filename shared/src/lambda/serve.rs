//! [`serve`]: a function behind an HTTP API.
#![expect(clippy::disallowed_methods, reason = "measures how long a request took, which no logic depends on")]

use super::allowance::{call, check_timeout};
use super::client::client_from_env;
use super::env;
use super::event::{read, to_event, to_request};
use super::logs::{Severity, chain, init_tracing};
use super::metrics::{Outcomes, Report, Reporter};
use super::xray::invocation_span;
use crate::call::Call;
use crate::error::Source;
use crate::http::{Problem, Request, Response};
use crate::store::Store;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument;

/// The variable with the member of a Lambda authorizer's context that names the caller.
const CALLER_VARIABLE: &str = "AUTHORIZER_CALLER";

/// Serves HTTP API events until Lambda ends the process.
///
/// `init` makes the state of the function from a store. It sends nothing to `DynamoDB`. `handle` answers one request.
///
/// # Errors
/// `init` failed, or the runtime API of Lambda is not reachable. The process ends, and Lambda reports it.
pub async fn serve<A>(
    init: impl FnOnce(&Store) -> Result<A, Source>,
    handle: impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
) -> Result<(), Error> {
    init_tracing(&[]);
    check_timeout()?;
    let reporter = Reporter::from_env();
    let app = init(&Store::new(&client_from_env()))?;
    let member = env::required(CALLER_VARIABLE).ok(); // without one, such a context names nobody
    let answer = async |event| {
        Ok::<_, Error>(respond_and_report(&app, &handle, read(event)?, member.as_deref(), &reporter).await)
    };
    lambda_runtime::run(service_fn(answer)).await
}

/// Answers one event. [`serve`] does the same, reads the environment, and writes a line about each request. Tests call
/// this.
pub async fn respond<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
    event: LambdaEvent<ApiGatewayV2httpRequest>,
) -> ApiGatewayV2httpResponse {
    respond_and_report(app, handle, event, None, &Reporter::silent()).await
}

/// Answers one event as [`serve`] does, in a program that runs several functions. `caller` is the member of a Lambda
/// authorizer's context that names the caller, and `reporter` takes the line about the request.
pub async fn respond_and_report<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
    event: LambdaEvent<ApiGatewayV2httpRequest>,
    caller: Option<&str>,
    reporter: &Reporter,
) -> ApiGatewayV2httpResponse {
    let start = Instant::now();
    let context = event.context;
    let call = call(&context);
    let request = to_request(event.payload, caller);
    let span = invocation_span(context.xray_trace_id.as_deref());
    let result = handle(app, &request, &call).instrument(span).await;
    let fault = result.as_ref().err().filter(|problem| problem.is_fault()).map(chain);
    let mut outcomes = Outcomes::default();
    match &result {
        Ok(response) => outcomes.count(response.outcome(), None),
        Err(problem) => outcomes.count(problem.code(), Some(problem)),
    }
    let response = result.unwrap_or_else(Problem::into_response);
    // The table causes the other faults.
    let severity = match &fault {
        None => Severity::Info,
        Some(_) if response.outcome() == "internal" => Severity::Error,
        Some(_) => Severity::Warn,
    };
    let details = vec![
        ("request_id", json!(context.request_id)),
        ("trace_id", json!(context.xray_trace_id)),
        ("key", json!(request.key())),
        ("status", json!(response.status())),
        ("outcome", json!(response.outcome())),
        ("version", json!(response.version())),
        ("error", json!(fault)),
    ];
    let report = Report {
        message: "request",
        function: &context.env_config.function_name,
        route: request.matched_route.get().copied().or(request.route_key.as_deref()).unwrap_or_default(),
        requests: 1,
        tally: call.tally(),
        outcomes,
        took: start.elapsed(),
        severity,
        details,
    };
    reporter.write(report);
    to_event(response)
}
