//! [`Leases`]: acquires and reads the leases of one table.

use super::row::{Acquired, Lease, LeaseHeld};
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::deadline::DualClockDeadline;
use crate::driver::attempt::{Attempt, Done, refusing_row};
use crate::driver::read_one;
use crate::driver::rows::LEASES;
use crate::driver::send::{Address, Requests, Sender};
use crate::error::{Error, Failure, FailureKind, IdempotencyError, Source};
use crate::fencing_token::FencingToken;
use crate::idempotency::IdempotencyClaim;
use crate::store::Store;
use crate::table::Key;
use crate::table::handle::invalid;
use crate::timestamp::Timestamp;
use fencepost_core::condition::{self, LeaseTimes};
use fencepost_core::format::item::Attributes;
use fencepost_core::lease::{self, AfterAcquire, StoredLease, judge_acquire};
use fencepost_core::{InvalidValue, epoch_seconds};
use fencepost_core::{epoch_millis, millis};
use std::fmt;
use std::time::{Duration, SystemTime};

/// One table of leases. [`Store::leases`] makes it. [`TableSchema::leases`](crate::TableSchema::leases) checks and prints it.
///
/// | attribute | type | meaning |
/// |---|---|---|
/// | `leaseKey`, or [another name](Leases::with_key_name) | string | the partition key; there is no sort key |
/// | `holder` | string | the holder; missing while the lease is free |
/// | `token` | number | the fencing token, which rises with each acquire |
/// | `renewals` | number | the renewals since the last acquire |
/// | `expiresAt` | number | the end of the lease, in milliseconds since 1970 |
/// | `acquireId` | binary | the id of the last acquire |
/// | `purgeAt` | number | the TTL attribute: when the row may go, in seconds since 1970 |
///
/// [`Leases::while_held`] does all that a service needs, as the [guide](crate::guide::leases) shows. By hand:
///
/// ```
/// # use fencepost::lease::{Acquired, LeaseTerms};
/// # use fencepost::{Error, IdempotencyClaim, Store};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = fencepost_test::Engine::embedded(&[("Leases", "leaseKey")]);
/// let leases = Store::new(&engine.client()).leases("Leases").with_clock_skew(Duration::from_secs(2));
/// let terms = LeaseTerms::new(Duration::from_secs(60))?;
/// let mut lease = leases.acquire("job", "host-1", terms).await?;
/// leases.renew(&mut lease, terms).await?;
///
/// let late = leases.acquire_within("job", "host-2", terms, Duration::from_millis(1)).await;
/// let Err(Error::Refused(held)) = late else { panic!("host-1 has it") };
/// assert!(leases.free_in(held.until) > Duration::from_secs(50));
///
/// // Another process of the holder knows the number of the token.
/// let token = leases.token("job", lease.token().number())?;
/// leases.renew_at(&token, None, terms).await?;
/// let stored = leases.get("job").await?.expect("it is held");
/// assert!(stored.renewals == 2 && leases.remaining(&stored) > Duration::from_secs(50));
/// leases.release_at(&token, None).await?; // as `leases.release(lease)`
/// assert!(leases.get("job").await?.is_none());
/// assert!(leases.stored("job").await?.is_some()); // the row remembers the token
///
/// // A request that may come again gets the same lease again.
/// let claim = IdempotencyClaim::new(&["job", "request-7"], &[])?;
/// let first = leases.acquire_once("job", "host-2", terms, &claim).await?;
/// let again = leases.acquire_once("job", "host-2", terms, &claim).await?;
/// assert!(matches!((first, again), (Acquired::New(_), Acquired::Replayed(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Leases {
    store: Store,
    pub(super) name: String,
    clock_skew: Duration,
    /// The name of the partition key.
    key_name: &'static str,
}

impl Store {
    /// The leases in the table with this name. Sends nothing.
    ///
    /// The table needs no setting if several Regions write it with strong consistency. Leases need neither transactions
    /// nor TTL: without TTL, the rows of leases only stay.
    pub fn leases(&self, name: impl Into<String>) -> Leases {
        Leases {
            store: self.clone(),
            name: name.into(),
            clock_skew: Leases::CLOCK_SKEW,
            key_name: condition::LEASE_KEY,
        }
    }
}

impl Leases {
    /// How far clocks may differ by default: 1 s. Clocks under NTP differ by milliseconds. So this is generous. It also
    /// adds no more than 1 s to the wait for the lease of a dead holder. To change it, use [`Leases::with_clock_skew`].
    pub const CLOCK_SKEW: Duration = Duration::from_secs(1);
    /// The largest clock skew: 5 minutes. `DynamoDB` accepts no signature from a clock further off.
    const MAX_CLOCK_SKEW: Duration = Duration::from_mins(5);
    /// How long a row is kept after its last acquire, renewal or release: 7 days. No request lives as long. So the row
    /// remembers the token for longer than any request can arrive.
    pub const RETENTION: Duration = Duration::from_hours(7 * 24);

    /// Sets how far clocks may differ, at most 5 minutes. All users of the same lease must use the same value.
    #[must_use]
    pub fn with_clock_skew(self, clock_skew: Duration) -> Self {
        Leases { clock_skew: clock_skew.min(Self::MAX_CLOCK_SKEW), ..self }
    }

    /// Names the partition key of the table, if it is not `leaseKey`. All users of a table must use the same name.
    #[must_use]
    pub fn with_key_name(self, key_name: &'static str) -> Self {
        Leases { key_name, ..self }
    }

    /// Returns the leases for this call, as after [`Store::in_call`].
    #[must_use]
    pub fn in_call(&self, call: &Call) -> Self {
        Leases { store: self.store.in_call(call), ..self.clone() }
    }

    /// The store of these leases.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn sender(&self) -> &Sender {
        self.store.sender()
    }

    pub(super) fn now(&self) -> SystemTime {
        self.store.clock().now()
    }

    /// How far clocks may differ.
    #[must_use]
    pub fn clock_skew(&self) -> Duration {
        self.clock_skew
    }

    /// Makes the token of a lease acquired by another process, from the number stated by its holder. Sends nothing.
    ///
    /// The table of leases decides whether the lease is held under it. [`Table::fenced_by`](crate::Table::fenced_by) does
    /// not ask that table. So never fence an item by a number from somebody who may state a higher one than the table
    /// has given out: the item would refuse every real holder.
    ///
    /// # Errors
    /// [`InvalidValue`]: the number is none of [`FencingToken::NUMBERS`].
    pub fn token(&self, key: &str, number: u64) -> Result<FencingToken, InvalidValue> {
        if i64::try_from(number).is_ok_and(|number| FencingToken::NUMBERS.contains(&number)) {
            Ok(self.token_of(key, number))
        } else {
            Err(InvalidValue::OutOfRange("the number of a token is 1 to 2^53 - 1: name the one of an acquire".into()))
        }
    }

    fn token_of(&self, key: &str, number: u64) -> FencingToken {
        FencingToken { table: self.name.clone(), key_name: self.key_name, key: key.to_owned(), token: number }
    }

    /// Reads the row of the lease, strongly consistent, whether the lease is held or not. `None` if there is no row.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn stored(&self, key: &str) -> Result<Option<StoredLease>, Failure> {
        let address = Address { table: self.name.clone(), key: self.row_of(key)? };
        let row = read_one(self.sender(), &self.store.call(), address).await?;
        Ok(row.as_ref().map(lease::read).transpose()?)
    }

    /// Reads the lease, strongly consistent. `None` if it is free, or if it ended longer ago than the clock skew.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn get(&self, key: &str) -> Result<Option<StoredLease>, Failure> {
        let stored = self.stored(key).await?;
        Ok(stored.filter(|stored| stored.holder.is_some() && !self.has_ended(stored)))
    }

    /// Acquires the lease if it is free or has ended. Sends one request.
    ///
    /// # Errors
    /// [`Error::Refused`]: another holder has the lease; the reason says who and until when. [`Error::Failed`]: see
    /// [`Failure`]. After [`FailureKind::OutcomeUnknown`], the lease may stay taken until the requested time is over.
    pub async fn acquire(&self, key: &str, holder: &str, terms: LeaseTerms) -> Result<Lease, Error<LeaseHeld>> {
        let id = self.new_acquire_id();
        match self.acquire_by((&id, true), key, holder, terms, &self.store.call()).await {
            Ok(Acquired::New(lease) | Acquired::Replayed(lease)) => Ok(lease),
            Err(Error::Refused(stored)) => Err(Error::Refused(LeaseHeld::by(stored))),
            Err(Error::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Acquires the lease once per claim while the lease is held: the same request gets the same lease again.
    /// Afterwards, the same request is a new acquire.
    ///
    /// # Errors
    /// See [`Leases::acquire`]. Also [`IdempotencyError::KeyReused`]: another acquire used the key; use a new one.
    pub async fn acquire_once(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        claim: &IdempotencyClaim,
    ) -> Result<Acquired, IdempotencyError<LeaseHeld>> {
        let id = claim.to_bytes();
        match self.acquire_by((&id, false), key, holder, terms, &self.store.call()).await {
            Ok(acquired) => Ok(acquired),
            Err(Error::Refused(stored)) if IdempotencyClaim::is_reused(&id, &stored.acquire_id) => {
                Err(IdempotencyError::KeyReused)
            }
            Err(Error::Refused(stored)) => Err(IdempotencyError::Refused(LeaseHeld::by(stored))),
            Err(Error::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Acquires the lease by this id, which may do so `once` or again. If another acquire holds it, the error has its row.
    pub(super) async fn acquire_by(
        &self,
        (id, once): (&[u8], bool),
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        call: &Call,
    ) -> Result<Acquired, Error<StoredLease>> {
        let row = self.row_of(key)?;
        if holder.is_empty() {
            return Err(invalid("the holder of a lease is empty".to_owned()).into());
        }
        // Taken before the first send. So the time of the sends counts against the lease.
        let now = self.now();
        let until = DualClockDeadline::within(terms.length(), now);
        let times = LeaseTimes::at(now, terms.length(), self.clock_skew);
        let write = condition::acquire(row.clone(), holder, (id, once), times, Self::purge_at(now));
        let mut attempt = self.change("acquire", row, call);
        let (stored, pending) = match attempt.repeated(self.sender(), call, &write, lease::read).await? {
            // A lease without a row is free. So it cannot refuse.
            Done::Answered(refused) => refusing_row(refused).map_err(|failure| failure.at(|| attempt.place()))?,
            Done::Applied(applied) => {
                return Ok(Acquired::New(self.lease(key, read_returned(&attempt, applied.shown)?, until)));
            }
        };
        match judge_acquire(&stored, id, times.expires_at, pending.is_some()) {
            AfterAcquire::Mine => Ok(Acquired::New(self.lease(key, stored, until))),
            AfterAcquire::Replayed => {
                let until = DualClockDeadline::within(self.remaining(&stored), self.now());
                Ok(Acquired::Replayed(self.lease(key, stored, until)))
            }
            AfterAcquire::Held => Err(Error::Refused(stored)),
            AfterAcquire::Released => {
                let source = pending.unwrap_or_else(|| "it was acquired, and released since".into());
                Err(Failure::of(FailureKind::OutcomeUnknown { source }).at(|| attempt.place()).into())
            }
        }
    }

    fn row_of(&self, key: &str) -> Result<Attributes, Failure> {
        Key::from(key).attributes(self.key_name, None).map_err(invalid)
    }

    /// A change of the lease in this row.
    pub(super) fn change(&self, operation: &'static str, key: Attributes, call: &Call) -> Attempt {
        let address = Address { table: self.name.clone(), key };
        Attempt::of_one(operation, address, &LEASES, Requests::UPDATES, self.sender(), call)
    }

    pub(super) fn new_acquire_id(&self) -> Vec<u8> {
        [(); 2].map(|()| self.sender().rng.next_u64().to_be_bytes()).concat()
    }

    pub(super) fn lease(&self, key: &str, stored: StoredLease, until: DualClockDeadline) -> Lease {
        Lease {
            token: self.token_of(key, stored.token),
            holder: stored.holder.unwrap_or_default(),
            renewals: stored.renewals,
            expires_at: stored.expires_at,
            until,
            clock: self.store.clock().clone(),
        }
    }

    /// The time left of a lease acquired by another process: up to its end, less the clock skew.
    #[must_use]
    pub fn remaining(&self, stored: &StoredLease) -> Duration {
        let now = epoch_millis(self.now());
        Duration::from_millis(stored.expires_at.saturating_sub(millis(self.clock_skew)).saturating_sub(now))
    }

    /// The time until a lease with this end is free, if it is neither renewed nor released.
    #[must_use]
    pub fn free_in(&self, until: Timestamp) -> Duration {
        let free_at = until.epoch_millis().unwrap_or_default() + millis(self.clock_skew);
        Duration::from_millis((free_at + 1).saturating_sub(epoch_millis(self.now())))
    }

    fn has_ended(&self, stored: &StoredLease) -> bool {
        stored.expires_at.saturating_add(millis(self.clock_skew)) < epoch_millis(self.now())
    }

    pub(crate) fn purge_at(now: SystemTime) -> u64 {
        epoch_seconds(now + Self::RETENTION)
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Leases");
        shown.field("name", &self.name).field("clock_skew", &self.clock_skew);
        shown.finish_non_exhaustive()
    }
}

pub(super) fn read_returned(attempt: &Attempt, row: Option<Attributes>) -> Result<StoredLease, Failure> {
    let unsaid = |source: Source| Failure::of(FailureKind::OutcomeUnknown { source }).at(|| attempt.place());
    let row = row.ok_or_else(|| unsaid("the write was applied, but its answer shows no row".into()))?;
    lease::read(&row).map_err(|failure| unsaid(Failure::from(failure).into()))
}

pub(super) fn corrupt(reason: &str) -> Failure {
    Failure::of(FailureKind::CorruptItem { reason: reason.to_owned() })
}
