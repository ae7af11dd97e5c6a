//! [`LeaseTerms`]: the length of a lease, and the time of its renewal.

use fencepost_core::InvalidValue;
use std::time::Duration;

/// The length of a lease and the time after which it is renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTerms {
    length: Duration,
    renew_after: Duration,
}

impl LeaseTerms {
    /// The default length: 10 s. This is long compared with a request or a garbage collection, and short compared with
    /// the patience of a person when a holder dies.
    pub const LENGTH: Duration = Duration::from_secs(10);
    /// The longest lease: 1 day. Rows are kept for much longer.
    pub const MAX_LENGTH: Duration = Duration::from_hours(24);
    /// The time that must be left for a renewal: 450 ms. This is the time after which a connected client sends the
    /// renewal a second time (150 ms, see [`RetryPolicy::hedge_after`](crate::RetryPolicy::hedge_after)), and twice as
    /// long for the answer.
    pub const RENEWAL_TAKES: Duration = Duration::from_millis(450);

    /// A lease of this length, renewed after half of it. It costs two requests per length.
    ///
    /// # Errors
    /// [`InvalidValue`]: half of the length is less than a renewal may need, or the length is more than a day.
    pub fn new(length: Duration) -> Result<Self, InvalidValue> {
        Self::renewed_after(length, length / 2)
    }

    /// A lease of this length, renewed after `renew_after`.
    ///
    /// # Errors
    /// [`InvalidValue`]: too little time is left for a renewal, the length is more than a day, or less than a tenth of
    /// it is over at the renewal. Choose other terms.
    pub fn renewed_after(length: Duration, renew_after: Duration) -> Result<Self, InvalidValue> {
        let left = length.saturating_sub(renew_after);
        let wrong = if left < Self::RENEWAL_TAKES {
            format!(
                "after its renewal point the lease lasts {} ms, and a renewal may need {} ms: make the lease longer, or renew earlier",
                left.as_millis(),
                Self::RENEWAL_TAKES.as_millis()
            )
        } else if length > Self::MAX_LENGTH {
            format!("a lease may last {} h: make it shorter, and renew it", Self::MAX_LENGTH.as_secs() / 3600)
        } else if renew_after < length / 10 {
            "a tenth of the lease must be over before it is renewed: renew later".to_owned()
        } else {
            return Ok(LeaseTerms { length, renew_after });
        };
        Err(InvalidValue::OutOfRange(wrong.into()))
    }

    pub(super) fn renewal_in(&self, remaining: Duration) -> Duration {
        remaining.saturating_sub(self.length.saturating_sub(self.renew_after))
    }

    /// The length of the lease.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length
    }
}

impl Default for LeaseTerms {
    fn default() -> Self {
        LeaseTerms { length: Self::LENGTH, renew_after: Self::LENGTH / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_cannot_be_kept_are_refused_with_a_sentence() {
        let millis = Duration::from_millis;
        let says = |terms: Result<LeaseTerms, InvalidValue>| terms.expect_err("no terms").to_string();
        let too_short = "after its renewal point the lease lasts";
        assert!(LeaseTerms::new(millis(900)).is_ok());
        assert!(says(LeaseTerms::new(Duration::ZERO)).starts_with(&format!("{too_short} 0 ms")));
        assert!(
            says(LeaseTerms::new(millis(898))).starts_with(&format!("{too_short} 449 ms, and a renewal may need 450"))
        );
        assert!(LeaseTerms::renewed_after(millis(898), millis(400)).is_ok());
        assert!(says(LeaseTerms::renewed_after(millis(2000), millis(3000))).starts_with(too_short));
        assert!(LeaseTerms::new(LeaseTerms::MAX_LENGTH).is_ok());
        for endless in [LeaseTerms::MAX_LENGTH + millis(1), Duration::MAX] {
            assert!(says(LeaseTerms::new(endless)).starts_with("a lease may last 24 h"));
        }
        assert!(says(LeaseTerms::renewed_after(millis(2000), millis(199))).starts_with("a tenth of the lease"));
        assert!(LeaseTerms::renewed_after(millis(2000), millis(200)).is_ok(), "a tenth is enough");
    }

    #[test]
    fn the_renewal_point_counts_from_the_beginning() {
        let terms = LeaseTerms::renewed_after(Duration::from_secs(10), Duration::from_secs(4)).expect("long enough");
        assert_eq!(terms.renewal_in(Duration::from_secs(10)), Duration::from_secs(4));
        assert_eq!(terms.renewal_in(Duration::from_secs(7)), Duration::from_secs(1));
        assert_eq!(terms.renewal_in(Duration::from_secs(6)), Duration::ZERO);
        assert_eq!(terms.renewal_in(Duration::ZERO), Duration::ZERO);
    }
}
