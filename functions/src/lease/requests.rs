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
pub fn parse_acquire(request: &Request) -> Result<Wanted, Problem> {
    let mut fields = request.fields()?;
    let holder = fields.required_id("holder")?;
    let (ttl_seconds, terms) = terms(&mut fields)?;
    fields.finish()?;
    Ok(Wanted { holder, ttl_seconds, terms })
}

/// Parses `{token, ttlSeconds}`: the token of the lease with its new length from now on.
pub fn parse_renewal(request: &Request) -> Result<(u64, LeaseTerms), Problem> {
    let mut fields = request.patch_fields()?;
    let token = fields.required_whole("token", FencingToken::NUMBERS)?.unsigned_abs();
    let (_, terms) = terms(&mut fields)?;
    fields.finish()?;
    Ok((token, terms))
}

/// Parses the token in `?token=…`. Without one, the problem is `condition_required`.
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
