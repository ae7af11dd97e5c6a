//! Parses bodies and queries to typed requests. All 400s about them come from here.

use crate::operation::{ID, Schema, TOKEN};
use fencepost::FencingToken;
use fencepost::http::{Fields, Id, Problem, Request};
use fencepost::lease::LeaseTerms;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The valid lengths of a lease in seconds.
const TTL: RangeInclusive<i64> = 1..=900;

/// The schema of the length of a lease.
const TTL_SECONDS: Schema = Schema::Named("TtlSeconds", &Schema::Whole(*TTL.start(), *TTL.end()));

/// The schema of a request for a lease.
pub const ACQUISITION: Schema = Schema::Object(&[("holder", ID), ("ttlSeconds", TTL_SECONDS)]);

/// The schema of a request to renew a lease.
pub const RENEWAL: Schema = Schema::Named("Renewal", &Schema::Object(&[("token", TOKEN), ("ttlSeconds", TTL_SECONDS)]));

/// A request for a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The holder.
    pub holder: Id,
    /// The length of the lease in seconds: 1 to 900.
    pub ttl_seconds: i64,
    /// The same length as terms.
    pub terms: LeaseTerms,
}

/// Parses `{holder, ttlSeconds}`.
///
/// # Errors
/// A problem that names the field.
pub fn parse_acquire(request: &Request) -> Result<Wanted, Problem> {
    let mut fields = request.fields()?;
    let holder = fields.required_id("holder")?;
    let (ttl_seconds, terms) = terms(&mut fields)?;
    fields.finish()?;
    Ok(Wanted { holder, ttl_seconds, terms })
}

/// Parses `{token, ttlSeconds}`: the token of the lease with its new length from now on.
///
/// # Errors
/// A problem that names the field.
pub fn parse_renewal(request: &Request) -> Result<(u64, LeaseTerms), Problem> {
    let mut fields = request.patch_fields()?;
    let token = fields.required_whole("token", FencingToken::NUMBERS)?.unsigned_abs();
    let (_, terms) = terms(&mut fields)?;
    fields.finish()?;
    Ok((token, terms))
}

/// Parses the token in `?token=…`.
///
/// # Errors
/// `condition_required` without a token. Otherwise a problem that names the parameter.
pub fn parse_release(request: &Request) -> Result<u64, Problem> {
    let query = request.query_of(&["token"])?;
    query.optional_whole("token", FencingToken::NUMBERS)?.map(i64::unsigned_abs).ok_or_else(|| {
        Problem::condition_required("say which lease is to be released: ?token=…, as it was answered to its acquire")
    })
}

fn terms(fields: &mut Fields) -> Result<(i64, LeaseTerms), Problem> {
    let seconds = fields.required_whole("ttlSeconds", TTL)?;
    let terms = LeaseTerms::new(Duration::from_secs(seconds.unsigned_abs()))
        .map_err(|short| fields.wrong("ttlSeconds", "invalid_value", &short.to_string()))?;
    Ok((seconds, terms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost::http::Body;

    fn request(body: &str) -> Request {
        Request { body: Body { text: body.to_owned(), is_base64: false }, ..Request::default() }
    }

    #[test]
    fn a_lease_lasts_from_1_to_900_seconds() {
        for (text, seconds) in [("1", 1), ("900", 900), ("9e2", 900), ("30.0", 30)] {
            let wanted = parse_acquire(&request(&format!(r#"{{"holder":"a","ttlSeconds":{text}}}"#))).expect("wanted");
            assert_eq!(wanted.terms.length(), Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn every_wrong_body_is_refused_with_a_code() {
        for (body, code) in [
            (r#"{"ttlSeconds":1}"#, "missing_field"),
            (r#"{"holder":"a"}"#, "missing_field"),
            (r#"{"holder":"","ttlSeconds":1}"#, "invalid_id"),
            (r#"{"holder":1,"ttlSeconds":1}"#, "invalid_type"),
            (r#"{"holder":"a","ttlSeconds":0}"#, "invalid_value"),
            (r#"{"holder":"a","ttlSeconds":-1}"#, "invalid_value"),
            (r#"{"holder":"a","ttlSeconds":901}"#, "invalid_value"),
            (r#"{"holder":"a","ttlSeconds":1.5}"#, "invalid_value"),
            (r#"{"holder":"a","ttlSeconds":"1"}"#, "invalid_type"),
            (r#"{"holder":"a","ttlSeconds":1,"token":1}"#, "unknown_field"),
        ] {
            assert_eq!(parse_acquire(&request(body)).expect_err("refused").code(), code, "{body}");
        }
        for (body, code) in [
            (r#"{"ttlSeconds":1}"#, "missing_field"),
            (r#"{"token":"1","ttlSeconds":1}"#, "invalid_type"),
            (r#"{"token":0,"ttlSeconds":1}"#, "invalid_value"),
            (r#"{"token":9007199254740992,"ttlSeconds":1}"#, "invalid_value"),
            (r#"{"token":1}"#, "missing_field"),
            (r#"{"token":1,"ttlSeconds":1,"holder":"a"}"#, "unknown_field"),
        ] {
            assert_eq!(parse_renewal(&request(body)).expect_err("refused").code(), code, "{body}");
        }
    }

    #[test]
    fn a_release_names_its_token() {
        let mut release = Request::default();
        assert_eq!(parse_release(&release).expect_err("refused").code(), "condition_required");
        for (token, code) in [("0", Some("invalid_value")), ("x", Some("invalid_value")), ("7", None)] {
            release.query.insert("token".to_owned(), token.to_owned());
            assert_eq!(parse_release(&release).map_err(|problem| problem.code()).err(), code, "{token}");
        }
    }
}
