//! [`FencingToken`]: under which lease, and which acquire of it, a change is made.

use std::ops::RangeInclusive;

/// A number that rises with every acquire of a lease, and the lease that it belongs to.
///
/// The lease itself is a courtesy: who holds it may be paused, and wake up after somebody else has acquired it. The token
/// is what keeps such a holder from doing harm, with [`Attempt::require`](crate::Attempt::require) in a transaction or
/// with [`Table::fenced_by`](crate::Table::fenced_by) on one item.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FencingToken {
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) token: u64,
}

impl FencingToken {
    /// The numbers that a token may have: those that every reader of JSON keeps exactly, up to 2^53 - 1.
    pub const NUMBERS: RangeInclusive<i64> = 1..=9_007_199_254_740_991;

    /// The key of the lease.
    #[must_use]
    pub fn lease_key(&self) -> &str {
        &self.key
    }

    /// The number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.token
    }
}
