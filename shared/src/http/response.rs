//! [`Response`]: an answer for any transport. It can be stored and sent again.

use super::validator::Validator;
use fencepost_core::Version;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

const JSON: &str = "application/json";

/// Names in lower case, with values. A stored answer has names from its text, so not all names are constants.
pub(super) type Headers = Vec<(Cow<'static, str>, String)>;

/// An answer for any transport.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    outcome: &'static str,
    headers: Headers,
    body: Option<String>,
    version: Option<u64>,
}

impl Response {
    /// 200 with the item. `at` becomes the `ETag`.
    #[must_use]
    pub fn ok(at: impl Validator, body: &impl Serialize) -> Self {
        Self::shown(200, "ok", at, body)
    }

    /// 200 with several items. It has no `ETag`, because it shows no single state.
    #[must_use]
    pub fn listed(body: &impl Serialize) -> Self {
        let headers = vec![("content-type".into(), JSON.to_owned())];
        Response { status: 200, outcome: "ok", headers, body: Some(text(body)), version: None }
    }

    pub(super) fn problem(status: u16, code: &'static str, headers: Headers, body: &impl Serialize) -> Self {
        Response { status, outcome: code, headers, body: Some(text(body)), version: None }
    }

    /// 201 with the new item and its `location`.
    #[must_use]
    pub fn created(location: String, at: impl Validator, body: &impl Serialize) -> Self {
        let mut response = Self::shown(201, "created", at, body);
        response.headers.push(("location".into(), location));
        response
    }

    fn shown(status: u16, outcome: &'static str, at: impl Validator, body: &impl Serialize) -> Self {
        Response {
            status,
            outcome,
            headers: vec![("content-type".into(), JSON.to_owned()), ("etag".into(), at.etag())],
            body: Some(text(body)),
            version: Some(at.number()),
        }
    }

    /// 204: the item is deleted. `version` is that of its tombstone.
    #[must_use]
    pub fn deleted(version: Version) -> Self {
        Response { status: 204, outcome: "deleted", headers: Vec::new(), body: None, version: Some(version.get()) }
    }

    /// 204: the request succeeded, in one of several ways. The header `Fencepost-Outcome` says which.
    #[must_use]
    pub fn no_content(outcome: &'static str) -> Self {
        let headers = vec![("fencepost-outcome".into(), outcome.to_owned())];
        Response { status: 204, outcome, headers, body: None, version: None }
    }

    /// 304: the client already has this version.
    #[must_use]
    pub fn not_modified(at: impl Validator) -> Self {
        let headers = vec![("etag".into(), at.etag())];
        Response { status: 304, outcome: "not_modified", headers, body: None, version: Some(at.number()) }
    }

    /// Marks the response as a replay: the answer to a request that repeats an earlier one.
    #[must_use]
    pub fn replayed(mut self) -> Self {
        self.outcome = "replayed";
        self.headers.push(("idempotency-replayed".into(), "true".to_owned()));
        self
    }

    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// One word for the log: `ok`, `created`, …, or the code of a problem.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        self.outcome
    }

    /// The headers. Names are in lower case.
    #[must_use]
    pub fn headers(&self) -> &[(Cow<'static, str>, String)] {
        &self.headers
    }

    /// The body, if there is one. The rest of the response is lost.
    #[must_use]
    pub fn into_body(self) -> Option<String> {
        self.body
    }

    /// The body, if there is one.
    #[must_use]
    pub fn body(&self) -> Option<&str> {
        self.body.as_deref()
    }

    /// The version of the item in the answer, if there is one.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.version
    }
}

/// Two responses are equal if they are the same answer to a client. The word for the log is no part of it.
impl PartialEq for Response {
    fn eq(&self, other: &Self) -> bool {
        (self.status, self.version) == (other.status, other.version)
            && self.headers == other.headers
            && self.body == other.body
    }
}

impl Eq for Response {}

fn text(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("a JSON value")
}

/// An idempotency record stores a response as one text. The format is private and may change between releases.
impl Serialize for Response {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_stored())
    }
}

impl<'de> Deserialize<'de> for Response {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Response::from_stored(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl From<Response> for http::Response<String> {
    fn from(response: Response) -> Self {
        let mut converted = http::Response::new(response.body.unwrap_or_default());
        *converted.status_mut() = http::StatusCode::from_u16(response.status).unwrap_or_default();
        for (name, value) in response.headers {
            // Names and values consist only of ids, tags and numbers of this crate, so all of them convert.
            if let (Ok(name), Ok(value)) =
                (http::HeaderName::try_from(name.as_ref()), http::HeaderValue::try_from(value))
            {
                converted.headers_mut().append(name, value);
            }
        }
        converted
    }
}

/// The first line of a stored answer. The body follows unchanged and does not grow.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    version: Option<u64>,
    has_body: bool,
}

impl Response {
    fn to_stored(&self) -> String {
        let head = Head {
            status: self.status,
            headers: self.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            version: self.version,
            has_body: self.body.is_some(),
        };
        let head = serde_json::to_string(&head).expect("numbers and texts are JSON");
        format!("{head}\n{}", self.body().unwrap_or_default())
    }

    /// Restores a response from its text. Mark it with [`Response::replayed`] before you send it again.
    fn from_stored(text: &str) -> Result<Self, String> {
        let corrupt = |reason: String| format!("a stored answer: {reason}");
        let (head, body) = text.split_once('\n').ok_or_else(|| corrupt("its body is missing".to_owned()))?;
        let head: Head = serde_json::from_str(head).map_err(|error| corrupt(error.to_string()))?;
        let is_header = |(name, value): &(String, String)| {
            http::HeaderName::try_from(name).is_ok() && http::HeaderValue::try_from(value).is_ok()
        };
        if http::StatusCode::from_u16(head.status).is_err() || !head.headers.iter().all(is_header) {
            // It would go out as another answer.
            return Err(corrupt("its status or a header of it is none of HTTP".to_owned()));
        }
        Ok(Response {
            status: head.status,
            outcome: "stored",
            headers: head.headers.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            body: head.has_body.then(|| body.to_owned()),
            version: head.version,
        })
    }
}
