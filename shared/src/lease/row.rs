//! A lease as its row says, and as its holder knows it.

use crate::clock::Clock;
use crate::error::Failure;
use crate::fencing_token::FencingToken;
use crate::protocol::condition::{ACQUIRE_ID, EXPIRES_AT, HOLDER, RENEWALS, TOKEN};
use crate::protocol::item::Attributes;
use crate::protocol::row::read_number;
use crate::retry::DualClockDeadline;
use crate::timestamp::{Timestamp, moment};
use std::time::Duration;

/// Which state of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseVersion {
    /// Which acquire.
    pub token: u64,
    /// How many renewals since.
    pub renewals: u64,
}

/// A lease that was acquired here: held as long as time [remains](Lease::remaining), and nobody else can have acquired
/// it before that, if clocks are not further apart than assumed.
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
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.token.lease_key()
    }

    /// Who holds it.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// What to write under.
    #[must_use]
    pub fn token(&self) -> &FencingToken {
        &self.token
    }

    /// How often it was renewed.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Which state it is in.
    #[must_use]
    pub fn at(&self) -> LeaseVersion {
        LeaseVersion { token: self.token.number(), renewals: self.renewals }
    }

    /// When it ends, by the clock of whoever acquired or renewed it.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        moment(self.expires_at)
    }

    /// How much of it is left; zero when it has ended. Counted from before the acquire or renewal was first sent, by the
    /// monotonic and the wall clock, whichever has less left: a paused machine may have stopped one of them.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.remaining(self.clock.now())
    }
}

/// A lease as it stands in its table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredLease {
    /// Who holds it; `None` where it was released.
    pub holder: Option<String>,
    /// The token of the last acquire.
    pub token: u64,
    /// How often it was renewed since.
    pub renewals: u64,
    /// When it ends, by its holder's clock, in milliseconds since 1970.
    pub expires_at: u64,
    pub(super) acquire_id: Vec<u8>,
}

impl StoredLease {
    /// Which state it is in.
    #[must_use]
    pub fn at(&self) -> LeaseVersion {
        LeaseVersion { token: self.token, renewals: self.renewals }
    }

    /// # Errors
    /// [`Failure::CorruptItem`]: an attribute is missing or malformed.
    pub(super) fn read(row: &Attributes) -> Result<Self, Failure> {
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
