//! The HTTPS client of the SDK: HTTP/1.1 over TLS, on kept connections.
//!
//! The SDK's own client also speaks HTTP/2, knows proxies and has a second way to read roots, which takes 0.6 MB of a
//! function. `DynamoDB` speaks HTTP/1.1.

#[cfg(feature = "lambda")]
use super::tls::{Connections, connections};
use aws_sdk_dynamodb::config::{HttpClient, RuntimeComponents, SharedHttpClient};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http::{Request, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector as Tcp, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{error::Elapsed, timeout};
use tower_service::Service;

/// The HTTPS client of [`client_from_env`](super::client_from_env), for an SDK configuration of your own.
///
/// It speaks HTTP/1.1, over TLS where the endpoint is `https`, and keeps its connections. It applies the connect and
/// the read timeout of the SDK. It knows no proxies. The trusted authorities are read once, now: those that
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name, or else those of the system. Without the feature `lambda` there is no TLS:
/// an endpoint with `https` is an error of each request.
///
/// ```no_run
/// # async fn client() -> aws_sdk_dynamodb::Client {
/// let config = aws_config::defaults(aws_config::BehaviorVersion::latest());
/// let config = config.http_client(fencepost::lambda::https_client()).load().await;
/// aws_sdk_dynamodb::Client::new(&config)
/// # }
/// ```
#[must_use]
pub fn https_client() -> SharedHttpClient {
    let mut tcp = Tcp::new();
    tcp.set_nodelay(true);
    SharedHttpClient::new(Client { connections: connections(tcp), pools: Mutex::default() })
}

#[cfg(not(feature = "lambda"))]
type Connections = Tcp;

#[cfg(not(feature = "lambda"))]
fn connections(tcp: Tcp) -> Connections {
    tcp
}

type Timeouts = (Option<Duration>, Option<Duration>);

struct Client {
    connections: Connections,
    /// The SDK asks for a pool before every request. Requests with the same timeouts share one.
    pools: Mutex<Vec<(Timeouts, SharedHttpConnector)>>,
}

impl HttpClient for Client {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let timeouts = (settings.connect_timeout(), settings.read_timeout());
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pool)) = pools.iter().find(|(of, _)| *of == timeouts) {
            return pool.clone();
        }
        let (connect_timeout, read_timeout) = timeouts;
        let connector = Connector { connections: self.connections.clone(), timeout: connect_timeout };
        let client = legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let pool = SharedHttpConnector::new(Pool { client, read_timeout });
        pools.push((timeouts, pool.clone()));
        pool
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        Some(ConnectorMetadata::new("hyper", Some("1.x".into())))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("https_client")
    }
}

/// Opens connections. The timeout is for the name, TCP and TLS together.
#[derive(Clone)]
struct Connector {
    connections: Connections,
    timeout: Option<Duration>,
}

type Stream = <Connections as Service<Uri>>::Response;
type Connecting = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Connecting;

    #[allow(clippy::needless_question_mark, reason = "without TLS the errors are of another type")]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connections.poll_ready(cx).map(|ready| Ok(ready?))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let (connecting, limit) = (self.connections.call(uri), self.timeout);
        Box::pin(async move {
            Ok(match limit {
                None => connecting.await?,
                Some(limit) => timeout(limit, connecting).await??,
            })
        })
    }
}

struct Pool {
    client: legacy::Client<Connector, SdkBody>,
    read_timeout: Option<Duration>,
}

impl HttpConnector for Pool {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request: Request<SdkBody> = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let connection = capture_connection(&mut request);
        if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
            capture.set_connection_retriever(move || metadata(&connection));
        }
        let answer = self.client.request(request);
        let limit = self.read_timeout;
        HttpConnectorFuture::new(async move {
            let answer = match limit {
                None => answer.await,
                Some(limit) => timeout(limit, answer).await.map_err(|late| ConnectorError::timeout(late.into()))?,
            };
            let answer = answer.map_err(unanswered)?;
            HttpResponse::try_from(answer.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

/// With this, the SDK closes the connection after an error that a request on another connection may not have.
fn metadata(connection: &CaptureConnection) -> Option<ConnectionMetadata> {
    connection.connection_metadata().as_ref()?;
    let connection = connection.clone();
    let poison = move || {
        if let Some(connected) = connection.connection_metadata().as_ref() {
            connected.poison();
        }
    };
    Some(ConnectionMetadata::builder().proxied(false).poison_fn(poison).build())
}

/// A timeout or a failure of the connection. Whether the request had left stands in the error itself.
fn unanswered(error: legacy::Error) -> ConnectorError {
    let mut next = error.source();
    while let Some(source) = next {
        if source.is::<Elapsed>() {
            return ConnectorError::timeout(error.into());
        }
        next = source.source();
    }
    ConnectorError::io(error.into())
}
