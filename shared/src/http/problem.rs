//! [`Problem`]: every non-success response, as RFC 9457 `application/problem+json`.
//!
//! A function names the *kind* of a problem and a stable code. This file has the status codes of all kinds.

use super::response::{Headers, Response};
use super::validator::Validator;
use crate::error::{Error, Failure, FailureKind, IdempotencyError, Source};
use crate::json::Invalid;
use crate::listing::InvalidCursor;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

const PROBLEM_JSON: &str = "application/problem+json";

/// The status code of a kind, and its title.
type Kind = &'static (u16, &'static str);

const INVALID: Kind = &(400, "Bad Request");
const CALLER_UNKNOWN: Kind = &(403, "Forbidden");
const NOT_FOUND: Kind = &(404, "Not Found");
const METHOD_NOT_ALLOWED: Kind = &(405, "Method Not Allowed");
const REFUSED: Kind = &(409, "Conflict");
const VERSION_CONFLICT: Kind = &(412, "Precondition Failed");
const TOO_LARGE: Kind = &(413, "Content Too Large");
const UNSUPPORTED_MEDIA_TYPE: Kind = &(415, "Unsupported Media Type");
const KEY_REUSED: Kind = &(422, "Unprocessable Content");
const CONDITION_REQUIRED: Kind = &(428, "Precondition Required");
const INTERNAL: Kind = &(500, "Internal Server Error");
const UNAVAILABLE: Kind = &(503, "Service Unavailable");
const OUTCOME_UNKNOWN: Kind = &(504, "Gateway Timeout");

type Members = BTreeMap<String, Box<RawValue>>;

/// A non-success response: its kind, a stable code and a sentence for people.
#[derive(Debug)]
pub struct Problem {
    kind: Kind,
    code: &'static str,
    detail: Box<str>,
    field: Option<Box<str>>,
    members: Members,
    headers: Vec<(&'static str, String)>,
    source: Option<Source>,
}

impl Problem {
    fn new(kind: Kind, code: &'static str, detail: impl Into<String>) -> Self {
        let (members, headers) = (Members::new(), Vec::new());
        Problem { kind, code, detail: detail.into().into(), field: None, members, headers, source: None }
    }

    /// 400: the request is wrong in `field`: a JSON Pointer into the body, `path:x`, `query:x` or `header:x`.
    pub fn invalid(field: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(INVALID, code, detail).in_field(field)
    }

    /// 403: the request depends on its caller, but the authorizer named none. Nothing was changed.
    #[must_use]
    pub fn caller_unknown() -> Self {
        let detail =
            "this request depends on its caller, whom the authorizer of this API does not name; nothing was changed";
        Self::new(CALLER_UNKNOWN, "caller_unknown", detail)
    }

    /// 404: the path names a missing item.
    pub fn not_found(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, code, detail)
    }

    /// 404: no route has this path.
    #[must_use]
    pub fn no_such_route() -> Self {
        Self::new(NOT_FOUND, "no_such_route", "no route has this path")
    }

    /// 405: the path exists, but not with this method. `allow` lists the methods of the path.
    #[must_use]
    pub fn method_not_allowed(allow: String) -> Self {
        let detail = format!("this path takes {allow}");
        Self::new(METHOD_NOT_ALLOWED, "method_not_allowed", detail).with_header("allow", allow)
    }

    /// 409: the current state refuses the request. Nothing was written.
    pub fn refused(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(REFUSED, code, detail)
    }

    /// 412: the item is at another version than the client demands. `current` is its current version.
    #[must_use]
    pub fn version_conflict(current: impl Validator) -> Self {
        Self::new(VERSION_CONFLICT, "version_conflict", "the item is at another version; nothing was changed")
            .with("currentVersion", current.number())
            .with_header("etag", current.etag())
    }

    /// 428: the route demands a condition that the request does not have.
    pub fn condition_required(detail: impl Into<String>) -> Self {
        Self::new(CONDITION_REQUIRED, "condition_required", detail)
    }

    /// 413: the body or the resulting item is too large. Nothing was written.
    pub fn too_large(detail: impl Into<String>) -> Self {
        // The field is the whole body, because all of it makes the body or the item too large.
        Self::new(TOO_LARGE, "too_large", detail).in_field("")
    }

    /// 415: the route does not take a body of this media type.
    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail).in_field("header:content-type")
    }

    /// 422: the idempotency key was used for another request. Nothing was changed.
    #[must_use]
    pub fn key_reused() -> Self {
        let detail = "this idempotency key belongs to another request; nothing was changed, send a new key";
        Self::new(KEY_REUSED, "idempotency_key_reused", detail).in_field("header:idempotency-key")
    }

    /// 400: the route does not honour idempotency keys. Nothing was changed.
    #[must_use]
    pub fn key_unsupported() -> Self {
        let detail = "this route does not honour idempotency keys; nothing was changed, send the request without one";
        Self::invalid("header:idempotency-key", "idempotency_key_unsupported", detail)
    }

    /// The failure of a change with an idempotency key. The detail tells the client to repeat the request with the same
    /// key, which is safe and finds out about an unknown outcome.
    #[must_use]
    pub fn from_keyed(failure: Failure) -> Self {
        let problem = Self::from(failure);
        let detail = match problem.kind {
            OUTCOME_UNKNOWN => {
                "the change was sent, but whether it was applied could not be proved; \
                 repeat the request with the same Idempotency-Key, and it is applied at most once"
            }
            UNAVAILABLE => {
                "this request applied nothing; an earlier one with the same Idempotency-Key whose outcome was unknown may \
                 have: repeat it, and it is applied at most once"
            }
            INTERNAL => {
                "the request could not be answered; this request applied nothing, an earlier one with the same \
                 Idempotency-Key may have"
            }
            _ => return problem,
        };
        Problem { detail: detail.into(), ..problem }
    }

    /// The failure of a change that can be repeated unchanged at any time. The detail tells the client to repeat the
    /// request, which finds out about an unknown outcome.
    #[must_use]
    pub fn from_repeatable(failure: Failure) -> Self {
        let problem = Self::from(failure);
        if problem.kind != OUTCOME_UNKNOWN {
            return problem;
        }
        let detail =
            "the change was sent, but whether it was applied could not be proved; repeat the request, which is safe";
        Problem { detail: detail.into(), ..problem }
    }

    /// 500: the service failed in a way that no route expects. Only the log has the source.
    pub fn internal(source: impl Into<Source>) -> Self {
        let detail = "the request could not be answered";
        Problem { source: Some(source.into()), ..Self::new(INTERNAL, "internal", detail) }
    }

    /// Adds a member to the body.
    ///
    /// # Panics
    /// If the value is not JSON, such as a map with numbers for names.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.members.insert(name.to_owned(), to_raw_value(&value).expect("a JSON value"));
        self
    }

    pub(super) fn in_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into().into());
        self
    }

    /// Adds the time after which the client should repeat the request: whole seconds, rounded up, at least 1.
    #[must_use]
    pub fn retry_after(self, time: Duration) -> Self {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        self.with_header("retry-after", seconds.max(1).to_string())
    }

    fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The sentence for people.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The invalid field, if there is one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Whether the state of an item refuses the request (409).
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.kind == REFUSED
    }

    /// Whether the service is at fault (500, 503 or 504), and not the request.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(self.kind, INTERNAL | UNAVAILABLE | OUTCOME_UNKNOWN)
    }

    #[cfg(feature = "axum")]
    pub(super) fn take_for_log(&mut self) -> Self {
        Problem { source: self.source.take(), ..Self::new(self.kind, self.code, "") }
    }

    /// Converts the problem to a response.
    #[must_use]
    pub fn into_response(self) -> Response {
        let &(status, title) = self.kind;
        let (code, detail, field) = (self.code, self.detail.clone(), self.field.clone());
        let said = self.with("type", "about:blank").with("title", title).with("status", status);
        let said = said.with("detail", detail).with("code", code);
        let said = if let Some(field) = field { said.with("field", field) } else { said };
        let mut headers: Headers = said.headers.into_iter().map(|(name, value)| (name.into(), value)).collect();
        headers.push(("content-type".into(), PROBLEM_JSON.to_owned()));
        Response::problem(status, code, headers, &said.members)
    }
}

/// Prints the detail. The source is only for the log, never for the client.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl StdError for Problem {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Problem> for http::Response<String> {
    fn from(problem: Problem) -> Self {
        problem.into_response().into()
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Problem::invalid(invalid.pointer, invalid.code, invalid.detail)
    }
}

/// The problem of a change with an idempotency key. Repeating such a request is safe.
impl From<IdempotencyError<Problem>> for Problem {
    fn from(error: IdempotencyError<Problem>) -> Self {
        match error {
            IdempotencyError::KeyReused => Problem::key_reused(),
            IdempotencyError::Refused(problem) => problem,
            IdempotencyError::Failed(failure) => Problem::from_keyed(failure),
        }
    }
}

impl From<Infallible> for Problem {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The problem of a listing. Its cursor came in the query parameter `cursor`.
impl From<Error<InvalidCursor>> for Problem {
    fn from(error: Error<InvalidCursor>) -> Self {
        match error {
            Error::Refused(InvalidCursor) => Self::invalid(
                "query:cursor",
                "invalid_cursor",
                "this cursor does not belong to this listing: begin again without one",
            ),
            Error::Failed(failure) => failure.into(),
        }
    }
}

/// Maps every failure to its kind. The detail states the outcome and nothing internal.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let mut problem = match &failure {
            Failure { kind: FailureKind::Contention { .. }, .. } => Self::new(
                UNAVAILABLE,
                "contention",
                "too many others change this item at once; nothing was applied, the same request may succeed",
            )
            .retry_after(Duration::from_secs(1)),
            Failure { kind: FailureKind::Unavailable { .. }, .. } => Self::new(
                UNAVAILABLE,
                "unavailable",
                "the table could not be asked in time; nothing was applied, the same request may succeed",
            )
            .retry_after(Duration::from_secs(1)),
            Failure { kind: FailureKind::OutcomeUnknown { .. }, .. } => Self::new(
                OUTCOME_UNKNOWN,
                "outcome_unknown",
                "the change was sent, but whether it was applied could not be proved; repeat it only if that is safe, \
                 otherwise wait 15 minutes and then read the item, because a late copy may be applied until then",
            ),
            Failure { kind: FailureKind::Fenced, .. } => {
                Self::refused("fenced", "the lease is not held any more; nothing was applied")
            }
            Failure { kind: FailureKind::EditRefused { .. }, .. } => Self::refused(
                "edit_refused",
                "an item is not there, or is not as this change demands; nothing was applied",
            ),
            Failure { kind: FailureKind::Held { .. }, .. } => Self::refused(
                "held",
                "parts of an item are held for orders that are not decided yet; nothing was applied, the same request may \
                 succeed",
            )
            .retry_after(Duration::from_secs(1)),
            Failure { kind: FailureKind::TooLarge { bytes, limit }, .. } => {
                Self::too_large(format!("the item would take {bytes} bytes of at most {limit}; nothing was written"))
            }
            Failure { kind: FailureKind::CorruptItem { .. }, .. }
            | Failure { kind: FailureKind::InvalidRecord { .. }, .. }
            | Failure { kind: FailureKind::InvalidTransaction { .. }, .. }
            | Failure { kind: FailureKind::NotConfigured { .. }, .. }
            | Failure { kind: FailureKind::Rejected { .. }, .. } => {
                Self::new(INTERNAL, "internal", "the request could not be answered; nothing was applied")
            }
        };
        problem.source = Some(Box::new(failure));
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
        response.headers().iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn every_failure_has_its_status_and_says_nothing_of_the_inside() {
        let secret = || -> Source { "arn:aws:secret".into() };
        for (failure, expected, code) in [
            (Failure::of(FailureKind::Contention { attempts: 3 }), 503, "contention"),
            (Failure::of(FailureKind::Unavailable { source: secret() }), 503, "unavailable"),
            (Failure::of(FailureKind::OutcomeUnknown { source: secret() }), 504, "outcome_unknown"),
            (Failure::of(FailureKind::Fenced), 409, "fenced"),
            (
                Failure::of(FailureKind::EditRefused { name: "secret".to_owned(), reason: "secret".to_owned() }),
                409,
                "edit_refused",
            ),
            (Failure::of(FailureKind::TooLarge { bytes: 500_000, limit: 409_600 }), 413, "too_large"),
            (Failure::of(FailureKind::CorruptItem { reason: "arn:aws:secret".to_owned() }), 500, "internal"),
            (Failure::of(FailureKind::InvalidRecord { reason: "arn:aws:secret".to_owned() }), 500, "internal"),
            (Failure::of(FailureKind::NotConfigured { source: secret() }), 500, "internal"),
            (Failure::of(FailureKind::Rejected { source: secret() }), 500, "internal"),
        ] {
            let response = Problem::from(failure).into_response();
            assert_eq!((response.status(), response.outcome()), (expected, code));
            assert_eq!(header(&response, "retry-after").is_some(), expected == 503, "{code}");
            assert!(!response.body().is_some_and(|body| body.contains("secret")), "{code}");
        }
    }

    #[test]
    fn what_is_unknown_of_a_keyed_change_is_found_out_by_repeating_it() {
        let unknown =
            Problem::from_keyed(Failure::of(FailureKind::OutcomeUnknown { source: "lost".into() })).into_response();
        assert_eq!((unknown.status(), unknown.outcome()), (504, "outcome_unknown"));
        assert!(unknown.body().is_some_and(|body| body.contains("with the same Idempotency-Key")));
        let contention = Problem::from_keyed(Failure::of(FailureKind::Contention { attempts: 3 })).into_response();
        assert_eq!((contention.status(), contention.outcome()), (503, "contention"));
        assert!(contention.body().is_some_and(|body| body.contains("this request applied nothing")));
    }

    #[test]
    fn what_is_unknown_of_a_repeatable_change_is_found_out_by_repeating_it() {
        let unknown = Problem::from_repeatable(Failure::of(FailureKind::OutcomeUnknown { source: "lost".into() }));
        assert_eq!(unknown.code(), "outcome_unknown");
        assert!(unknown.detail().contains("repeat the request"));
        let contention = Problem::from_repeatable(Failure::of(FailureKind::Contention { attempts: 3 }));
        assert!(contention.detail().contains("nothing was applied"));
    }

    #[test]
    fn retry_after_is_whole_seconds_rounded_up_and_at_least_1() {
        for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (299_500, "300")] {
            let response = Problem::refused("x", "x").retry_after(Duration::from_millis(millis)).into_response();
            assert_eq!(header(&response, "retry-after"), Some(seconds));
        }
    }
}
