//! [`Now`] and [`Draw`]: time and chance come from outside. Nothing here reads a clock.

use std::time::{Duration, SystemTime};

/// The time on both clocks, and the time left until the deadline of the call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Now {
    /// The time on a clock that never goes back, since a moment that is the same for all changes of a client.
    pub at: Duration,
    /// The time of day.
    pub wall: SystemTime,
    /// The time left until the deadline of the call. Zero after it.
    pub left: Duration,
}

/// A source of 64 random bits.
pub type Draw<'a> = &'a mut dyn FnMut() -> u64;

/// Whole seconds since 1970, the unit of TTL. 0 before 1970.
#[must_use]
pub fn epoch_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whole milliseconds since 1970, the unit of leases. 0 before 1970.
#[must_use]
pub fn epoch_millis(time: SystemTime) -> u64 {
    millis(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// Whole milliseconds, at most as many as fit.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// If TTL or a sweep may remove a row within this time, the row proves nothing about a create with a lost answer,
/// because a late copy could find the key free. A signature lives for 5 minutes from its date. Three clocks may be off
/// by less than 5 minutes each: the signer's was ahead, the judge's is behind, the sweeper's is ahead.
const PURGE_MARGIN: Duration = Duration::from_mins(20);

/// Whether TTL may remove a row at this time (epoch seconds) while a request can still arrive.
#[must_use]
pub fn is_soon(purge_at: Option<u64>, now: SystemTime) -> bool {
    purge_at.is_some_and(|seconds| seconds <= epoch_seconds(now + PURGE_MARGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_vanishes_soon_if_its_end_comes_before_the_margin_is_over() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let margin = epoch_seconds(now + PURGE_MARGIN);
        for (purge_at, soon) in [(None, false), (Some(margin + 1), false), (Some(margin), true), (Some(0), true)] {
            assert_eq!(is_soon(purge_at, now), soon, "{purge_at:?}");
        }
    }
}
