//! [`serve`]: a router of axum behind an HTTP API or a Function URL.
#![expect(clippy::disallowed_methods, reason = "measures how long a request took, which no logic depends on")]

use super::allowance::call;
use super::env;
use super::event::{key_of, read_request, to_event, to_request};
use super::logs::{Severity, causes};
use super::metrics::{Outcomes, Report, Reporter};
use super::start::start;
use super::xray::invocation_span;
use crate::error::Source;
use crate::http::{Problem, Told};
use crate::store::Store;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::response::IntoResponse;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

/// The variable with the member of a Lambda authorizer's context that names the caller.
const CALLER_VARIABLE: &str = "AUTHORIZER_CALLER";

/// Serves the events of an HTTP API (payload 2.0) or of a Function URL until Lambda ends the process.
///
/// `init` makes the router from a store. It sends nothing to `DynamoDB`. Each request has an
/// [`Invocation`](crate::http::Invocation) in its extensions: the caller that API Gateway authorised, Lambda's id of the
/// request, and the time until Lambda's deadline, less [`MARGIN`](super::MARGIN).
///
/// If the event names the route that the gateway matched, the path of the request is that route with its parameters.
/// Neither a stage nor a base path is in it, and a parameter keeps its `/`. Otherwise (`$default`), it is the raw path, of
/// which nothing is decoded: a `%2F` in it is three characters of a parameter.
///
/// The line about a request has the outcome of the [`Response`](crate::http::Response) or the [`Problem`] that the router
/// answered with. Of other answers it knows the status alone.
///
/// # Errors
/// `init` failed or the runtime API of Lambda is not reachable. The process ends, and Lambda reports it. An event of a
/// REST API or of a load balancer is an error of that invocation.
pub async fn serve(init: impl FnOnce(&Store) -> Result<Router, Source>) -> Result<(), Source> {
    let (router, reporter) = start(init)?;
    let member = env::required(CALLER_VARIABLE).ok(); // without one, such a context names nobody
    let answer = async |event| answer_request(&router, event, member.as_deref(), &reporter).await;
    lambda_runtime::run(service_fn(answer)).await
}

/// Answers one event as it comes from Lambda. `member` is the member of a Lambda authorizer's context that names the caller.
///
/// # Errors
/// The event is none of an HTTP API or a Function URL.
pub async fn answer_request(
    router: &Router,
    event: LambdaEvent<Box<RawValue>>,
    member: Option<&str>,
    reporter: &Reporter,
) -> Result<ApiGatewayV2httpResponse, Error> {
    Ok(respond_and_report(router, read_request(event)?, member, reporter).await)
}

/// Answers one event. [`serve`] does the same, reads the environment, and writes a line. Tests call this.
pub async fn respond(router: &Router, event: LambdaEvent<ApiGatewayV2httpRequest>) -> ApiGatewayV2httpResponse {
    respond_and_report(router, event, None, &Reporter::silent()).await
}

async fn respond_and_report(
    router: &Router,
    event: LambdaEvent<ApiGatewayV2httpRequest>,
    member: Option<&str>,
    reporter: &Reporter,
) -> ApiGatewayV2httpResponse {
    let began = Instant::now();
    let LambdaEvent { payload, context, .. } = event;
    let (key, route_key) = (key_of(&payload), payload.route_key.clone());
    let (request, invocation) = to_request(payload, member, &context.request_id, call(&context));
    let span = invocation_span(context.xray_trace_id.as_deref());
    let answer = match request {
        Some(request) => {
            let Ok(answer) = router.clone().call(request).instrument(span).await;
            answer
        }
        None => IntoResponse::into_response(Problem::no_such_route()),
    };
    let (parts, body) = whole(answer).await.into_parts();
    let (told, status) = (parts.extensions.get::<Told>().map(|told| &told.answer), parts.status);
    let (outcome, version, problem) = match told {
        Some(Ok((outcome, version))) => (*outcome, *version, None),
        Some(Err(problem)) => (problem.code(), None, Some(Arc::as_ref(problem))),
        None => (status.canonical_reason().unwrap_or_default(), None, None),
    };
    let mut outcomes = Outcomes::default();
    outcomes.count(outcome, problem);
    let fault = problem.filter(|problem| problem.is_fault()).map(causes);
    let severity = match &fault {
        None if told.is_none() && status.is_server_error() => {
            outcomes.count_missing();
            Severity::Error
        }
        None => Severity::Info,
        Some(_) if outcome == "internal" => Severity::Error,
        Some(_) => Severity::Warn, // the table causes it
    };
    let details = vec![
        ("request_id", json!(context.request_id)),
        ("trace_id", json!(context.xray_trace_id)),
        ("key", json!(key)),
        ("status", json!(status.as_u16())),
        ("outcome", json!(outcome)),
        ("version", json!(version)),
        ("error", json!(fault)),
    ];
    let report = Report {
        message: "request",
        function: &context.env_config.function_name,
        route: invocation.route().or(route_key.as_deref()).unwrap_or_default(),
        requests: 1,
        tally: invocation.call().tally(),
        outcomes,
        took: began.elapsed(),
        severity,
        details,
    };
    reporter.write(report);
    to_event(&parts, body)
}

/// The answer with its whole body. The body of an answer of this crate is there already.
async fn whole(answer: axum::response::Response) -> http::Response<Bytes> {
    let (parts, body) = answer.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(body) => http::Response::from_parts(parts, body),
        Err(error) => Box::pin(whole(IntoResponse::into_response(Problem::internal(error)))).await,
    }
}
