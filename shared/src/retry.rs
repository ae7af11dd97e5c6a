//! How long to wait and when to stop: [`RetryPolicy`] (pure) and [`Deadline`].
#![expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the monotonic clock: a Deadline is made of it"
)]

use std::time::Duration;
use tokio::time::Instant;

/// The moment after which a call sends nothing more and gives its answer.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline that lies `time` from now.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Deadline(Instant::now() + time)
    }

    /// How much time is left; zero when it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// How often, how fast and how patiently one change is tried. A value: give another one to
/// [`Table::with_policy`](crate::Table::with_policy) where the defaults do not fit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetryPolicy {
    /// Observe-decide-write rounds before a call gives up with *contention*. Default 40: with 100
    /// writers on one item the unluckiest needs about 15, so the deadline ends a call, not this.
    pub max_attempts: u32,
    /// How long the first send of a write waits for its answer. Default 150 ms: some 30 times a
    /// usual answer of `DynamoDB`, and short, because an identical resend is always safe and finds
    /// out about a lost answer while the row still remembers it.
    pub first_timeout: Duration,
    /// How long the last sends wait: each timeout in a row doubles the next, up to this. Default 2 s.
    pub max_timeout: Duration,
    /// What the first timeout is until the client has had its first answer, and so has connected.
    /// Default 2 s: name look-up and TLS handshake take most of a second on a 128 MB function.
    pub cold_timeout: Duration,
    /// Pause before a resend of the same write (throttled, a transaction in flight, an answer lost):
    /// drawn between 0 and this, doubled each time in a row. Default 20 ms.
    pub resend_pause: Duration,
    /// The most that such a pause may grow to. Default 1 s.
    pub max_resend_pause: Duration,
    /// Pause after a first conflict: drawn between 0 and this; see [`RetryPolicy::conflict_pause`].
    /// Default 100 ms: some ten round trips, so that ten writers who met once rarely meet again.
    pub conflict_pause: Duration,
    /// The most that such a pause may grow to. Default 2 s.
    pub max_conflict_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            max_attempts: 40,
            first_timeout: Duration::from_millis(150),
            max_timeout: Duration::from_secs(2),
            cold_timeout: Duration::from_secs(2),
            resend_pause: Duration::from_millis(20),
            max_resend_pause: Duration::from_secs(1),
            conflict_pause: Duration::from_millis(100),
            max_conflict_pause: Duration::from_secs(2),
        }
    }
}

impl RetryPolicy {
    /// How long a send may wait for its answer after `lost` answers in a row did not come.
    #[must_use]
    pub fn timeout(&self, lost: u32, connected: bool) -> Duration {
        let first = if connected { self.first_timeout } else { self.cold_timeout };
        grown(first, 2, lost, self.max_timeout)
    }

    /// The pause before the same write is sent again, `sends` being how often it was sent so far.
    ///
    /// Full jitter: anywhere between 0 and the bound, by `random` (64 random bits).
    #[must_use]
    pub fn resend_pause(&self, sends: u32, random: u64) -> Duration {
        fraction(grown(self.resend_pause, 2, sends.saturating_sub(1), self.max_resend_pause), random)
    }

    /// The pause after the `conflicts`-th conflict of a call, before the next attempt.
    ///
    /// Pauses come in pairs. An odd conflict is followed by a long jittered pause (its bound grows
    /// fourfold each time) that spreads the writers out. What was observed is then stale, so that
    /// attempt is usually refused as well; but its refusal brings the current item, and **that** one is
    /// tried at once, while it is fresh. Pausing after every conflict alike would let each item go
    /// stale before it is used: 100 writers then need about 20 requests a change instead of 8.
    #[must_use]
    pub fn conflict_pause(&self, conflicts: u32, random: u64) -> Duration {
        if conflicts.is_multiple_of(2) {
            return Duration::ZERO;
        }
        fraction(grown(self.conflict_pause, 4, conflicts / 2, self.max_conflict_pause), random)
    }
}

/// `first` times `factor` to the power of `times`, at most `cap`.
fn grown(first: Duration, factor: u32, times: u32, cap: Duration) -> Duration {
    let factor = factor.checked_pow(times).unwrap_or(u32::MAX);
    first.checked_mul(factor).map_or(cap, |grown| grown.min(cap))
}

/// A part of `bound` by `random`: 0 gives nothing, `u64::MAX` nearly all.
fn fraction(bound: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    let part = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_within_their_bounds_however_often_it_is_tried() {
        let policy = RetryPolicy::default();
        for round in 0..200 {
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(policy.conflict_pause(round, random) <= policy.max_conflict_pause);
                assert!(policy.resend_pause(round, random) <= policy.max_resend_pause);
                assert!(policy.timeout(round, random == 0) <= policy.max_timeout);
            }
        }
    }

    #[test]
    fn timeouts_start_short_and_double() {
        let policy = RetryPolicy::default();
        let millis: Vec<_> = (0..6).map(|lost| policy.timeout(lost, true).as_millis()).collect();
        assert_eq!(millis, [150, 300, 600, 1200, 2000, 2000]);
        assert_eq!(policy.timeout(0, false), policy.cold_timeout);
    }

    #[test]
    fn every_second_conflict_is_tried_again_at_once() {
        let policy = RetryPolicy::default();
        assert!(policy.conflict_pause(1, u64::MAX) > Duration::from_millis(99));
        assert_eq!(policy.conflict_pause(2, u64::MAX), Duration::ZERO);
        assert!(policy.conflict_pause(3, u64::MAX) > Duration::from_millis(399));
        assert_eq!(policy.conflict_pause(4, u64::MAX), Duration::ZERO);
    }
}
