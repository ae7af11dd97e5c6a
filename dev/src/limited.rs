//! An embedded DynamoDB with one of DynamoDB's limits.

use aws_smithy_runtime_api::client::{http::HttpConnector as _, orchestrator::HttpRequest};
use aws_smithy_types::body::SdkBody;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::DefaultBodyLimit,
    http::{Request, StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use fencepost_test::{Capacity, Dynamo, Wire};

/// An empty one in memory. It throttles an item beyond so many write units a second, as a partition of DynamoDB does
/// beyond 1,000. Each answer takes some milliseconds.
pub fn dynamodb(write_units: u32) -> Router {
    let dynamo = Dynamo::new();
    dynamo.capacity(Capacity::of_items().with_units(3_000.0, write_units.into()));
    let routes =
        Router::new().fallback(async move |parts: Parts, body: Bytes| answer(&dynamo.wire(), parts, body).await);
    routes.layer(DefaultBodyLimit::disable())
}

async fn answer(wire: &Wire, parts: Parts, body: Bytes) -> Response {
    if !parts.headers.contains_key("x-amz-target") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let request = HttpRequest::try_from(Request::from_parts(parts, SdkBody::from(body)));
    let answer = wire.call(request.expect("an HTTP request")).await.expect("no request is lost");
    answer.try_into_http1x().expect("an HTTP response").map(Body::new)
}
