//! [`Query`]: the parameters after the `?`, read by name, with none that the route does not know.

use super::values::past;
use super::{Id, Request};
use crate::http::Problem;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;

/// The parameters of a query.
#[derive(Debug)]
pub struct Query<'a>(&'a BTreeMap<String, String>);

impl Request {
    /// The parameters of the query, which are among these. One that would be ignored is refused: a misspelt one could
    /// make a change reach further than it was meant to.
    ///
    /// # Errors
    /// `unknown_parameter`.
    pub fn query_of(&self, known: &[&str]) -> Result<Query<'_>, Problem> {
        match self.query.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Query(&self.query)),
            Some(name) => {
                let detail = format!("this route knows only {}", known.join(" and "));
                Err(Problem::invalid(field(name), "unknown_parameter", detail))
            }
        }
    }
}

impl Query<'_> {
    /// The id of this name, if there is one.
    ///
    /// # Errors
    /// `invalid_id`.
    pub fn optional_id(&self, name: &str) -> Result<Option<Id>, Problem> {
        self.0.get(name).map(|text| Id::parse(text, &field(name))).transpose()
    }

    /// The moment of this name, if there is one; it has passed.
    ///
    /// # Errors
    /// `invalid_timestamp`, `timestamp_in_future`.
    pub fn optional_past(&self, name: &str, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
        // The + of an offset means a space in a query, unless it is encoded; a timestamp has no other space.
        self.0.get(name).map(|text| past(&text.replace(' ', "+"), &field(name), now)).transpose()
    }
}

fn field(name: &str) -> String {
    format!("query:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(query: &[(&str, &str)]) -> Request {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Request { query, ..Request::default() }
    }

    #[test]
    fn a_parameter_that_the_route_does_not_know_is_refused() {
        assert!(with(&[]).query_of(&["a"]).is_ok());
        assert!(with(&[("a", "1")]).query_of(&["a", "b"]).is_ok());
        assert_eq!(with(&[("A", "1")]).query_of(&["a"]).expect_err("refused").code(), "unknown_parameter");
    }

    #[test]
    fn what_is_there_is_read_and_never_taken_for_absent() {
        let now = Timestamp::from_rfc3339("2026-03-07T10:00:00Z").expect("a moment");
        let request = with(&[("at", "2026-03-07T11:00:00 01:00"), ("id", ""), ("late", "2027-01-01T00:00:00Z")]);
        let query = request.query_of(&["at", "id", "late"]).expect("known");
        assert_eq!(query.optional_past("at", now).ok().flatten(), Some(now));
        assert_eq!(query.optional_past("none", now).ok().flatten(), None);
        assert_eq!(query.optional_past("late", now).expect_err("refused").code(), "timestamp_in_future");
        assert_eq!(query.optional_id("id").expect_err("refused").code(), "invalid_id");
        assert_eq!(query.optional_id("none").ok().flatten(), None);
    }
}
