//! How long a lease is, and when it is renewed.

use std::fmt;
use std::time::Duration;

/// For how long a lease is acquired or renewed, and when it is to be renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTerms {
    length: Duration,
    renew_after: Duration,
}

/// Terms that cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidTerms {
    /// They leave too little time to renew: this much.
    TooShort(Duration),
    /// The lease is longer than [`LeaseTerms::MAX_LENGTH`].
    TooLong,
    /// It would be renewed before a tenth of it is over.
    TooEager,
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
            InvalidTerms::TooEager => {
                f.write_str("a tenth of the lease must be over before it is renewed: renew later")
            }
        }
    }
}

impl std::error::Error for InvalidTerms {}

impl LeaseTerms {
    /// The default length: 10 s. Long against a request and a garbage collection, short against a person's patience when
    /// a holder dies.
    pub const LENGTH: Duration = Duration::from_secs(10);
    /// The longest lease: 1 day, far below what its row is kept for.
    pub const MAX_LENGTH: Duration = Duration::from_hours(24);
    /// What a renewal must be left: 450 ms, which is a send of a connected client that is not answered (150 ms) and another
    /// that waits twice as long ([`RetryPolicy`](crate::RetryPolicy)).
    pub const RENEWAL_TAKES: Duration = Duration::from_millis(450);

    /// A lease of this length, renewed when half of it is over: then it costs two requests a length, and half of it is
    /// left for renewals that fail.
    ///
    /// # Errors
    /// [`InvalidTerms`]: half of it is less than a renewal may need, or it is longer than a day.
    pub fn new(length: Duration) -> Result<Self, InvalidTerms> {
        Self::renewed_after(length, length / 2)
    }

    /// A lease of this length, renewed when this much of it is over.
    ///
    /// # Errors
    /// [`InvalidTerms`].
    pub fn renewed_after(length: Duration, renew_after: Duration) -> Result<Self, InvalidTerms> {
        let left = length.saturating_sub(renew_after);
        if left < Self::RENEWAL_TAKES {
            Err(InvalidTerms::TooShort(left))
        } else if length > Self::MAX_LENGTH {
            Err(InvalidTerms::TooLong)
        } else if renew_after < length / 10 {
            Err(InvalidTerms::TooEager)
        } else {
            Ok(LeaseTerms { length, renew_after })
        }
    }

    /// How long it is until a lease with so much time left is to be renewed.
    pub(super) fn renewal_in(&self, remaining: Duration) -> Duration {
        remaining.saturating_sub(self.length.saturating_sub(self.renew_after))
    }

    /// How long the lease is.
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
        assert_eq!(LeaseTerms::renewed_after(millis(2000), millis(199)), Err(InvalidTerms::TooEager));
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
