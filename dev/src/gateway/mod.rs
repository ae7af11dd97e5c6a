//! In front of the functions of this process: their routes as API Gateway serves them, with the Invoke API of Lambda.
//!
//! Another site reaches neither: `guard` refuses its requests. A program that is no browser is let through.
//!
//! A request becomes an event of the payload format 2.0. The answer of the function becomes a response. Source:
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>

mod guard;

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{
        DefaultBodyLimit, OriginalUri, Path, Query, State,
        rejection::{BytesRejection, PathRejection},
    },
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{CONTENT_TYPE, COOKIE, SET_COOKIE},
    },
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::{any, post},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use guard::guard;
use serde::Deserialize;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::net::TcpListener;

use crate::{failure::Failure, functions::Functions, template::Template, watch::LOCALHOST};

/// The most that API Gateway takes.
const MAX_BODY: usize = 10_000_000;

/// Takes the port of the functions, before anything slow is done.
///
/// # Errors
/// The port is taken.
pub async fn listen(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind((LOCALHOST, port)).await.map_err(|error| {
        Failure::new(format!(
            "The functions cannot have port {port} ({error}): stop what listens there or choose another with --port."
        ))
    })
}

/// Leads each route of the template to its function, and each Invoke request to the function of its name.
pub fn routes(template: &Template, functions: &Functions) -> Router {
    let mut paths = BTreeMap::<_, BTreeMap<_, _>>::new();
    for function in &template.functions {
        for route in &function.routes {
            paths.entry(&route.path).or_default().insert(route.method.clone(), function.name.clone());
        }
    }
    // A path of the template is one of axum's too: `/devices/{deviceId}`.
    let routes = paths.into_iter().fold(Router::new(), |router, (path, methods)| {
        let at = Arc::new(At { path: path.clone(), methods, functions: functions.clone() });
        router.route(path, any(route).with_state(at))
    });
    routes
        .route("/2015-03-31/functions/{name}/invocations", post(invoke).with_state(functions.clone()))
        .fallback(async || says(StatusCode::NOT_FOUND, "Not Found"))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(guard))
}

/// A path with its functions by method.
struct At {
    path: String,
    methods: BTreeMap<String, String>,
    functions: Functions,
}

/// A client's request to a path.
struct Sent<'a> {
    method: &'a Method,
    path: &'a str,
    parameters: BTreeMap<String, String>,
    raw_query: &'a str,
    query: Vec<(String, String)>,
    headers: &'a HeaderMap,
    body: &'a [u8],
}

async fn route(
    State(at): State<Arc<At>>,
    method: Method,
    OriginalUri(uri): OriginalUri,
    parameters: Result<Path<BTreeMap<String, String>>, PathRejection>,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Ok(Path(parameters)) = parameters else { return says(StatusCode::BAD_REQUEST, "Bad Request") };
    let Ok(body) = body else { return says(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large") };
    let Some(function) = at.methods.get(method.as_str()) else { return says(StatusCode::NOT_FOUND, "Not Found") };
    let raw_query = uri.query().unwrap_or_default();
    let (path, headers, body) = (uri.path(), &headers, &body);
    let sent = Sent { method: &method, path, parameters, raw_query, query, headers, body };
    let answered = match to_raw_value(&event(&at.path, sent)) {
        Ok(event) => at.functions.invoke(function, event).await,
        Err(error) => Some(Err(error.to_string())),
    };
    match answered {
        Some(Ok(answer)) => serde_json::from_str(answer.get()).map_or_else(|error| broken(&error.to_string()), respond),
        Some(Err(error)) => broken(&error),
        None => broken("there is no such function"),
    }
}

/// The event of a request to this path of the template. It has no member that AWS alone can know, such as an account.
fn event(at: &str, sent: Sent<'_>) -> Value {
    let Sent { method, path, parameters, raw_query, query, headers, body } = sent;
    let method = method.as_str();
    let key = format!("{method} {at}");
    let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let values = headers.iter().filter(|(name, _)| *name != COOKIE).map(|(name, text)| (name.to_string(), value(text)));
    let cookies: Vec<_> = headers.get_all(COOKIE).iter().map(value).collect();
    let (text, is_base64) = match std::str::from_utf8(body) {
        Ok(text) if text.is_empty() || is_text(headers) => (text.to_owned(), false),
        _ => (BASE64_STANDARD.encode(body), true),
    };
    let mut event = json!({
        "version": "2.0",
        "routeKey": key,
        "rawPath": path,
        "rawQueryString": raw_query,
        "headers": joined(values),
        "requestContext": {
            "apiId": "local",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": LOCALHOST},
            "routeKey": key,
            "stage": "$default",
        },
        "isBase64Encoded": is_base64,
    });
    // API Gateway leaves out the parts missing in a request.
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies.iter().flat_map(|cookies| cookies.split("; ")).collect::<Vec<_>>());
    }
    if !parameters.is_empty() {
        event["pathParameters"] = json!(parameters);
    }
    if !query.is_empty() {
        event["queryStringParameters"] = joined(query.into_iter());
    }
    if !body.is_empty() {
        event["body"] = json!(text);
    }
    event
}

/// Values by name. Those of one name stand together, with commas, as API Gateway writes them.
fn joined(pairs: impl Iterator<Item = (String, String)>) -> Value {
    let mut joined = Map::new();
    for (name, value) in pairs {
        let value = match joined.get(&name).and_then(Value::as_str) {
            Some(before) => format!("{before},{value}"),
            None => value,
        };
        joined.insert(name, Value::from(value));
    }
    Value::Object(joined)
}

/// Whether API Gateway hands on the body as it is. All other bodies come in base64.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.starts_with("text/") || ["json", "xml", "javascript"].iter().any(|end| kind.ends_with(end))
}

/// The answer of a function, as an HTTP API reads it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    status_code: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    cookies: Vec<String>,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

fn respond(answered: Answered) -> Response {
    let body = answered.body.unwrap_or_default();
    let body = if answered.is_base64_encoded { BASE64_STANDARD.decode(body) } else { Ok(body.into_bytes()) };
    let cookies = answered.cookies.into_iter().map(|cookie| (SET_COOKIE.to_string(), cookie));
    let response = Response::builder().status(answered.status_code);
    let headers = answered.headers.into_iter().chain(cookies);
    let response = headers.fold(response, |response, (name, value)| response.header(name, value));
    match body {
        Ok(body) => response.body(Body::from(body)).unwrap_or_else(|error| broken(&error.to_string())),
        Err(error) => broken(&error.to_string()),
    }
}

/// Gives the body to the function with this name, as Lambda's `Invoke` does. `cargo lambda invoke` and the AWS CLI send this.
async fn invoke(State(functions): State<Functions>, Path(name): Path<String>, event: String) -> Response {
    const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];
    let Ok(event) = RawValue::from_string(event) else { return says(StatusCode::BAD_REQUEST, "the body is not JSON") };
    match functions.invoke(&name, event).await {
        Some(Ok(answer)) => (JSON, answer.get().to_owned()).into_response(),
        Some(Err(error)) => {
            (JSON, [("x-amz-function-error", "Unhandled")], json!({"errorMessage": error}).to_string()).into_response()
        }
        None => says(StatusCode::NOT_FOUND, &format!("no function is called {name}")),
    }
}

/// The answer of API Gateway after a failure of the function, without a reason.
fn broken(error: &str) -> Response {
    tracing::error!(error, "an invocation has failed");
    says(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
}

/// An answer of API Gateway's own.
fn says(status: StatusCode, message: &str) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json!({"message": message}).to_string()).into_response()
}

#[cfg(test)]
mod tests;
