//! Waiting for a lease that somebody holds.

use super::{AcquireError, Lease, Leases, Terms};
use crate::call::Call;
use crate::retry::{Deadline, fraction};
use std::time::Duration;

/// Over how much of a lease's length those who wait for its end are spread.
const SPREAD: u32 = 20;

impl Leases {
    /// Acquires the lease, and waits for it as long as `timeout` where somebody holds it.
    ///
    /// While it waits it looks at most 3 times in each length of the lease: when the holder's lease ends, if that comes
    /// soon, else at a random time in each half of a length, for it may be released early.
    ///
    /// # Errors
    /// As [`Leases::acquire`]; [`AcquireError::Held`] when it was still held at the end.
    pub async fn acquire_within(
        &self,
        key: &str,
        holder: &str,
        terms: Terms,
        timeout: Duration,
        call: &Call,
    ) -> Result<Lease, AcquireError> {
        // The last look still has to be answered within the call.
        let until_last_look = call.deadline().remaining().saturating_sub(self.policy.first_timeout * 2);
        let deadline = Deadline::within(timeout.min(until_last_look));
        let mut looks = 0;
        loop {
            let (holder, until) = match self.acquire(key, holder, terms, call).await {
                Err(AcquireError::Held { holder, until }) => (holder, until),
                other => return other,
            };
            let waited = timeout.saturating_sub(deadline.remaining());
            let pause = pause(looks, waited, terms.length(), self.free_in(until), self.ambient.random());
            looks += 1;
            if pause >= deadline.remaining() {
                return Err(AcquireError::Held { holder, until });
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// How long to wait before the next look, `looks` being how many there were after the first and `waited` the time since.
///
/// One look falls into each half of the length: at the lease's end if that is in it (`free_in`, and a little later, so that
/// those who wait do not all come at once), else at a random time.
fn pause(looks: u32, waited: Duration, length: Duration, free_in: Duration, random: u64) -> Duration {
    let half = length / 2;
    let begins = (half * looks).saturating_sub(waited);
    let ends = (half * (looks + 1)).saturating_sub(waited);
    let spread = fraction(length / SPREAD, random);
    if free_in < ends { begins.max(free_in) + spread } else { begins + fraction(ends.saturating_sub(begins), random) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(10);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_half_of_the_length_has_one_look() {
        for (looks, waited, random, expected) in [
            (0, 0, 0, 0),
            (0, 0, u64::MAX, 5),
            (1, 2, 0, 3),
            (1, 2, u64::MAX, 8),
            (2, 9, 0, 1),
            // The table was slow: no look is made up for, and none waits for a half that has passed.
            (0, 7, u64::MAX, 0),
        ] {
            let pause = pause(looks, secs(waited), LENGTH, secs(60), random);
            assert_eq!(pause.as_millis().div_ceil(10) * 10, u128::from(expected * 1000u64), "{looks} {waited}");
        }
    }

    #[test]
    fn an_end_that_comes_in_this_half_is_waited_for() {
        assert_eq!(pause(0, secs(0), LENGTH, secs(4), 0), secs(4));
        assert!(pause(0, secs(0), LENGTH, secs(4), u64::MAX) <= secs(4) + LENGTH / SPREAD);
        // It comes before this half: as soon as this half begins.
        assert_eq!(pause(1, secs(1), LENGTH, secs(2), 0), secs(4));
        assert_eq!(pause(1, secs(1), LENGTH, Duration::ZERO, 0), secs(4));
    }
}
