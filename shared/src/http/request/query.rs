//! [`QueryString`]: reads the parameters of a query by name, and refuses unknown ones.

use super::message::Request;
use super::values::{Id, past};
use crate::http::problem::Problem;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The parameters of a query.
#[derive(Debug)]
pub struct QueryString(BTreeMap<String, String>);

impl Request {
    /// The parameters of the query, if all of them are `known`. See [`QueryString::only`].
    ///
    /// # Errors
    /// `unknown_parameter`.
    pub fn query_of(&self, known: &[&str]) -> Result<QueryString, Problem> {
        QueryString::of(self).only(known)
    }
}

impl QueryString {
    /// All parameters of a request. Call [`QueryString::only`] before you read one.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        QueryString(request.query.clone())
    }

    /// Refuses parameters that are not in `known`. Ignoring a misspelt parameter could widen a change.
    ///
    /// # Errors
    /// `unknown_parameter`.
    pub fn only(self, known: &[&str]) -> Result<Self, Problem> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(self),
            Some(name) => {
                let detail = format!("this route knows only {}", known.join(" and "));
                Err(Problem::invalid(field(name), "unknown_parameter", detail))
            }
        }
    }

    /// Reads the id `name`, if it is present.
    ///
    /// # Errors
    /// `invalid_id`.
    pub fn optional_id(&self, name: &str) -> Result<Option<Id>, Problem> {
        self.0.get(name).map(|text| Id::parse(text, &field(name))).transpose()
    }

    /// Reads the id `name`.
    ///
    /// # Errors
    /// `missing_parameter`, `invalid_id`.
    pub fn required_id(&self, name: &str) -> Result<Id, Problem> {
        self.optional_id(name)?.ok_or_else(|| {
            Problem::invalid(field(name), "missing_parameter", "this parameter of the query is required")
        })
    }

    /// The text of `name` as it is, if it is present.
    #[must_use]
    pub fn optional_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Reads the whole number `name`, within these limits, if it is present. Accepts digits only.
    ///
    /// # Errors
    /// `invalid_value`.
    pub fn optional_whole(&self, name: &str, limits: RangeInclusive<i64>) -> Result<Option<i64>, Problem> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(whole) if digits && limits.contains(&whole) => Ok(Some(whole)),
            _ => {
                let detail = format!("this must be a whole number from {} to {}", limits.start(), limits.end());
                Err(Problem::invalid(field(name), "invalid_value", detail))
            }
        }
    }

    /// Reads the moment `name`, if it is present. It must not be in the future.
    ///
    /// # Errors
    /// `invalid_timestamp`, `timestamp_in_future`.
    pub fn optional_past(&self, name: &str, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
        // In a query, the + of an offset means a space unless it is encoded. A timestamp has no other space.
        self.0.get(name).map(|text| past(&text.replace(' ', "+"), &field(name), now)).transpose()
    }
}

fn field(name: &str) -> String {
    format!("query:{name}")
}
