//! [`Request`]: one request without its transport, also made of the types of the crate `http`.

use super::fields::Fields;
use super::values::{Id, Ip, MAX_BODY};
use crate::http::problem::Problem;
use crate::json::{self, Object, refuse_reserved};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

const PATCH_TYPES: &[&str] = &["application/json", "application/merge-patch+json"];

/// One request with its whole body. The feature `axum` extracts it. A test can fill it in directly.
#[derive(Clone, Default)]
pub struct Request {
    /// `GET`, `PUT`, …
    pub method: String,
    /// The route that the router matched, like `GET /devices/{deviceId}`. An idempotency key counts on this route.
    pub route: String,
    /// The path as it was sent, not decoded.
    pub path: String,
    /// The parameters of the path, by the names that the route gives them.
    pub path_parameters: BTreeMap<String, String>,
    /// Query parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// The headers, with names in lower case. Several headers with one name are joined by commas.
    pub headers: BTreeMap<String, String>,
    /// The caller, as your authentication knows it. On Lambda: the IAM ARN, the issuer and subject of a JWT, or the member
    /// of a Lambda authorizer's context that `AUTHORIZER_CALLER` names, and `anonymous` without an authorizer. Empty if
    /// callers cannot be told apart. See [`Request::known_caller`].
    pub caller: String,
    /// The body as the event has it.
    pub body: Body,
}

/// A body as an event has it.
#[derive(Clone, Default, Debug)]
pub struct Body {
    /// The body, or its base64 text.
    pub text: String,
    /// Whether it is base64 text.
    pub is_base64: bool,
}

/// Shows neither the values of headers, which may be secrets, nor the body.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().collect();
        let mut shown = f.debug_struct("Request");
        shown.field("method", &self.method).field("path", &self.path).field("headers", &headers).finish_non_exhaustive()
    }
}

impl Request {
    /// The value of the header `name`, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The caller, for a request that means something else for another caller.
    ///
    /// # Errors
    /// `caller_unknown`: [`Request::caller`] is empty. Callers without a name would share their keys.
    pub fn known_caller(&self) -> Result<&str, Problem> {
        if self.caller.is_empty() { Err(Problem::caller_unknown()) } else { Ok(&self.caller) }
    }

    /// The id in the path parameter `name`.
    ///
    /// # Errors
    /// `invalid_id`, with the field `path:<name>`.
    pub fn id(&self, name: &str) -> Result<Id, Problem> {
        Id::parse(self.path_parameter(name), &format!("path:{name}"))
    }

    /// The address in the path parameter `name`.
    ///
    /// # Errors
    /// `invalid_ip`, with the field `path:<name>`.
    pub fn ip(&self, name: &str) -> Result<Ip, Problem> {
        Ip::parse(self.path_parameter(name), &format!("path:{name}"))
    }

    fn path_parameter(&self, name: &str) -> &str {
        self.path_parameters.get(name).map_or("", String::as_str)
    }

    /// Parses the body as an object with known fields.
    ///
    /// # Errors
    /// Each is a problem with a field: too large, another media type, not JSON, not an object, a reserved name.
    pub fn fields(&self) -> Result<Fields, Problem> {
        self.fields_in(&["application/json"])
    }

    /// Parses the body of a PATCH with known fields. Also accepts the media type of a merge patch.
    ///
    /// # Errors
    /// See [`Request::fields`].
    pub fn patch_fields(&self) -> Result<Fields, Problem> {
        self.fields_in(PATCH_TYPES)
    }

    fn fields_in(&self, media_types: &[&str]) -> Result<Fields, Problem> {
        match self.json(media_types)? {
            Value::Object(members) => {
                refuse_reserved(&members, "")?;
                Ok(Fields::new(members))
            }
            _ => Err(Problem::invalid("", "invalid_type", "the body must be a JSON object")),
        }
    }

    /// Parses the body as a free-form object.
    ///
    /// # Errors
    /// See [`Request::fields`]; also the errors of [`Object::new`].
    pub fn object(&self) -> Result<Object, Problem> {
        Ok(Object::new(self.json(&["application/json"])?, "")?)
    }

    /// Parses the body as a merge patch (RFC 7396) of a free-form object.
    ///
    /// # Errors
    /// See [`Request::object`].
    pub fn merge_patch(&self) -> Result<Object, Problem> {
        Ok(Object::new(self.json(PATCH_TYPES)?, "")?)
    }

    /// Parses the body as JSON. Checks the size first, then the media type, then the text.
    fn json(&self, media_types: &[&str]) -> Result<Value, Problem> {
        let bytes = self.body.bytes()?;
        if let Some(content_type) = self.header("content-type") {
            let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !media_types.contains(&media_type.as_str()) {
                return Err(Problem::unsupported_media_type(format!("send {}", media_types.join(" or "))));
            }
        }
        if let Some(encoding) =
            self.header("content-encoding").filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            let detail = format!("send the body as it is, not in the encoding {}", encoding.escape_default());
            return Err(Problem::unsupported_media_type(detail).in_field("header:content-encoding"));
        }
        if bytes.is_empty() {
            return Err(Problem::invalid("", "invalid_json", "the body is empty"));
        }
        Ok(json::parse(&bytes)?)
    }
}

impl Body {
    fn bytes(&self) -> Result<Cow<'_, [u8]>, Problem> {
        let too_large = || Problem::too_large(format!("a body may have {MAX_BODY} bytes"));
        // Base64 has 4 characters for 3 bytes. Longer text is not even decoded.
        let limit = if self.is_base64 { MAX_BODY.div_ceil(3) * 4 } else { MAX_BODY };
        if self.text.len() > limit {
            return Err(too_large());
        }
        if !self.is_base64 {
            return Ok(Cow::Borrowed(self.text.as_bytes()));
        }
        let bytes = STANDARD.decode(&self.text).map_err(|_| {
            Problem::invalid("", "invalid_json", "the body is not the base64 text that it is said to be")
        })?;
        if bytes.len() > MAX_BODY { Err(too_large()) } else { Ok(Cow::Owned(bytes)) }
    }
}

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
