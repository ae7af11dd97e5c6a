//! A request on the wire and its answer.

use crate::connection::{body_of, operation_of, response};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

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
