//! [`LeaseTerms`]: the length of a lease, and the time of its renewal.

use std::fmt;
use std::time::Duration;

/// The length of a lease, and the time after which it is renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTerms {
    length: Duration,
    renew_after: Duration,
}

/// Why terms are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidTerms {
    /// They leave too little time for a renewal: only this much.
    TooShort(Duration),
    /// The lease is longer than [`LeaseTerms::MAX_LENGTH`].
    TooLong,
    /// The lease would be renewed before a tenth of it is over.
    RenewedTooEarly,
}

impl fmt::Display for InvalidTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidTerms::TooShort(left) => write!(
                f,
                "after its renewal point the lease lasts {} ms, and a renewal may need {} ms: make the lease longer, or renew earlier",
                left.as_millis(),
                LeaseTerms::RENEWAL_TAKES.as_millis()
            ),
            InvalidTerms::TooLong => {
                write!(
                    f,
                    "a lease may last {} h: make it shorter, and renew it",
                    LeaseTerms::MAX_LENGTH.as_secs() / 3600
                )
            }
            InvalidTerms::RenewedTooEarly => {
                f.write_str("a tenth of the lease must be over before it is renewed: renew later")
            }
        }
    }
}

impl std::error::Error for InvalidTerms {}

impl LeaseTerms {
    /// The default length: 10 s. That is long compared with a request or a garbage collection, and short compared with
    /// the patience of a person when a holder dies.
    pub const LENGTH: Duration = Duration::from_secs(10);
    /// The longest lease: 1 day. Rows are kept for much longer.
    pub const MAX_LENGTH: Duration = Duration::from_hours(24);
    /// The time that must be left for a renewal: 450 ms. That is the time after which a connected client sends the
    /// renewal a second time (150 ms, see [`RetryPolicy::hedge_after`](crate::RetryPolicy::hedge_after)), and twice as
    /// long for the answer.
    pub const RENEWAL_TAKES: Duration = Duration::from_millis(450);

    /// A lease of this length that is renewed after half of it. It costs two requests per length, and leaves half of it
    /// for renewals that fail.
    ///
    /// # Errors
    /// [`InvalidTerms`]: half of the length is less than a renewal may need, or the length is more than a day. Choose
    /// another length.
    pub fn new(length: Duration) -> Result<Self, InvalidTerms> {
        Self::renewed_after(length, length / 2)
    }

    /// A lease of this length that is renewed after `renew_after`.
    ///
    /// # Errors
    /// [`InvalidTerms`]: too little time is left for a renewal, the length is more than a day, or less than a tenth of
    /// it is over at the renewal. Choose other terms.
    pub fn renewed_after(length: Duration, renew_after: Duration) -> Result<Self, InvalidTerms> {
        let left = length.saturating_sub(renew_after);
        if left < Self::RENEWAL_TAKES {
            Err(InvalidTerms::TooShort(left))
        } else if length > Self::MAX_LENGTH {
            Err(InvalidTerms::TooLong)
        } else if renew_after < length / 10 {
            Err(InvalidTerms::RenewedTooEarly)
        } else {
            Ok(LeaseTerms { length, renew_after })
        }
    }

    /// The time until the next renewal of a lease that has this much time left.
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
        assert!(LeaseTerms::new(millis(900)).is_ok());
        assert_eq!(LeaseTerms::new(Duration::ZERO), Err(InvalidTerms::TooShort(Duration::ZERO)));
        let refused = LeaseTerms::new(millis(898)).expect_err("too short");
        assert!(
            refused
                .to_string()
                .starts_with("after its renewal point the lease lasts 449 ms, and a renewal may need 450")
        );
        assert!(LeaseTerms::renewed_after(millis(898), millis(400)).is_ok());
        assert!(LeaseTerms::renewed_after(millis(2000), millis(3000)).is_err());
        assert!(LeaseTerms::new(LeaseTerms::MAX_LENGTH).is_ok());
        for endless in [LeaseTerms::MAX_LENGTH + millis(1), Duration::MAX] {
            assert_eq!(LeaseTerms::new(endless), Err(InvalidTerms::TooLong));
        }
        assert_eq!(LeaseTerms::renewed_after(millis(2000), millis(199)), Err(InvalidTerms::RenewedTooEarly));
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
