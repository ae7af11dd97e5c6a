//! Access to the servers of `cargo dev`: for a visitor who opens the page from its own address, and for programs, not for a
//! page of another site. It stands before the console and before the functions.
//!
//! A page of another site can make a browser send requests to this server. A request may change something. Even a read
//! has a cost. So a browser's request must come from this page itself, or open it. A name that another site resolves to
//! this machine is refused: only addresses and `localhost` are taken. No other page may frame this one.

use axum::extract::Request;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::net::SocketAddr;

/// The header with the token of the page.
pub const TOKEN: &str = "x-console-token";

/// Refuses requests from another site. It stands before every route of the page.
pub async fn guard(request: Request, next: Next) -> Response {
    let mut response = match refusal(request.method(), request.headers()) {
        None => next.run(request).await,
        Some((field, detail)) => problem(StatusCode::FORBIDDEN, "cross_site", field, detail),
    };
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("frame-ancestors 'none'"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
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
    if is_own {
        None
    } else {
        Some(("header:origin", "send this request from the page itself, or from a program that is no browser"))
    }
}

/// Whether a host is an IP address or `localhost`, with a port or without.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || format!("{name}:0").parse::<SocketAddr>().is_ok()
}

/// A token unknown to pages of other sites.
///
/// # Errors
/// The operating system has no random numbers.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Whether a request has this token.
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    headers.get(TOKEN).is_some_and(|sent| sent.as_bytes() == token.as_bytes())
}

/// A refusal as `application/problem+json` (RFC 9457). `detail` gives the advice.
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
            ["127.0.0.1:9001", "127.0.0.1", "localhost:9001", "LOCALHOST", "[::1]:9001", "[::1]", "192.168.1.5:1"]
        {
            assert!(!is_refused(&Method::GET, &[("host", host)]), "{host}");
        }
        for host in
            ["evil.example:9001", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x", "[evil]:1"]
        {
            assert!(is_refused(&Method::GET, &[("host", host)]), "{host}");
        }
        assert!(is_refused(&Method::GET, &[]));
    }

    #[test]
    fn a_request_of_a_browser_must_come_from_the_page_or_open_it() {
        let own = ("host", "127.0.0.1:9001");
        let others = [("origin", "http://127.0.0.1:9001"), ("sec-fetch-site", "same-origin")];
        assert!(!is_refused(&Method::POST, &[own]));
        for header in others {
            assert!(!is_refused(&Method::POST, &[own, header]), "{header:?}");
        }
        for header in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:9002"),
            ("origin", "https://127.0.0.1:9001"),
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

    #[test]
    fn a_token_is_long_and_new_each_time() {
        let tokens = [new_token().expect("random"), new_token().expect("random")];
        assert_eq!(tokens[0].len(), 32);
        assert_ne!(tokens[0], tokens[1]);
        let headers = [(axum::http::HeaderName::from_static(TOKEN), tokens[0].parse().expect("a value"))];
        let headers: HeaderMap = headers.into_iter().collect();
        assert!(has_token(&headers, &tokens[0]) && !has_token(&headers, &tokens[1]));
        assert!(!has_token(&HeaderMap::new(), &tokens[0]));
    }
}
