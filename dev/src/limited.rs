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

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests ask the engine behind the crate's back")]
mod tests {
    use crate::{args::Engine, dynamodb::DynamoDb, tables, template::Template};
    use aws_sdk_dynamodb::{error::ProvideErrorMetadata as _, types::AttributeValue::S};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn an_item_is_throttled_beyond_its_units_and_another_one_is_not() {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("its address").port();
        let engine = Engine { port: free, item_write_units: Some(1), ..Engine::default() };
        let dynamodb = DynamoDb::start(&engine).await.expect("an engine");
        let template = Template::load(crate::workspace()).expect("template.yaml");
        tables::create(&dynamodb, &template.tables).await.expect("tables");
        let client = dynamodb.client_of_functions();
        let put = async |id: &str| {
            let sent = client.put_item().table_name("Products").item("productId", S(id.to_owned())).send().await;
            sent.map_err(|error| error.code().unwrap_or_default().to_owned()).map(|_| ())
        };
        let mut answers = Vec::new();
        while answers.len() < 100 && answers.last() != Some(&Err("ThrottlingException".to_owned())) {
            answers.push(put("hot").await); // the first ones use up the second's unit
        }
        assert_eq!(answers.pop(), Some(Err("ThrottlingException".to_owned())));
        assert!(!answers.is_empty() && answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(put("cold").await, Ok(()));
    }
}
