//! Requests from axum, and answers for it. The parsers are those of [`Request`].

use super::preconditions::{IfMatch, Preconditions};
use super::problem::Problem;
use super::request::{Id, Ip, MAX_BODY, QueryString, Request};
use super::response::Response;
use super::validator::Validator;
use crate::call::Call;
use crate::deadline::Deadline;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, RawPathParams};
use axum::response::IntoResponse;
use futures_core::Stream;
use http::request::Parts;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// The knowledge of a transport about a request beside HTTP: the caller, the id of the request and the remaining time.
///
/// It stands in the extensions of the request. `lambda::serve` takes it from the event and from Lambda's context. In a
/// container, a middleware inserts it, and without it a [`Request`] is answered by 500. A copy belongs to the same request.
///
/// ```
/// use axum::extract::Request;
/// use axum::{Router, middleware::map_request};
/// use fencepost::{Deadline, http::Invocation};
/// use std::time::Duration;
///
/// fn with_invocations(router: Router) -> Router {
///     router.layer(map_request(async |mut request: Request| {
///         // Your authentication names the caller. Callers with one name share their idempotency keys.
///         let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
///         let invocation = Invocation::new("anonymous", id, Deadline::within(Duration::from_secs(5)));
///         request.extensions_mut().insert(invocation);
///         request
///     }))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Invocation {
    told: Arc<About>,
}

#[derive(Debug)]
struct About {
    caller: String,
    request_id: String,
    call: Call,
    route: OnceLock<String>,
}

impl Invocation {
    /// Creates it for one request. An empty `caller` means that callers cannot be told apart.
    #[must_use]
    pub fn new(caller: impl Into<String>, request_id: impl Into<String>, deadline: Deadline) -> Self {
        Self::with_call(caller.into(), request_id.into(), Call::new(deadline))
    }

    pub(crate) fn with_call(caller: String, request_id: String, call: Call) -> Self {
        Invocation { told: Arc::new(About { caller, request_id, call, route: OnceLock::new() }) }
    }

    /// The caller. See [`Request::caller`].
    #[must_use]
    pub fn caller(&self) -> &str {
        &self.told.caller
    }

    /// The id of the request, for the log.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.told.request_id
    }

    /// The remaining time and the tally of the operations.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.told.call
    }

    #[cfg(feature = "lambda-without-tls")]
    pub(crate) fn route(&self) -> Option<&str> {
        self.told.route.get().map(String::as_str)
    }
}

impl<S: Sync> FromRequestParts<S> for Invocation {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let missing = || Problem::internal("the extensions of the request have no fencepost::http::Invocation");
        parts.extensions.get::<Invocation>().cloned().ok_or_else(missing)
    }
}

/// Says that the body is the text that was to be its base64, because it could not be decoded.
#[derive(Clone, Copy)]
pub(crate) struct NotDecoded;

/// Reads the whole body, and of one that is too large no more than the parser needs to refuse it.
///
/// Rejects only a body that does not arrive. Everything else is found where a handler asks for it, in its order.
impl<S: Send + Sync> FromRequest<S> for Request {
    type Rejection = Problem;

    async fn from_request(request: axum::extract::Request, _: &S) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let body = read(body).await?;
        let mut request = with_body(&mut parts, &body).await?;
        request.body.is_base64 |= parts.extensions.get::<NotDecoded>().is_some();
        Ok(request)
    }
}

async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    let (mut stream, mut bytes) = (body.into_data_stream(), Vec::new());
    while bytes.len() <= MAX_BODY
        && let Some(chunk) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await
    {
        let chunk = chunk.map_err(|_| Problem::invalid("", "invalid_json", "the body did not arrive completely"))?;
        if bytes.is_empty() { bytes = chunk.into() } else { bytes.extend_from_slice(&chunk) }
    }
    Ok(bytes)
}

async fn with_body(parts: &mut Parts, body: &[u8]) -> Result<Request, Problem> {
    let invocation = Invocation::from_request_parts(parts, &()).await?;
    let mut request = Request::from_http(parts, body, invocation.caller());
    request.path_parameters = parameters(parts).await?;
    if let Some(path) = parts.extensions.get::<MatchedPath>() {
        request.route = format!("{} {}", parts.method, path.as_str());
        // A second extraction finds the same route.
        let _ = invocation.told.route.set(request.route.clone());
    }
    Ok(request)
}

async fn parameters(parts: &mut Parts) -> Result<BTreeMap<String, String>, Problem> {
    match RawPathParams::from_request_parts(parts, &()).await {
        Ok(parameters) => Ok(parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        Err(RawPathParamsRejection::InvalidUtf8InPathParam(error)) => {
            Err(Problem::invalid("path", "invalid_id", error.body_text()))
        }
        Err(_) => Ok(BTreeMap::new()), // not in a route
    }
}

async fn only_parameter(parts: &mut Parts) -> Result<(String, String), Problem> {
    let mut all = parameters(parts).await?.into_iter();
    match (all.next(), all.next()) {
        (Some(only), None) => Ok((format!("path:{}", only.0), only.1)),
        _ => Err(Problem::internal("the path of this route has not exactly one parameter: extract a Request")),
    }
}

/// The id, as the only parameter of the path.
impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (field, text) = only_parameter(parts).await?;
        Id::parse(&text, &field)
    }
}

/// The address, as the only parameter of the path.
impl<S: Send + Sync> FromRequestParts<S> for Ip {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (field, text) = only_parameter(parts).await?;
        Ip::parse(&text, &field)
    }
}

impl<S: Sync, V: Validator> FromRequestParts<S> for IfMatch<V> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Request::from_http(parts, b"", "").if_match()
    }
}

impl<S: Sync, V: Validator> FromRequestParts<S> for Preconditions<V> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Request::from_http(parts, b"", "").read_preconditions()
    }
}

/// The idempotency key of a request, if it has one: [`Request::idempotency_key`]. For a claim of your own; the claim of a
/// [`Request`] has the whole request in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey(pub Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let request = Request::from_http(parts, b"", "");
        Ok(IdempotencyKey(request.idempotency_key()?.map(str::to_owned)))
    }
}

/// The parameters of the query. Call [`QueryString::only`] to refuse those that the route does not know.
impl<S: Sync> FromRequestParts<S> for QueryString {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(QueryString::of(&Request::from_http(parts, b"", "")))
    }
}

/// An answer for the log: the outcome or the problem. It stands in the extensions of the answer.
#[derive(Clone)]
pub(crate) struct Told {
    #[cfg_attr(not(feature = "lambda-without-tls"), expect(dead_code, reason = "the line about a request has it"))]
    pub answer: Result<(&'static str, Option<u64>), Arc<Problem>>,
}

impl IntoResponse for Response {
    fn into_response(self) -> axum::response::Response {
        sent(Told { answer: Ok((self.outcome(), self.version())) }, self)
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> axum::response::Response {
        let told = Told { answer: Err(Arc::new(self.take_for_log())) };
        sent(told, Problem::into_response(self))
    }
}

fn sent(told: Told, response: Response) -> axum::response::Response {
    let mut sent = http::Response::<String>::from(response).map(Body::from);
    sent.extensions_mut().insert(told);
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// A body of many chunks, which counts those that were taken.
    struct Chunks(Arc<std::sync::atomic::AtomicUsize>);

    impl Stream for Chunks {
        type Item = Result<Vec<u8>, std::io::Error>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let taken = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Poll::Ready((taken < 1000).then(|| Ok(vec![b' '; MAX_BODY / 4])))
        }
    }

    fn request(body: Body) -> axum::extract::Request {
        let mut request = http::Request::post("/things/a?b=1&b=2").body(body).expect("a request");
        request.extensions_mut().insert(Invocation::new("ann", "r-1", Deadline::within(Duration::ZERO)));
        request
    }

    #[tokio::test]
    async fn of_a_body_that_is_too_large_no_more_is_read_than_refuses_it() {
        let taken = Arc::default();
        let request = request(Body::from_stream(Chunks(Arc::clone(&taken))));
        let request = Request::from_request(request, &()).await.expect("a request");
        assert_eq!(request.object().expect_err("refused").code(), "too_large");
        assert_eq!(taken.load(std::sync::atomic::Ordering::Relaxed), 5);
    }

    #[tokio::test]
    async fn a_request_is_that_of_its_caller_and_without_an_invocation_it_is_a_500() {
        let extracted = Request::from_request(request(Body::from("{}")), &()).await.expect("a request");
        assert_eq!((extracted.caller.as_str(), extracted.query["b"].as_str()), ("ann", "1,2"));
        assert!(extracted.object().is_ok());
        let mut without = request(Body::empty());
        without.extensions_mut().clear();
        let refused = Request::from_request(without, &()).await.expect_err("refused");
        assert_eq!(refused.code(), "internal");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_an_invalid_one() {
        struct Broken;
        impl Stream for Broken {
            type Item = Result<Vec<u8>, std::io::Error>;

            fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())))
            }
        }
        let refused = Request::from_request(request(Body::from_stream(Broken)), &()).await.expect_err("refused");
        assert_eq!((refused.code(), refused.field()), ("invalid_json", Some("")));
    }

    #[tokio::test]
    async fn conditions_and_queries_are_read_as_a_request_reads_them() {
        let (mut parts, _) = request(Body::empty()).into_parts();
        parts.headers.insert("if-none-match", http::HeaderValue::from_static("\"a"));
        let state = &();
        let read = Preconditions::<fencepost_core::ItemVersion>::from_request_parts(&mut parts, state).await;
        assert_eq!(read.expect_err("refused").code(), "invalid_if_none_match");
        let change = IfMatch::<fencepost_core::ItemVersion>::from_request_parts(&mut parts, state).await;
        assert_eq!(change.expect_err("refused").code(), "invalid_if_none_match");
        assert_eq!(IdempotencyKey::from_request_parts(&mut parts, state).await.ok(), Some(IdempotencyKey(None)));
        parts.headers.insert("idempotency-key", http::HeaderValue::from_static("a b"));
        let key = IdempotencyKey::from_request_parts(&mut parts, state).await;
        assert_eq!(key.expect_err("refused").code(), "invalid_idempotency_key");
        let query = QueryString::from_request_parts(&mut parts, state).await.expect("a query");
        assert_eq!(query.optional_text("b"), Some("1,2"));
        assert_eq!(query.only(&["a"]).expect_err("refused").code(), "unknown_parameter");
        assert_eq!(Id::from_request_parts(&mut parts, state).await.expect_err("no route").code(), "internal");
        assert_eq!(Ip::from_request_parts(&mut parts, state).await.expect_err("no route").code(), "internal");
    }
}
