//! The embedded engine behind a connector that takes its time and counts.

use crate::table;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient, retry::RetryConfig};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dynoxide::{Database, DynoxideError};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// A way to the engine that takes `hop` there and `hop` back.
#[derive(Clone)]
pub struct Wire {
    db: Database,
    hop: Duration,
    requests: Arc<AtomicU32>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// A wire to an empty engine that has the one table.
    #[must_use]
    pub fn new(hop: Duration) -> Self {
        Wire { db: table::engine(), hop, requests: Arc::default() }
    }

    /// The requests since the last time.
    #[must_use]
    pub fn take_requests(&self) -> u32 {
        self.requests.swap(0, SeqCst)
    }

    /// The real SDK over this wire, its retries off.
    #[must_use]
    pub fn client(&self) -> Client {
        let connector = SharedHttpConnector::new(self.clone());
        client("http://engine.invalid", http_client_fn(move |_, _| connector.clone()))
    }

    fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        match operation {
            "GetItem" => run(body, |request| self.db.get_item(request)),
            "PutItem" => run(body, |request| self.db.put_item(request)),
            "UpdateItem" => run(body, |request| self.db.update_item(request)),
            other => (501, format!("{other} is not measured")),
        }
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.requests.fetch_add(1, SeqCst);
        let wire = self.clone();
        HttpConnectorFuture::new(async move {
            tokio::time::sleep(wire.hop).await;
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default();
            let (status, body) = wire.answer(operation, request.body().bytes().unwrap_or_default());
            tokio::time::sleep(wire.hop).await;
            let status = status.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
            Ok(HttpResponse::new(status, SdkBody::from(body)))
        })
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> (u16, String) {
    let Ok(request) = serde_json::from_slice(body) else { return (400, "{}".to_owned()) };
    match operation(request) {
        Ok(answer) => (200, serde_json::to_string(&answer).unwrap_or_default()),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

/// A client with fixed credentials and without retries.
pub fn client(endpoint: &str, http: SharedHttpClient) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(http)
        .build();
    Client::from_conf(config)
}
