//! An embedded DynamoDB with one of DynamoDB's limits, and with answers that get lost.
#![expect(clippy::print_stdout, reason = "says in the terminal of `cargo dev` which answers are lost")]

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

/// An empty one in memory. It throttles an item beyond so many write units a second, as a partition of DynamoDB does beyond
/// 1,000, and answers so many of 100 writes with HTTP 500 after it has carried them out. Each answer takes some milliseconds.
pub fn dynamodb(write_units: Option<u32>, lost_answers: u8) -> Router {
    let dynamo = Dynamo::new();
    if let Some(units) = write_units {
        dynamo.capacity(Capacity::of_items().with_units(3_000.0, units.into()));
    }
    // Not of `CreateTable`: sent again, it finds its table there.
    for operation in ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"] {
        dynamo.lose_answer().of(operation).with_probability(f64::from(lost_answers) / 100.0);
    }
    let routes =
        Router::new().fallback(async move |parts: Parts, body: Bytes| answer(&dynamo.wire(), parts, body).await);
    routes.layer(DefaultBodyLimit::disable())
}

async fn answer(wire: &Wire, parts: Parts, body: Bytes) -> Response {
    let Some(target) = parts.headers.get("x-amz-target").cloned() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let request = HttpRequest::try_from(Request::from_parts(parts, SdkBody::from(body)));
    let answered = wire.call(request.expect("an HTTP request")).await;
    let Ok(answer) = answered else {
        println!("the answer to {} is lost", target.to_str().unwrap_or_default());
        let error =
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"the answer was lost"}"#;
        let header = [("content-type", "application/x-amz-json-1.0")];
        return (StatusCode::INTERNAL_SERVER_ERROR, header, error).into_response();
    };
    answer.try_into_http1x().expect("an HTTP response").map(Body::new)
}
