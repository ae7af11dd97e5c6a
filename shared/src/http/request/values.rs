//! Single values in bodies, paths and queries: ids, addresses and moments.

use crate::http::problem::Problem;
use crate::timestamp::Timestamp;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The longest body: 512 KB, which is more than the largest item.
pub const MAX_BODY: usize = 512 * 1024;

/// How far a past moment may lie ahead of our clock: 5 minutes, because clocks differ.
const MAX_AHEAD: Duration = Duration::from_mins(5);

/// An IPv4 or IPv6 address, in the one notation in which it is stored: RFC 5952, and IPv4 for `::ffff:192.0.2.1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ip(IpAddr);

impl Ip {
    /// Parses an address. A problem names `field` as its place. Refuses leading zeros in IPv4, because some programs
    /// read them as octal. Refuses zones, ports and brackets.
    ///
    /// # Errors
    /// `invalid_ip`.
    pub fn parse(text: &str, field: &str) -> Result<Self, Problem> {
        let address: IpAddr = text.parse().map_err(|_| {
            let detail = "this must be an IPv4 or IPv6 address, IPv4 without leading zeros";
            Problem::invalid(field, "invalid_ip", detail)
        })?;
        Ok(Ip(address.to_canonical()))
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parses a moment in RFC 3339 that must not be in the future. Allows 5 minutes, because our clock may be behind. A
/// problem names `field` as its place.
pub(super) fn past(text: &str, field: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    let moment = Timestamp::from_rfc3339(text).ok().filter(|moment| moment.epoch_millis().is_some());
    let moment = moment.ok_or_else(|| {
        let detail = "this must be a moment in RFC 3339, no finer than a millisecond and not before 1970";
        Problem::invalid(field, "invalid_timestamp", detail)
    })?;
    if moment.since(now) > MAX_AHEAD {
        let detail = format!("this is more than {} minutes ahead of the clock", MAX_AHEAD.as_secs() / 60);
        return Err(Problem::invalid(field, "timestamp_in_future", detail));
    }
    Ok(moment)
}

const MAX_ID: usize = 128;

/// A name of 1 to 128 characters from `A-Z a-z 0-9 . _ : -`, except `.` and `..`. It is the same in a path, in a log
/// and in a key: no decoding changes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(String);

impl Id {
    /// Parses an id. A problem names `field` as its place.
    ///
    /// # Errors
    /// `invalid_id`.
    pub fn parse(text: &str, field: &str) -> Result<Self, Problem> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        if (1..=MAX_ID).contains(&text.len()) && text.bytes().all(allowed) && text != "." && text != ".." {
            Ok(Id(text.to_owned()))
        } else {
            let detail = "an id has 1 to 128 of A-Z a-z 0-9 . _ : - and is neither . nor ..";
            Err(Problem::invalid(field, "invalid_id", detail))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
