//! [`serve`]: a function behind an HTTP API.
#![expect(clippy::disallowed_methods, reason = "measures how long a request took, which no logic depends on")]

use super::allowance::{call, check_timeout};
use super::client::client_from_env;
use super::event::{read, to_event};
use super::logs::{chain, log_json, log_request};
use crate::call::Call;
use crate::error::Source;
use crate::http::{Problem, Request, Response};
use crate::store::Store;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use tokio::time::Instant;

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
    log_json();
    check_timeout()?;
    let app = init(&Store::new(&client_from_env()))?;
    let answer = async |event| Ok::<_, Error>(respond(&app, &handle, read(event)?).await);
    lambda_runtime::run(service_fn(answer)).await
}

/// Answers one event, and logs one line about it. [`serve`] calls this, and so do the tests.
pub async fn respond<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
    event: LambdaEvent<ApiGatewayV2httpRequest>,
) -> ApiGatewayV2httpResponse {
    let start = Instant::now();
    let function = event.context.env_config.function_name.clone();
    let call = call(&event.context);
    let request = Request::from(event.payload);
    let result = handle(app, &request, &call).await;
    let fault = result.as_ref().err().filter(|problem| problem.is_fault()).map(chain);
    let response = result.unwrap_or_else(Problem::into_response);
    log_request(&function, &request, &call, &response, fault.as_deref(), start.elapsed());
    to_event(&response)
}
