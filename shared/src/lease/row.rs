//! [`StoredLease`]: a lease in its table. [`Lease`]: a lease in the hands of its holder.

use crate::clock::Clock;
use crate::error::Failure;
use crate::fencing_token::FencingToken;
use crate::protocol::condition::{ACQUIRE_ID, EXPIRES_AT, HOLDER, RENEWALS, TOKEN};
use crate::protocol::item::Attributes;
use crate::protocol::row::read_number;
use crate::retry::DualClockDeadline;
use crate::timestamp::{Timestamp, moment};
use std::time::Duration;

/// One state of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseVersion {
    /// The number of the acquire.
    pub token: u64,
    /// The number of renewals since the acquire.
    pub renewals: u64,
}

/// A lease acquired by this process. It is held as long as time [remains](Lease::remaining). Until then no other caller
/// can acquire it, if clocks differ by no more than the clock skew.
#[derive(Clone, Debug)]
pub struct Lease {
    pub(super) token: FencingToken,
    pub(super) holder: String,
    pub(super) renewals: u64,
    pub(super) expires_at: u64,
    pub(super) until: DualClockDeadline,
    pub(super) clock: Clock,
}

impl Lease {
    /// The key of the lease.
    #[must_use]
    pub fn key(&self) -> &str {
        self.token.lease_key()
    }

    /// The holder.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The token to write under.
    #[must_use]
    pub fn token(&self) -> &FencingToken {
        &self.token
    }

    /// The number of renewals since the acquire.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// The state of the lease.
    #[must_use]
    pub fn at(&self) -> LeaseVersion {
        LeaseVersion { token: self.token.number(), renewals: self.renewals }
    }

    /// The end of the lease by the clock that acquired or renewed it.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        moment(self.expires_at)
    }

    /// The time left. Zero after the end. It counts from before the first send of the acquire or renewal. It is the
    /// lesser time of the monotonic clock and the wall clock, because a paused machine may stop one of them.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.remaining(self.clock.now())
    }
}

/// A lease as stored in its table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredLease {
    /// The holder. `None` after a release.
    pub holder: Option<String>,
    /// The token of the last acquire.
    pub token: u64,
    /// The number of renewals since then.
    pub renewals: u64,
    /// The end by the clock of the holder, in milliseconds since 1970.
    pub expires_at: u64,
    pub(crate) acquire_id: Vec<u8>,
}

impl StoredLease {
    /// The state of the lease.
    #[must_use]
    pub fn at(&self) -> LeaseVersion {
        LeaseVersion { token: self.token, renewals: self.renewals }
    }

    pub(crate) fn read(row: &Attributes) -> Result<Self, Failure> {
        let corrupt = |name: &str| Failure::CorruptItem {
            reason: format!("{name} is missing or malformed, so it is no lease of this crate's"),
        };
        let number = |name: &str| row.get(name).and_then(read_number).ok_or_else(|| corrupt(name));
        let holder = row.get(HOLDER).map(|holder| holder.as_s().cloned());
        let acquire_id = row.get(ACQUIRE_ID).and_then(|id| id.as_b().ok());
        Ok(StoredLease {
            holder: holder.transpose().map_err(|_| corrupt(HOLDER))?,
            token: number(TOKEN)?,
            renewals: number(RENEWALS)?,
            expires_at: number(EXPIRES_AT)?,
            acquire_id: acquire_id.ok_or_else(|| corrupt(ACQUIRE_ID))?.as_ref().to_vec(),
        })
    }
}
