//! What is answered to a request that cannot be taken, as RFC 9457 `application/problem+json`.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A refusal. `detail` says what to do.
pub fn problem(status: StatusCode, code: &str, field: &str, detail: &str) -> Response {
    let body = json!({
        "type": "about:blank",
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "code": code,
        "field": field,
        "detail": detail,
    });
    let mut response = (status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
