//! `If-Match` and `If-None-Match` (RFC 9110, section 13).

use super::problem::Problem;
use super::request::Request;
use super::response::Response;
use super::validator::Validator;
use fencepost_core::ItemVersion;
use serde::Serialize;

/// The state of an item demanded by a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfMatch<V = ItemVersion> {
    /// Any state or none: the header is missing.
    None,
    /// `*`: the item must exist.
    Any,
    /// The item must be in exactly this state.
    Tag(V),
}

impl<V: Validator> IfMatch<V> {
    /// Parses the value of the header.
    ///
    /// # Errors
    /// `invalid_if_match` for any value except `*` and one strong tag in the form of this crate. A list, a weak tag or
    /// an unknown tag could never match. An early error is better than a 412 each time.
    pub fn parse(header: Option<&str>) -> Result<Self, Problem> {
        match header.map(str::trim) {
            None => Ok(IfMatch::None),
            Some("*") => Ok(IfMatch::Any),
            Some(tag) => V::from_etag(tag).map(IfMatch::Tag).ok_or_else(|| {
                let detail = "If-Match takes * or exactly one ETag, as it was received";
                Problem::invalid("header:if-match", "invalid_if_match", detail)
            }),
        }
    }

    /// Checks an existing item, which is in the state `current`.
    ///
    /// # Errors
    /// `version_conflict` if the request demands another state.
    pub fn check(self, current: V) -> Result<(), Problem> {
        match self {
            IfMatch::Tag(at) if at != current => Err(Problem::version_conflict(current)),
            IfMatch::None | IfMatch::Any | IfMatch::Tag(_) => Ok(()),
        }
    }
}

/// The states of an item excluded by a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IfNoneMatch {
    /// No state: the header is missing.
    None,
    /// `*`: the item must not exist.
    Any,
    /// These tags, compared weakly. On GET, they are the states of the client.
    Tags(Vec<String>),
}

impl IfNoneMatch {
    /// Parses the value of the header. A tag may be any quoted text, because tags are only compared.
    ///
    /// # Errors
    /// `invalid_if_none_match` if the value is neither `*` nor a list of quoted tags.
    pub fn parse(header: Option<&str>) -> Result<Self, Problem> {
        match header.map(str::trim) {
            None => Ok(IfNoneMatch::None),
            Some("*") => Ok(IfNoneMatch::Any),
            Some(list) => parse_list(list).map(IfNoneMatch::Tags).ok_or_else(|| {
                let detail = "If-None-Match takes * or a list of quoted tags";
                Problem::invalid("header:if-none-match", "invalid_if_none_match", detail)
            }),
        }
    }

    /// Whether the request excludes this state of the item.
    #[must_use]
    pub fn matches<V: Validator>(&self, current: V) -> bool {
        match self {
            IfNoneMatch::None => false,
            IfNoneMatch::Any => true,
            IfNoneMatch::Tags(tags) => tags.contains(&current.etag()),
        }
    }
}

/// The parsed `If-Match` and `If-None-Match` of one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preconditions<V = ItemVersion> {
    /// The state that the request demands.
    pub if_match: IfMatch<V>,
    /// The states that the request excludes.
    pub if_none_match: IfNoneMatch,
}

impl<V: Validator> Preconditions<V> {
    /// Answers a conditional GET of an item in this state. The answer is 304 if the client has it, otherwise 200.
    ///
    /// # Errors
    /// `version_conflict` (412) if `If-Match` demands another state.
    pub fn respond<B: Serialize>(&self, at: V, body: impl FnOnce() -> B) -> Result<Response, Problem> {
        self.if_match.check(at)?;
        Ok(if self.if_none_match.matches(at) { Response::not_modified(at) } else { Response::ok(at, &body()) })
    }
}

/// Parses a comma-separated list of tags. Each tag keeps its quotes and loses its `W/`. A tag may contain commas.
fn parse_list(list: &str) -> Option<Vec<String>> {
    let mut tags = Vec::new();
    let mut rest = list;
    loop {
        let opened = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
        let (tag, after) = opened.split_once('"')?;
        tags.push(format!("\"{tag}\""));
        match after.trim_start() {
            "" => return Some(tags),
            more => rest = more.strip_prefix(',')?.trim_start(),
        }
    }
}

impl Request {
    /// The precondition of a change. Only `If-Match` has a meaning there.
    ///
    /// # Errors
    /// `invalid_if_match`. `invalid_if_none_match` if the request has that header: it is refused, never ignored.
    pub fn if_match<V: Validator>(&self) -> Result<IfMatch<V>, Problem> {
        if self.header("if-none-match").is_some() {
            let detail = "If-None-Match is for GET and for creation; to change an item, send If-Match";
            return Err(Problem::invalid("header:if-none-match", "invalid_if_none_match", detail));
        }
        IfMatch::parse(self.header("if-match"))
    }

    /// The preconditions of a read. `If-Match` is checked before `If-None-Match`.
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`.
    pub fn read_preconditions<V: Validator>(&self) -> Result<Preconditions<V>, Problem> {
        Ok(Preconditions {
            if_match: IfMatch::parse(self.header("if-match"))?,
            if_none_match: IfNoneMatch::parse(self.header("if-none-match"))?,
        })
    }

    /// Whether a creation has `If-None-Match: *`. If so, a taken key is a failed precondition.
    ///
    /// # Errors
    /// `invalid_if_none_match` for any value except `*`. `invalid_if_match` if the request has that header, because an
    /// item that does not exist yet has no version.
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

    /// Refuses `If-Match` and `If-None-Match` on a route that uses another condition. `instead` tells the client which.
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`.
    pub fn refuse_preconditions(&self, instead: &str) -> Result<(), Problem> {
        for (header, code) in [("if-match", "invalid_if_match"), ("if-none-match", "invalid_if_none_match")] {
            if self.header(header).is_some() {
                let detail = format!("this route does not take it: {instead}");
                return Err(Problem::invalid(format!("header:{header}"), code, detail));
            }
        }
        Ok(())
    }
}
