//! [`Leases::acquire_within`]: waits for a lease that another caller holds.

use super::held::unless;
use super::leases::Leases;
use super::row::{Acquired, Lease, LeaseHeld};
use super::terms::LeaseTerms;
use crate::deadline::Deadline;
use crate::error::{Error, Failure};
use fencepost_core::{MIN_SEND_TIME, fraction};
use std::pin::Pin;
use std::time::Duration;
use tracing::debug;

/// The part of a lease length over which waiting callers are spread after the end of the lease: a twentieth.
const SPREAD: u32 = 20;

impl Leases {
    /// Acquires the lease. If another caller holds it, waits for it up to `timeout`.
    ///
    /// While it waits, it looks at the lease at most 3 times per lease length. It looks when the lease of the holder
    /// ends, if that is soon. Otherwise it looks at a random time in each half of a length, because the lease may be
    /// released early. The wait comes on top of the store's time limit; the end of a [`Call`](crate::Call) ends both.
    ///
    /// # Errors
    /// See [`Leases::acquire`]. [`Error::Refused`]: the lease was still held at the end of `timeout`.
    pub async fn acquire_within(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        timeout: Duration,
    ) -> Result<Lease, Error<LeaseHeld>> {
        let call = &self.store().call_after(timeout);
        // Waiting beyond the deadline of the call is useless.
        let timeout = timeout.min(call.deadline().remaining());
        let deadline = Deadline::within(timeout);
        // All looks have one id. So a late copy of an earlier look has acquired the lease for this call.
        let id = self.new_acquire_id();
        let mut next_half = 0;
        loop {
            let held = match self.acquire_by((&id, true), key, holder, terms, call).await {
                Ok(Acquired::New(lease) | Acquired::Replayed(lease)) => return Ok(lease),
                Err(Error::Refused(stored)) => LeaseHeld::by(stored),
                Err(Error::Failed(failure)) => return Err(failure.into()),
            };
            let waited = timeout.saturating_sub(deadline.remaining());
            let (free_in, random) = (self.free_in(held.until), self.sender().rng.next_u64());
            let pause = pause_before_look(&mut next_half, terms.length(), waited, free_in, random);
            // The next look needs time for its answer within the call, perhaps after a resend.
            let too_late = call.deadline().remaining() < pause.saturating_add(MIN_SEND_TIME.saturating_mul(2));
            if pause >= deadline.remaining() || too_late {
                return Err(Error::Refused(held));
            }
            tokio::time::sleep(pause).await;
        }
    }
}

impl Leases {
    /// Acquires the lease, however long it takes. `None` if `stop` was ready first.
    ///
    /// An acquire that was sent is waited for, because it may be applied: a lease that nobody knows of would stay until
    /// its end.
    pub(super) async fn elected(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<Lease>, Failure> {
        let (began, mut next_half) = (Deadline::within(Duration::MAX), 0);
        let forever = began.remaining();
        let mut id = self.new_acquire_id();
        loop {
            let call = self.store().call();
            let free_in = match self.acquire_by((&id, true), key, holder, terms, &call).await {
                Ok(Acquired::New(lease) | Acquired::Replayed(lease)) => return Ok(Some(lease)),
                Err(Error::Refused(stored)) => self.free_in(LeaseHeld::by(stored).until),
                Err(Error::Failed(failure)) => {
                    let may_pass = failure.is_retryable() || failure.is_outcome_unknown();
                    // A call of the caller's own that has ended stays so.
                    if !may_pass || self.store().call().deadline().remaining().is_zero() {
                        return Err(failure);
                    }
                    debug!(%failure, "not acquired");
                    // Under the old id, a lease that was acquired and released meanwhile would be refused for ever.
                    id = self.new_acquire_id();
                    Duration::MAX
                }
            };
            let waited = forever.saturating_sub(began.remaining());
            let random = self.sender().rng.next_u64();
            let pause = pause_before_look(&mut next_half, terms.length(), waited, free_in, random);
            if unless(stop.as_mut(), tokio::time::sleep(pause)).await.is_none() {
                return Ok(None);
            }
        }
    }
}

/// The pause before the next look. The time since the first look (`waited`) is cut into halves of the lease length.
/// Each look uses up the half in which it falls. So any stretch of one length has at most 3 looks, even on a slow
/// table. `next_half` is the first half that has not had its look.
///
/// If the lease ends in the next half (`free_in`), the look comes a little after the end, so that waiting callers do
/// not all come at once. Otherwise it comes at a random time of that half. A past half has lost its look.
fn pause_before_look(
    next_half: &mut u32,
    length: Duration,
    waited: Duration,
    free_in: Duration,
    random: u64,
) -> Duration {
    let half_at = |waited: Duration| {
        let halves = waited.as_nanos() / (length / 2).as_nanos().max(1);
        u32::try_from(halves).unwrap_or(u32::MAX - 1)
    };
    let half = half_at(waited).max(*next_half);
    let begins = (length / 2 * half).saturating_sub(waited);
    let ends = (length / 2 * (half + 1)).saturating_sub(waited);
    let pause = if free_in < ends {
        begins.max(free_in) + fraction(length / SPREAD, random)
    } else {
        begins + fraction(ends.saturating_sub(begins), random)
    };
    *next_half = half_at(waited + pause) + 1;
    pause
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(10);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The pause after the halves before `next` have had their looks.
    fn pause(mut next: u32, waited: u64, free_in: Duration, random: u64) -> Duration {
        pause_before_look(&mut next, LENGTH, secs(waited), free_in, random)
    }

    #[test]
    fn each_half_of_the_length_has_one_look() {
        for (next, waited, random, expected) in [
            (0, 0, 0, 0),
            (0, 0, u64::MAX, 5),
            (1, 2, 0, 3),
            (1, 2, u64::MAX, 8),
            (2, 9, 0, 1),
            // The table was slow. Past halves get no look any more.
            (0, 7, 0, 0),
            (0, 7, u64::MAX, 3),
            (1, 43, u64::MAX, 2),
        ] {
            let pause = pause(next, waited, secs(60), random);
            assert_eq!(pause.as_millis().div_ceil(10) * 10, u128::from(expected * 1000u64), "{next} {waited}");
        }
    }

    #[test]
    fn an_end_that_comes_in_this_half_is_waited_for() {
        assert_eq!(pause(0, 0, secs(4), 0), secs(4));
        assert!(pause(0, 0, secs(4), u64::MAX) <= secs(4) + LENGTH / SPREAD);
        assert_eq!(pause(0, 0, secs(5), 0), Duration::ZERO, "it ends in the next half");
        // The lease ends before this half. So the look comes as soon as the half begins.
        assert_eq!(pause(1, 1, secs(2), 0), secs(4));
        assert_eq!(pause(1, 1, Duration::ZERO, 0), secs(4));
    }

    #[test]
    fn a_look_after_more_halves_than_can_be_counted_is_in_the_last_one() {
        let more_than_all = u64::from(u32::MAX) * 10;
        assert_eq!(pause(0, more_than_all, secs(60), u64::MAX), Duration::ZERO);
    }

    #[test]
    fn a_look_that_comes_a_little_after_its_half_uses_up_the_next() {
        let mut next = 0;
        let first = pause_before_look(&mut next, LENGTH, Duration::ZERO, Duration::from_millis(4900), u64::MAX);
        assert!(first > secs(5), "{first:?}");
        assert_eq!(pause_before_look(&mut next, LENGTH, first, secs(60), 0), secs(10).saturating_sub(first));
    }

    #[test]
    fn no_stretch_of_a_length_has_more_than_3_looks() {
        let seed = std::env::var("FENCEPOST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..1000 {
            let (mut next, mut now, mut sent) = (0, Duration::ZERO, Vec::new());
            for _ in 0..random.usize(1..60) {
                sent.push(now);
                let takes = random.u64(0..12_000);
                now += Duration::from_millis(if random.bool() { takes } else { takes / 1000 });
                let free_in = Duration::from_millis(random.u64(0..15_000));
                now += pause_before_look(&mut next, LENGTH, now, free_in, random.u64(..));
            }
            for four in sent.windows(4) {
                assert!(four[3].saturating_sub(four[0]) >= LENGTH, "FENCEPOST_SEED={seed}: {four:?}");
            }
        }
    }
}
