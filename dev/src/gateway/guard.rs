//! Access to the functions of `cargo dev`: for programs, and for a visitor who follows a link, not for a page of another site.
//!
//! A page of another site can make a browser send requests to this server. A request may change something. So a browser's
//! request must come from this server, or open one of its addresses. A name that another site resolves to this machine is
//! refused: only IP addresses and `localhost` are taken.

use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::{extract::Request, middleware::Next, response::IntoResponse, response::Response};
use serde_json::json;
use std::net::SocketAddr;

/// Refuses requests from another site. It stands before every route.
pub async fn guard(request: Request, next: Next) -> Response {
    match refusal(request.method(), request.headers()) {
        None => next.run(request).await,
        Some((field, detail)) => {
            let (status, kind) = (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "application/problem+json")]);
            let problem = json!({ "status": status.as_u16(), "code": "cross_site", "field": field, "detail": detail });
            (status, kind, problem.to_string()).into_response()
        }
    }
}

/// The reason for a refusal: the header, with the advice about it.
fn refusal(method: &Method, headers: &HeaderMap) -> Option<(&'static str, &'static str)> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(HOST.as_str()).unwrap_or_default();
    if !is_address(host) {
        return Some(("header:host", "use the address that `cargo dev` prints"));
    }
    let follows_link = *method == Method::GET && text("sec-fetch-mode") == Some("navigate");
    let is_own = match (text(ORIGIN.as_str()), text("sec-fetch-site")) {
        _ if follows_link => true,
        (Some(origin), _) => origin.strip_prefix("http://") == Some(host),
        (None, Some(site)) => ["same-origin", "none"].contains(&site),
        // A browser without this header, or no browser. Only the former can be driven by a page, and only to read.
        (None, None) => true,
    };
    (!is_own).then_some(("header:origin", "send this request from a program that is no browser"))
}

/// Whether a host is an IP address or `localhost`, with a port or without.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || format!("{name}:0").parse::<SocketAddr>().is_ok()
}

#[test]
fn only_addresses_and_localhost_are_taken() {
    for host in ["127.0.0.1:9000", "127.0.0.1", "localhost:9000", "LOCALHOST", "[::1]:9000", "[::1]", "192.168.1.5:1"] {
        assert!(is_address(host), "{host}");
    }
    for host in ["evil.example:9000", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x", "[evil]:1"]
    {
        assert!(!is_address(host), "{host}");
    }
}
