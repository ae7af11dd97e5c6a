//! A request as a function sees it: method, path, parameters, headers, body. No transport.
//!
//! Everything that can be wrong with a request is found out here and is a 400-something [`Problem`]
//! that names the field.

mod fields;
mod id;
mod idempotency_key;
mod query;
mod route;
mod values;

pub use fields::Fields;
pub use id::Id;
pub use query::Query;
pub use route::{Parameters, Routes};
pub use values::Ip;

use crate::http::{IfMatch, IfNoneMatch, Problem, State};
use crate::json::{self, Object, refuse_reserved};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most bytes that a body may have: 512 KB, some more than the largest item.
pub const MAX_BODY: usize = 512 * 1024;

/// What a PATCH may be.
const PATCH_TYPES: &[&str] = &["application/json", "application/merge-patch+json"];

/// One request. `runtime.rs` makes it of an event; a test makes it of whatever it likes.
#[derive(Clone, Default, Debug)]
pub struct Request {
    /// `GET`, `PUT`, …
    pub method: String,
    /// The route that the gateway has matched, like `GET /devices/{deviceId}`, if it says so.
    pub route_key: Option<String>,
    /// The path as it was sent, not decoded.
    pub path: String,
    /// What the gateway found in the path, decoded.
    pub path_parameters: BTreeMap<String, String>,
    /// Query parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// Headers, names in lower case; several of one name are joined by commas.
    pub headers: BTreeMap<String, String>,
    /// Who asks, as the gateway has authorised it: an IAM ARN, else a JWT's subject, else `anonymous`.
    pub caller: String,
    /// The body as the event carries it.
    pub body: Body,
}

/// A body as an event carries it.
#[derive(Clone, Default, Debug)]
pub struct Body {
    /// The body, or its base64 text.
    pub text: String,
    /// Whether it is base64 text.
    pub is_base64: bool,
}

impl Request {
    /// The value of this header; give the name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// What the request is about, for the log: its path parameters, or its path where there are none.
    #[must_use]
    pub fn key(&self) -> String {
        if self.path_parameters.is_empty() {
            return self.path.clone();
        }
        self.path_parameters.values().map(String::as_str).collect::<Vec<_>>().join("/")
    }

    /// What the request demands of an item that it changes. `If-None-Match` has no meaning there.
    ///
    /// # Errors
    /// `invalid_if_match`; `invalid_if_none_match` where there is one: refused, never silently dropped.
    pub fn if_match<S: State>(&self) -> Result<IfMatch<S>, Problem> {
        if self.header("if-none-match").is_some() {
            let detail = "If-None-Match is for GET and for creation; to change an item, send If-Match";
            return Err(Problem::invalid("header:if-none-match", "invalid_if_none_match", detail));
        }
        IfMatch::parse(self.header("if-match"))
    }

    /// What the request demands of an item that it reads: `If-Match` first, then `If-None-Match`.
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`.
    pub fn read_conditions<S: State>(&self) -> Result<(IfMatch<S>, IfNoneMatch), Problem> {
        Ok((IfMatch::parse(self.header("if-match"))?, IfNoneMatch::parse(self.header("if-none-match"))?))
    }

    /// Whether a creation says `If-None-Match: *`: then a taken key is a failed condition.
    ///
    /// # Errors
    /// `invalid_if_none_match` for anything but `*`; `invalid_if_match` where there is such a header,
    /// because what is to be created has no version.
    pub fn if_absent(&self) -> Result<bool, Problem> {
        if self.header("if-match").is_some() {
            let detail = "this route creates; what is not there has no ETag to match";
            return Err(Problem::invalid("header:if-match", "invalid_if_match", detail));
        }
        match IfNoneMatch::parse(self.header("if-none-match"))? {
            IfNoneMatch::None => Ok(false),
            IfNoneMatch::Any => Ok(true),
            IfNoneMatch::Tags(_) => {
                let detail = "creation takes If-None-Match: * only";
                Err(Problem::invalid("header:if-none-match", "invalid_if_none_match", detail))
            }
        }
    }

    /// Refuses `If-Match` and `If-None-Match` on a route whose condition is another one: see `instead`.
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`.
    pub fn refuse_conditions(&self, instead: &str) -> Result<(), Problem> {
        for (header, code) in [("if-match", "invalid_if_match"), ("if-none-match", "invalid_if_none_match")] {
            if self.header(header).is_some() {
                let detail = format!("this route does not take it: {instead}");
                return Err(Problem::invalid(format!("header:{header}"), code, detail));
            }
        }
        Ok(())
    }

    /// The body as an object with known fields.
    ///
    /// # Errors
    /// Each a problem with a field: too large, another media type, not JSON, not an object, a reserved name.
    pub fn fields(&self) -> Result<Fields, Problem> {
        self.fields_in(&["application/json"])
    }

    /// The same of a PATCH whose fields are known: a merge patch is one too.
    ///
    /// # Errors
    /// As [`Request::fields`].
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

    /// The body as a free-form object.
    ///
    /// # Errors
    /// As [`Request::fields`], and whatever [`Object::new`] refuses.
    pub fn object(&self) -> Result<Object, Problem> {
        Ok(Object::new(self.json(&["application/json"])?, "")?)
    }

    /// The body as a merge patch (RFC 7396) of a free-form object.
    ///
    /// # Errors
    /// As [`Request::object`].
    pub fn merge_patch(&self) -> Result<Object, Problem> {
        Ok(Object::new(self.json(PATCH_TYPES)?, "")?)
    }

    /// The body as JSON: size first, then the media type, then the text.
    fn json(&self, media_types: &[&str]) -> Result<Value, Problem> {
        let bytes = self.body.bytes()?;
        if let Some(content_type) = self.header("content-type") {
            let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !media_types.contains(&media_type.as_str()) {
                return Err(Problem::unsupported_media_type(format!("send {}", media_types.join(" or "))));
            }
        }
        if bytes.is_empty() {
            return Err(Problem::invalid("", "invalid_json", "the body is empty"));
        }
        Ok(json::parse(&bytes)?)
    }
}

impl Body {
    fn bytes(&self) -> Result<Vec<u8>, Problem> {
        let too_large = || Problem::too_large(format!("a body may have {MAX_BODY} bytes"));
        // Base64 has 4 characters for 3 bytes: what is longer is not even decoded.
        let limit = if self.is_base64 { MAX_BODY.div_ceil(3) * 4 } else { MAX_BODY };
        if self.text.len() > limit {
            return Err(too_large());
        }
        if !self.is_base64 {
            return Ok(self.text.clone().into_bytes());
        }
        let bytes = STANDARD.decode(&self.text).map_err(|_| {
            Problem::invalid("", "invalid_json", "the body is not the base64 text that it is said to be")
        })?;
        if bytes.len() > MAX_BODY { Err(too_large()) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::ItemVersion;

    fn with_body(text: &str) -> Request {
        Request { body: Body { text: text.to_owned(), is_base64: false }, ..Request::default() }
    }

    fn with_header(request: &Request, name: &str, value: &str) -> Request {
        let mut request = request.clone();
        request.headers.insert(name.to_owned(), value.to_owned());
        request
    }

    #[test]
    fn a_body_of_512_kb_is_read_and_one_byte_more_refused_before_parsing() {
        let padded = |size: usize| format!("{{}}{}", " ".repeat(size - 2));
        assert!(with_body(&padded(MAX_BODY)).object().is_ok());
        let too_large = with_header(&with_body(&"x".repeat(MAX_BODY + 1)), "content-type", "text/plain");
        assert_eq!(too_large.object().expect_err("refused").code(), "too_large");
        let mut encoded = with_body(&STANDARD.encode(padded(MAX_BODY)));
        encoded.body.is_base64 = true;
        assert!(encoded.object().is_ok());
        encoded.body.text = STANDARD.encode(padded(MAX_BODY + 1));
        assert_eq!(encoded.object().expect_err("refused").code(), "too_large");
        encoded.body.text = "*".to_owned();
        assert_eq!(encoded.object().expect_err("refused").code(), "invalid_json");
    }

    #[test]
    fn media_types_are_compared_without_case_and_parameters() {
        let request = with_body("{}");
        assert!(request.object().is_ok());
        assert!(with_header(&request, "content-type", "Application/JSON; charset=utf-8").object().is_ok());
        assert!(with_header(&request, "content-type", "application/merge-patch+json").merge_patch().is_ok());
        for (content_type, request) in
            [("application/merge-patch+json", &request), ("text/plain", &request), ("", &request)]
        {
            let problem = with_header(request, "content-type", content_type).object().expect_err("refused");
            assert_eq!(problem.code(), "unsupported_media_type", "{content_type}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (body, code) in
            [("", "invalid_json"), ("[]", "invalid_type"), ("1", "invalid_type"), ("{\"_a\":1}", "reserved_name")]
        {
            assert_eq!(with_body(body).fields().expect_err("refused").code(), code, "{body}");
            assert_eq!(with_body(body).merge_patch().expect_err("refused").code(), code, "{body}");
        }
        assert_eq!(with_body("{\"_a\":null}").merge_patch().expect_err("refused").code(), "reserved_name");
    }

    #[test]
    fn conditions_that_a_route_does_not_take_are_refused_not_dropped() {
        let request = Request::default();
        assert!(with_header(&request, "if-none-match", "*").if_match::<ItemVersion>().is_err());
        assert!(with_header(&request, "if-match", "*").if_absent().is_err());
        assert!(with_header(&request, "if-none-match", "\"a\"").if_absent().is_err());
        assert_eq!(with_header(&request, "if-none-match", "*").if_absent().ok(), Some(true));
    }
}
