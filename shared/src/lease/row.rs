//! A lease as its row says.

use crate::condition::{ACQUIRE_ID, EXPIRES_AT, HOLDER, RENEWALS, TOKEN};
use crate::error::Failure;
use crate::row::read_number;
use crate::table::Attributes;

/// Which state of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseVersion {
    /// Which acquire.
    pub token: u64,
    /// How many renewals since.
    pub renewals: u64,
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
