//! Access to the functions of `cargo dev`: for programs, and for a visitor who follows a link, not for a page of another site.
//!
//! A page of another site can make a browser send requests to this server. A request may change something. So a browser's
//! request must come from an address of this server, or open it. A name that another site resolves to this machine is
//! refused: only addresses and `localhost` are taken. No page may frame an answer.

use axum::extract::Request;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::net::SocketAddr;

/// Refuses requests from another site. It stands before every route.
pub async fn guard(request: Request, next: Next) -> Response {
    let mut response = match refusal(request.method(), request.headers()) {
        None => next.run(request).await,
        Some((field, detail)) => problem(field, detail),
    };
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("frame-ancestors 'none'"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The refusal as `application/problem+json` (RFC 9457). `detail` gives the advice.
fn problem(field: &str, detail: &str) -> Response {
    let status = StatusCode::FORBIDDEN;
    let body = json!({
        "type": "about:blank",
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "code": "cross_site",
        "field": field,
        "detail": detail,
    });
    (status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}

/// The reason for a refusal: the header, with the advice about it.
fn refusal(method: &Method, headers: &HeaderMap) -> Option<(&'static str, &'static str)> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(HOST.as_str()).unwrap_or_default();
    if !is_address(host) {
        return Some(("header:host", "use the address that `cargo dev` prints"));
    }
    let opens_page = *method == Method::GET && text("sec-fetch-mode") == Some("navigate");
    let is_own = match (text(ORIGIN.as_str()), text("sec-fetch-site")) {
        _ if opens_page => true,
        (Some(origin), _) => origin.strip_prefix("http://") == Some(host),
        (None, Some(site)) => ["same-origin", "none"].contains(&site),
        // A browser without this header, or no browser. Only the former can be driven by a page, and only to read.
        (None, None) => true,
    };
    if is_own { None } else { Some(("header:origin", "send this request from a program that is no browser")) }
}

/// Whether a host is an IP address or `localhost`, with a port or without.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || format!("{name}:0").parse::<SocketAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(method: &Method, headers: &[(&'static str, &str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (axum::http::HeaderName::from_static(name), value.parse().expect("a value")));
        refusal(method, &headers.collect()).is_some()
    }

    #[test]
    fn only_addresses_and_localhost_are_taken() {
        for host in
            ["127.0.0.1:9000", "127.0.0.1", "localhost:9000", "LOCALHOST", "[::1]:9000", "[::1]", "192.168.1.5:1"]
        {
            assert!(!is_refused(&Method::GET, &[("host", host)]), "{host}");
        }
        for host in
            ["evil.example:9000", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x", "[evil]:1"]
        {
            assert!(is_refused(&Method::GET, &[("host", host)]), "{host}");
        }
        assert!(is_refused(&Method::GET, &[]));
    }

    #[test]
    fn a_request_of_a_browser_must_come_from_this_server_or_open_it() {
        let own = ("host", "127.0.0.1:9000");
        let others = [("origin", "http://127.0.0.1:9000"), ("sec-fetch-site", "same-origin")];
        assert!(!is_refused(&Method::POST, &[own]));
        for header in others {
            assert!(!is_refused(&Method::POST, &[own, header]), "{header:?}");
        }
        for header in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:9003"),
            ("origin", "https://127.0.0.1:9000"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(is_refused(&Method::POST, &[own, header]), "{header:?}");
            assert!(is_refused(&Method::DELETE, &[own, header]), "{header:?}");
            assert!(is_refused(&Method::GET, &[own, header]), "{header:?}");
            let navigate = ("sec-fetch-mode", "navigate");
            assert!(!is_refused(&Method::GET, &[own, header, navigate]), "{header:?}");
            assert!(is_refused(&Method::POST, &[own, header, navigate]), "{header:?}");
        }
        assert!(!is_refused(&Method::GET, &[own]));
    }
}
