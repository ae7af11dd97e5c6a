//! Until when a request is accepted.

use std::time::Duration;
use tokio::time::Instant;

/// A request whose date differs from the service's clock by more than this is refused unread.
const LIFE: Duration = Duration::from_mins(5);

/// The date that a request was signed with, by the clock of its client.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    signed: Instant,
    /// By how many milliseconds the client's clock was ahead then.
    ahead: i64,
}

impl Signature {
    pub fn now(ahead: i64) -> Self {
        Signature { signed: Instant::now(), ahead }
    }

    /// Whether it is accepted now.
    pub fn is_valid(self) -> bool {
        let age = i128::try_from(self.signed.elapsed().as_micros()).expect("small") - i128::from(self.ahead) * 1000;
        age.unsigned_abs() <= LIFE.as_micros()
    }

    /// For how many milliseconds it is still accepted.
    pub fn left(self) -> u64 {
        let life = i128::try_from(LIFE.as_millis()).expect("small") + i128::from(self.ahead);
        let left = life - i128::try_from(self.signed.elapsed().as_millis()).expect("small");
        u64::try_from(left).unwrap_or_default()
    }

    /// For how many milliseconds more it lives than one that was dated right.
    pub fn lives_longer(self) -> u64 {
        u64::try_from(self.ahead).unwrap_or_default()
    }
}
