//! The preconditions that a route takes.

use super::message::Request;
use crate::http::preconditions::{IfMatch, IfNoneMatch, Preconditions};
use crate::http::problem::Problem;
use crate::http::validator::Validator;

impl Request {
    /// What the request demands of an item that it changes. `If-None-Match` has no meaning there.
    ///
    /// # Errors
    /// `invalid_if_match`; `invalid_if_none_match` where there is one: refused, never silently dropped.
    pub fn change_preconditions<V: Validator>(&self) -> Result<IfMatch<V>, Problem> {
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
    pub fn read_preconditions<V: Validator>(&self) -> Result<Preconditions<V>, Problem> {
        Ok(Preconditions {
            if_match: IfMatch::parse(self.header("if-match"))?,
            if_none_match: IfNoneMatch::parse(self.header("if-none-match"))?,
        })
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
        assert!(with_header("if-none-match", "*").change_preconditions::<ItemVersion>().is_err());
        assert!(with_header("if-match", "*").if_absent().is_err());
        assert!(with_header("if-none-match", "\"a\"").if_absent().is_err());
        assert_eq!(with_header("if-none-match", "*").if_absent().ok(), Some(true));
    }
}
