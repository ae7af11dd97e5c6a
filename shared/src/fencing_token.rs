//! [`FencingToken`]: the lease and its acquire under which a change is made.

use fencepost_core::Attributes;
use fencepost_core::condition;
use std::ops::RangeInclusive;

/// The number of one acquire of a lease. It rises with every acquire.
///
/// A lease is a courtesy, the fence is the guarantee. The holder of a lease may be paused, and wake up after another
/// holder has acquired the lease. The token stops such a replaced holder: use it with
/// [`Attempt::require`](crate::Attempt::require) in a transaction, or with
/// [`Table::fenced_by`](crate::Table::fenced_by) on one item. A token also names the table and the key of its lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FencingToken {
    pub(crate) table: String,
    /// The name of the partition key of the table.
    pub(crate) key_name: &'static str,
    pub(crate) key: String,
    pub(crate) token: u64,
}

impl FencingToken {
    /// The valid token numbers: 1 to 2^53 - 1, the integers that every JSON reader keeps exactly.
    pub const NUMBERS: RangeInclusive<i64> = 1..=9_007_199_254_740_991;

    /// The row of the lease.
    pub(crate) fn row(&self) -> Attributes {
        condition::lease_key(self.key_name, &self.key)
    }

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
