//! How long to wait and when to stop: [`RetryPolicy`] (pure) and [`Deadline`].
#![expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the monotonic clock: a Deadline is made of it"
)]

use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Stands for a time that no clock can hold: 30 years.
const FAR_AWAY: Duration = Duration::from_hours(30 * 365 * 24);

/// The moment after which a call sends nothing more and gives its answer.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline that lies `time` from now.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        let now = Instant::now();
        Deadline(now.checked_add(time).unwrap_or(now + FAR_AWAY))
    }

    /// How much time is left; zero when it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// A moment on two clocks: a machine that is paused may stop one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DualClockDeadline {
    monotonic: Deadline,
    wall: SystemTime,
}

impl DualClockDeadline {
    /// The moment that lies `time` from now, which is `now` by the wall clock.
    pub(crate) fn within(time: Duration, now: SystemTime) -> Self {
        DualClockDeadline { monotonic: Deadline::within(time), wall: now.checked_add(time).unwrap_or(now + FAR_AWAY) }
    }

    /// Whichever comes first, on each clock.
    pub(crate) fn earlier(self, other: DualClockDeadline) -> Self {
        let monotonic = Deadline(self.monotonic.0.min(other.monotonic.0));
        DualClockDeadline { monotonic, wall: self.wall.min(other.wall) }
    }

    /// How much time is left, by the clock that has less of it; zero when it has passed.
    pub(crate) fn remaining(self, now: SystemTime) -> Duration {
        self.monotonic.remaining().min(self.wall.duration_since(now).unwrap_or_default())
    }
}

/// What the conflicts of one change have shown so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Conflicts {
    /// How many there were.
    pub count: u32,
    /// Pauses made because of them.
    pub pauses: u32,
    /// Conflicts since the last pause; 1 is that of the attempt right after it.
    pub since_pause: u32,
    /// How long the last pause was.
    pub paused: Duration,
    /// How long the last refusal took, from the send to its answer.
    pub round_trip: Duration,
    /// By how many versions the item had moved on between being observed and refusing.
    pub behind: u64,
}

impl Conflicts {
    /// Counts one more.
    pub fn met(&mut self, behind: u64, round_trip: Duration) {
        self.count += 1;
        self.since_pause += 1;
        self.behind = behind;
        self.round_trip = round_trip;
    }

    /// Counts a pause.
    pub fn paused(&mut self, pause: Duration) {
        if !pause.is_zero() {
            self.pauses += 1;
            self.since_pause = 0;
            self.paused = pause;
        }
    }

    /// Whether others commit more than twice in five round trips: then a fresh attempt is about as likely
    /// to meet one of them as not.
    fn crowded(&self) -> bool {
        let observed = self.paused + self.round_trip;
        u32::try_from(self.behind).map_or(true, |behind| {
            self.round_trip.saturating_mul(behind).saturating_mul(5) > observed.saturating_mul(2)
        })
    }
}

/// How often, how fast and how patiently one change is tried.
///
/// It is a value. Change the fields of the default, and give it to [`Store::with_policy`](crate::Store::with_policy):
///
/// ```
/// let mut policy = fencepost::RetryPolicy::default();
/// policy.max_attempts = 10;
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
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
    /// First pause after a conflict, in round trips: drawn between 0 and this. Default 25, which lets
    /// ten writers who met once go past each other; see [`RetryPolicy::conflict_pause`].
    pub conflict_pause: u32,
    /// Every later pause, in round trips: drawn between 0 and this. Default 350, for a hundred writers.
    pub crowd_pause: u32,
    /// Attempts in a row, after a pause, that are each made at once on the item that the last refusal
    /// returned. Default 3.
    pub fresh_attempts: u32,
    /// The most that a round trip counts for in these pauses. Default 20 ms: a slow one is no reason to wait.
    pub max_round_trip: Duration,
    /// The most that a pause after a conflict may be. Default 3.5 s; it never takes more than half of the time left.
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
            conflict_pause: 25,
            crowd_pause: 350,
            fresh_attempts: 3,
            max_round_trip: Duration::from_millis(20),
            max_conflict_pause: Duration::from_millis(3500),
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

    /// The pause before the next attempt, by what the `conflicts` of this change have shown.
    ///
    /// All pauses are measured in round trips, because that is what decides whether two attempts meet:
    /// an attempt wins if nobody commits between its observation and its write, one round trip later.
    ///
    /// 1. After the first conflict: anywhere within 25 round trips. Who met is spread out.
    /// 2. What was observed is stale after a pause, so that attempt is usually refused. But its refusal
    ///    brings the current item, and **that** is tried at once, up to 3 times: no pause.
    /// 3. When those are refused as well, anywhere within 350 round trips, and 2 again.
    /// 4. After the first pause, the refusal also shows how fast the item moves. Where others commit more
    ///    than twice in five round trips there is a crowd, and 3 follows without trying.
    ///
    /// Writers who begin at once on one item, hops of 5 ms each way, simulated with 600 seeds for a hundred
    /// writers (mean; worst) and 1,000 for the others; `cargo dev bench` plays it with the real code:
    ///
    /// | writers | requests per success | mean time |
    /// |---|---|---|
    /// | 2 | 2.5 | 87 ms |
    /// | 5 | 3.5 | 145 ms |
    /// | 10 | 4.1 | 233 ms |
    /// | 100 | 5.5; 5.8 | 1.8 s |
    ///
    /// A hundred need 7.4 requests without rule 4. With one bound that grows fourfold from 100 ms to 2 s and one
    /// fresh attempt per pause they need 7.7, in 1.1 s; with full jitter (25 ms to 1 s) and a read after each
    /// conflict 12.5, in 0.8 s. Fewer requests are bought with time: refused ones are charged like any other.
    #[must_use]
    pub fn conflict_pause(&self, conflicts: &Conflicts, random: u64) -> Duration {
        let round_trips = match conflicts {
            Conflicts { count: 0, .. } => return Duration::ZERO,
            Conflicts { pauses: 0, .. } => self.conflict_pause,
            Conflicts { pauses: 1, since_pause: 1, .. } if conflicts.crowded() => self.crowd_pause,
            Conflicts { since_pause, .. } if *since_pause > self.fresh_attempts => self.crowd_pause,
            _ => return Duration::ZERO,
        };
        let bound = conflicts.round_trip.min(self.max_round_trip).saturating_mul(round_trips);
        fraction(bound.min(self.max_conflict_pause), random)
    }
}

/// `first` times `factor` to the power of `times`, at most `cap`.
fn grown(first: Duration, factor: u32, times: u32, cap: Duration) -> Duration {
    let factor = factor.checked_pow(times).unwrap_or(u32::MAX);
    first.checked_mul(factor).map_or(cap, |grown| grown.min(cap))
}

/// A part of `bound` by `random`: 0 gives nothing, `u64::MAX` nearly all.
pub(crate) fn fraction(bound: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    let part = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    /// The pause at its longest.
    fn longest(conflicts: &Conflicts) -> u128 {
        (RetryPolicy::default().conflict_pause(conflicts, u64::MAX) + Duration::from_nanos(1)).as_millis()
    }

    #[test]
    fn pauses_stay_within_their_bounds_however_often_it_is_tried() {
        let policy = RetryPolicy::default();
        let mut conflicts = Conflicts::default();
        for round in 0..200 {
            conflicts.met(u64::MAX >> (round % 64), Duration::from_millis(1 << (round % 20)));
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(policy.conflict_pause(&conflicts, random) <= policy.max_conflict_pause);
                assert!(policy.resend_pause(round, random) <= policy.max_resend_pause);
                assert!(policy.timeout(round, random == 0) <= policy.max_timeout);
            }
            conflicts.paused(policy.conflict_pause(&conflicts, u64::MAX / 3));
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
    fn a_pause_is_followed_by_three_attempts_on_fresh_items_and_then_by_a_longer_one() {
        let mut conflicts = Conflicts::default();
        assert_eq!(longest(&conflicts), 0);
        for (pause, pauses) in [(250, 0), (3500, 1), (3500, 2)] {
            if pauses == 0 {
                conflicts.met(1, ROUND_TRIP);
            }
            assert_eq!((longest(&conflicts), conflicts.pauses), (pause, pauses));
            conflicts.paused(Duration::from_millis(100));
            for _ in 0..3 {
                conflicts.met(1, ROUND_TRIP);
                assert_eq!(longest(&conflicts), 0);
                conflicts.paused(Duration::ZERO);
            }
            conflicts.met(1, ROUND_TRIP);
        }
    }

    #[test]
    fn a_crowd_is_left_alone_after_the_first_pause_and_tried_after_the_others() {
        let after = |pauses, behind| {
            let paused = Duration::from_millis(100);
            longest(&Conflicts { count: 2, pauses, since_pause: 1, paused, round_trip: ROUND_TRIP, behind })
        };
        assert_eq!([after(1, 4), after(1, 5), after(2, 5)], [0, 3500, 0]);
    }

    #[test]
    fn pauses_are_as_long_as_round_trips_make_them_but_a_slow_one_is_no_reason_to_wait() {
        let first = |millis| {
            let mut conflicts = Conflicts::default();
            conflicts.met(1, Duration::from_millis(millis));
            longest(&conflicts)
        };
        assert_eq!([first(4), first(10), first(20), first(2000)], [100, 250, 500, 500]);
    }
}
