//! A [`Request`] from the types of the crate `http`.

use super::message::{Body, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;

impl Request {
    /// Creates a request from the parts that a framework such as axum has received.
    ///
    /// Set [`Request::route`] and [`Request::path_parameters`] to the match of your framework. With axum, the feature
    /// `axum` does it all: extract a `Request`.
    ///
    /// `body` is the whole body. Read at most [`MAX_BODY`](super::MAX_BODY) bytes and one more, so that a client cannot
    /// fill the memory: the parsers answer 413 to the one more. `caller` is whom your authentication found, and
    /// `anonymous` if you have none. Callers with the same name share their idempotency keys, so do not take it from
    /// a header that clients can set.
    ///
    /// ```
    /// # fn main() -> Result<(), http::Error> {
    /// use fencepost::http::Request;
    ///
    /// let (parts, ()) = http::Request::put("/visits/lobby?dry=a%20b").body(())?.into_parts();
    /// let request = Request::from_http(&parts, b"{}", "anonymous");
    /// assert_eq!((request.method.as_str(), request.path.as_str()), ("PUT", "/visits/lobby"));
    /// assert_eq!(request.query["dry"], "a b");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_http(parts: &http::request::Parts, body: &[u8], caller: impl Into<String>) -> Self {
        let mut headers = BTreeMap::new();
        for (name, value) in &parts.headers {
            join(&mut headers, name.as_str().to_owned(), ", ", &String::from_utf8_lossy(value.as_bytes()));
        }
        let mut query = BTreeMap::new();
        for pair in parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            join(&mut query, decoded(name), ",", &decoded(value));
        }
        let body = match std::str::from_utf8(body) {
            Ok(text) => Body { text: text.to_owned(), is_base64: false },
            // Bytes that are no text are no JSON either. The parser says so.
            Err(_) => Body { text: STANDARD.encode(body), is_base64: true },
        };
        Request {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query,
            headers,
            caller: caller.into(),
            body,
            ..Request::default()
        }
    }
}

/// Values of one name are joined. None is dropped. Several headers are one list (RFC 9110, section 5.3).
fn join(values: &mut BTreeMap<String, String>, name: String, separator: &str, value: &str) {
    values.entry(name).and_modify(|there| there.push_str(separator)).or_default().push_str(value);
}

/// Decodes `+` and `%XX`. A `%` without two hexadecimal digits stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, next) = match (first, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (digit(*high) * 16 + digit(*low), after)
            }
            (b'+', after) => (b' ', after),
            (other, after) => (*other, after),
        };
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(character: u8) -> u8 {
    match character {
        b'0'..=b'9' => character - b'0',
        other => other.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::ItemVersion;

    fn request(uri: &str, headers: &[(&str, &str)], body: &[u8]) -> Request {
        let mut builder = http::Request::post(uri);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let (parts, ()) = builder.body(()).expect("a request").into_parts();
        Request::from_http(&parts, body, "ann")
    }

    #[test]
    fn a_query_is_decoded_and_a_path_is_not() {
        let request = request("/a%2Fb?x=1%2B1+%C3%A9&x=2&y&=&z=%zz%4", &[], b"");
        assert_eq!(request.path, "/a%2Fb");
        let query: Vec<_> = request.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(query, [("", ""), ("x", "1+1 é,2"), ("y", ""), ("z", "%zz%4")]);
    }

    #[test]
    fn two_headers_of_one_name_are_joined_so_that_neither_is_ignored() {
        let request = request("/", &[("If-Match", "\"1\""), ("if-match", "\"2\""), ("X", "y")], b"");
        assert_eq!(request.header("If-Match"), Some("\"1\", \"2\""));
        assert_eq!(request.if_match::<ItemVersion>().expect_err("two tags").code(), "invalid_if_match");
    }

    #[test]
    fn a_body_that_is_no_text_is_refused_by_the_parser() {
        assert!(request("/", &[], br#"{"a":1}"#).object().is_ok());
        assert_eq!(request("/", &[], b"{\"a\":\"\xff\"}").object().expect_err("refused").code(), "invalid_json");
        let too_large = vec![0xff; super::super::MAX_BODY + 1];
        assert_eq!(request("/", &[], &too_large).object().expect_err("refused").code(), "too_large");
    }
}
