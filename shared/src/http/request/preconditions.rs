//! Reads the preconditions of a request.

use super::message::Request;
use crate::http::preconditions::{IfMatch, IfNoneMatch, Preconditions};
use crate::http::problem::Problem;
use crate::http::validator::Validator;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::ItemVersion;

    fn with_header(name: &str, value: &str) -> Request {
        let mut request = Request::default();
        request.headers.insert(name.to_owned(), value.to_owned());
        request
    }

    #[test]
    fn preconditions_that_a_route_does_not_take_are_refused_not_dropped() {
        assert!(with_header("if-none-match", "*").if_match::<ItemVersion>().is_err());
        assert!(with_header("if-match", "*").if_absent().is_err());
        assert!(with_header("if-none-match", "\"a\"").if_absent().is_err());
        assert_eq!(with_header("if-none-match", "*").if_absent().ok(), Some(true));
    }
}
