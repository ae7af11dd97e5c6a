//! The seam of the SDK: a connector in place of its HTTP client; a request on the wire and its answer.

use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpClient, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;

/// The configuration of a client, with the retries and timeouts of the SDK.
///
/// The SDK lets all clients of a process share one allowance of retries. Here each client has its own. A seed tells the
/// same story in any process.
pub fn config() -> Builder {
    Config::builder()
        .retry_partition(RetryPartition::custom("one client").build())
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url("http://engine.invalid")
}

/// The HTTP client that sends everything over this connector.
pub fn http_client(connector: impl HttpConnector + 'static) -> SharedHttpClient {
    let connector = SharedHttpConnector::new(connector);
    SharedHttpClient::new(http_client_fn(move |_, _| connector.clone()))
}

/// A client of the real SDK over any connector, with its own retries switched off.
pub fn client_over(connector: impl HttpConnector + 'static) -> Client {
    let config = config().retry_config(RetryConfig::disabled()).http_client(http_client(connector));
    Client::from_conf(config.build())
}

/// The operation that a request names, without the service's prefix.
pub fn operation_of(request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target").expect("the SDK names its target");
    target.rsplit('.').next().expect("a name").to_owned()
}

/// The bytes of a request.
pub fn body_of(request: &HttpRequest) -> Vec<u8> {
    request.body().bytes().expect("requests are buffered").to_vec()
}

/// The CRC-32 that the service sends with a body.
pub fn checksum_of(body: &[u8]) -> u32 {
    crc32fast::hash(body)
}

/// An answer in the service's clothes, as a connector gives it: with its type and its checksum.
///
/// # Errors
/// None. A connector's answer is a `Result`.
pub fn response(status: u16, body: impl Into<String>) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().expect("a status");
    let body = body.into();
    let checksum = checksum_of(body.as_bytes()).to_string();
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response.headers_mut().insert("x-amz-crc32", checksum);
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

/// The operation for a transaction of writes.
pub const TRANSACTION: &str = "TransactWriteItems";

/// A request of the service's JSON protocol.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number that the client gave with [`Wire::works_on`](crate::Wire::works_on), to tell who sent it.
    pub op: u64,
    /// `GetItem`, `UpdateItem` …
    pub operation: String,
    /// The request, as the SDK writes it.
    pub body: Value,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The answer or the error of the service.
    pub body: Value,
}

impl Request {
    pub(crate) fn read(request: &HttpRequest) -> Self {
        let body = serde_json::from_slice(&body_of(request)).expect("requests are JSON");
        Request { op: 0, operation: operation_of(request), body }
    }

    /// The token of a transaction.
    pub fn token(&self) -> Option<&str> {
        self.body["ClientRequestToken"].as_str()
    }
}

impl Answer {
    /// Whether the service executed the request.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The name of the error that it is, such as `ThrottlingException`.
    pub fn code(&self) -> Option<&str> {
        let kind = self.body["__type"].as_str()?;
        Some(kind.rsplit_once('#').map_or(kind, |(_, code)| code))
    }

    pub(crate) fn into_response(self) -> Result<HttpResponse, ConnectorError> {
        response(self.status, self.body.to_string())
    }
}
