//! [`StoredLease`]: a lease in its table. The meaning of the refusal of an acquire or a renewal.

use crate::condition::{ACQUIRE_ID, EXPIRES_AT, HOLDER, LeaseTimes, RENEWALS, TOKEN};
use crate::format::item::Attributes;
use crate::format::row::read_number;
use crate::format::{AsKind, Unwritable};
use crate::judge::Verdict;
use crate::time::{epoch_millis, millis};
use crate::version::Version;
use std::time::{Duration, SystemTime};

/// One state of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseVersion {
    /// The number of the acquire.
    pub token: u64,
    /// The number of renewals since the acquire.
    pub renewals: u64,
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
    /// The id of the last acquire.
    pub acquire_id: Vec<u8>,
}

impl StoredLease {
    /// The state of the lease.
    #[must_use]
    pub fn at(&self) -> LeaseVersion {
        LeaseVersion { token: self.token, renewals: self.renewals }
    }
}

/// Reads a row of a table of leases.
///
/// # Errors
/// [`Unwritable::CorruptItem`]: the row is no lease of this crate's.
pub fn read(row: &Attributes) -> Result<StoredLease, Unwritable> {
    let corrupt = |name: &str| Unwritable::CorruptItem {
        reason: format!("{name} is missing or malformed, so it is no lease of this crate's"),
    };
    let number = |name: &str| row.get(name).and_then(read_number).ok_or_else(|| corrupt(name));
    let holder = row.get(HOLDER).map(|holder| holder.as_s().cloned().ok_or_else(|| corrupt(HOLDER)));
    let acquire_id = row.get(ACQUIRE_ID).and_then(|id| id.as_b());
    Ok(StoredLease {
        holder: holder.transpose()?,
        token: number(TOKEN)?,
        renewals: number(RENEWALS)?,
        expires_at: number(EXPIRES_AT)?,
        acquire_id: acquire_id.ok_or_else(|| corrupt(ACQUIRE_ID))?.clone(),
    })
}

impl LeaseTimes {
    /// The times for a lease of this length.
    #[must_use]
    pub fn at(now: SystemTime, length: Duration, clock_skew: Duration) -> Self {
        LeaseTimes {
            expires_at: epoch_millis(now + length),
            cutoff: epoch_millis(now).saturating_sub(millis(clock_skew)),
            floor: epoch_millis(now),
        }
    }
}

/// The meaning of the refusal of an acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterAcquire {
    /// An earlier send of this call acquired the lease: the row has the same end.
    Mine,
    /// An earlier call with the same id acquired it.
    Replayed,
    /// Another holder has it.
    Held,
    /// The acquire was applied. A caller aware of it has released the lease since.
    Released,
}

/// Judges a refused acquire with this id and this end.
#[must_use]
pub fn judge_acquire(stored: &StoredLease, id: &[u8], expires_at: u64, is_pending: bool) -> AfterAcquire {
    match (&stored.holder, stored.acquire_id == id) {
        (Some(_), true) if is_pending && stored.expires_at == expires_at => AfterAcquire::Mine,
        (Some(_), true) => AfterAcquire::Replayed,
        (Some(_), false) => AfterAcquire::Held,
        (None, _) => AfterAcquire::Released,
    }
}

/// Judges the refusal of a renewal on `at` renewals with the new end `expires_at`, by the row of its token.
///
/// No other holder writes under the token. So one more renewal with the end of this one is this one. One more with
/// another end is from another caller. No copy of this one can be applied any more then. With several more, this one
/// may be among them. With fewer than were demanded, a copy of this one may still be applied.
#[must_use]
pub fn judge_renewal(stored: &StoredLease, at: u64, expires_at: u64) -> Verdict {
    let is_next = at.checked_add(1) == Some(stored.renewals);
    match Version::new(stored.renewals).filter(|_| is_next) {
        Some(made) if stored.expires_at == expires_at => Verdict::Landed(made),
        Some(_) => Verdict::NeverApplied,
        None => Verdict::Unproved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: StoredLease =
        StoredLease { holder: None, token: 5, renewals: 3, expires_at: 900, acquire_id: Vec::new() };

    #[test]
    fn a_refused_acquire_is_ones_own_by_the_id_and_of_this_call_only_if_it_was_pending_with_the_same_end() {
        use AfterAcquire::{Held, Mine, Released, Replayed};
        let held = StoredLease { holder: Some("A".to_owned()), acquire_id: vec![7], ..LEASE };
        for (id, expires_at, is_pending, after) in
            [(7, 900, true, Mine), (7, 900, false, Replayed), (7, 901, true, Replayed), (8, 900, true, Held)]
        {
            assert_eq!(judge_acquire(&held, &[id], expires_at, is_pending), after, "{id} {expires_at} {is_pending}");
        }
        assert_eq!(judge_acquire(&StoredLease { holder: None, ..held }, &[7], 900, true), Released);
    }

    #[test]
    fn a_refused_renewal_landed_if_the_lease_is_one_renewal_further_and_has_its_end() {
        for (at, expires_at, verdict) in [
            (2, 900, Verdict::Landed(Version::new(3).expect("small"))),
            (2, 901, Verdict::NeverApplied),
            (1, 900, Verdict::Unproved),
            (3, 900, Verdict::Unproved),
        ] {
            assert_eq!(judge_renewal(&LEASE, at, expires_at), verdict, "{at} {expires_at}");
        }
    }

    #[test]
    fn a_lease_ends_after_its_length_and_is_free_when_it_ended_the_skew_of_the_clocks_ago() {
        let seconds = Duration::from_secs;
        let now = SystemTime::UNIX_EPOCH + seconds(100);
        let times = LeaseTimes::at(now, seconds(30), seconds(5));
        assert_eq!((times.expires_at, times.cutoff, times.floor), (130_000, 95_000, 100_000));
        assert_eq!(LeaseTimes::at(now, Duration::ZERO, seconds(101)).cutoff, 0);
    }
}
