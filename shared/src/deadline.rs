//! [`Deadline`]: when to stop. The pauses before that are those of [`RetryPolicy`](crate::RetryPolicy).
#![expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the monotonic clock: a Deadline is made of it"
)]

use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The replacement for a time that no clock can hold: 30 years.
const FAR_AWAY: Duration = Duration::from_hours(30 * 365 * 24);

/// The moment that is so much later, or far away.
pub(crate) fn after(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).unwrap_or_else(|| from + FAR_AWAY)
}

/// The moment at which a call stops sending and returns.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline that is `time` from now.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Deadline(after(Instant::now(), time))
    }

    /// The time left. Zero after the deadline.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.remaining_at(Instant::now())
    }

    pub(crate) fn remaining_at(self, now: Instant) -> Duration {
        self.0.saturating_duration_since(now)
    }
}

/// A moment on two clocks. A paused machine may stop one of them.
#[derive(Clone, Copy, Debug)]
pub struct DualClockDeadline {
    monotonic: Deadline,
    wall: SystemTime,
}

impl DualClockDeadline {
    pub fn within(time: Duration, now: SystemTime) -> Self {
        DualClockDeadline { monotonic: Deadline::within(time), wall: now.checked_add(time).unwrap_or(now + FAR_AWAY) }
    }

    pub fn earlier(self, other: DualClockDeadline) -> Self {
        let monotonic = Deadline(self.monotonic.0.min(other.monotonic.0));
        DualClockDeadline { monotonic, wall: self.wall.min(other.wall) }
    }

    /// The time left on the clock that has less. Zero after the moment.
    pub fn remaining(self, now: SystemTime) -> Duration {
        self.monotonic.remaining().min(self.wall.duration_since(now).unwrap_or_default())
    }
}
