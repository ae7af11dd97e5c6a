//! Leases: who may do something, until when, and a token that keeps whoever was replaced from doing harm.
//!
//! A lease is a row: its holder, when it ends, and a **token** that rises with every acquire, also across release, expiry
//! and removal by TTL. Whoever holds it renews it before it ends ([`Leases::renew`]) or gives it back
//! ([`Leases::release`]); when it has ended, somebody else may acquire it.
//!
//! **Safety never rests on time.** A holder may be paused for longer than its lease, and clocks may be further apart than
//! assumed: then two processes believe that they hold it. What they write is safe all the same if it is written under the
//! token: [`Attempt::require`](crate::Attempt::require) makes the lease a condition of a transaction,
//! [`Table::fenced_by`](crate::Table::fenced_by) makes an item refuse all but the newest holder.
//!
//! Time is for courtesy. A holder counts its lease from before the first send of the acquire or renewal, by the monotonic
//! and the wall clock, whichever has less left. Others take it when its end, by their clock, is further behind than the
//! clocks may be apart ([`Leases::with_clock_skew`]).
//!
//! | operation | requests |
//! |---|---|
//! | [`Leases::acquire`], [`Leases::renew`], [`Leases::release`] | 1 write |
//! | [`Leases::acquire_within`] | 1 write, and at most 3 in each length of the lease while it waits |
//! | [`Leases::while_held`] | 1 to acquire, 1 a renewal, 1 to release |
//!
//! Nothing here runs on its own: no task is spawned and nothing is sent on drop, since on Lambda neither runs between two
//! invocations.

mod held;
mod outcome;
mod row;
mod terms;
mod wait;

pub use held::WorkError;
pub use outcome::{AcquireError, Acquired, LeaseError};
pub use row::{LeaseVersion, StoredLease};
pub use terms::{Terms, TooShort};

use crate::ambient::Ambient;
use crate::call::Call;
use crate::condition::{self, Acquire, lease_key};
use crate::error::{Failure, Source};
use crate::fencing_token::FencingToken;
use crate::idempotency::Claim;
use crate::resend::{Proved, Refusal, Resend, Send, until_read};
use crate::retry::{Deadline, RetryPolicy};
use crate::send::Sender;
use crate::table::Attributes;
use crate::timestamp::Timestamp;
use aws_sdk_dynamodb::Client;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A lease that was acquired here: held as long as time [remains](Lease::remaining), and nobody else can have acquired
/// it before that, if clocks are not further apart than assumed.
#[derive(Clone, Debug)]
pub struct Lease {
    token: FencingToken,
    holder: String,
    renewals: u64,
    expires_at: u64,
    until: Until,
    ambient: Ambient,
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
        self.until.remaining(self.ambient.now())
    }
}

/// A moment on two clocks.
#[derive(Clone, Copy, Debug)]
struct Until {
    monotonic: Deadline,
    wall: SystemTime,
}

impl Until {
    fn within(time: Duration, now: SystemTime) -> Self {
        Until { monotonic: Deadline::within(time), wall: now + time }
    }

    /// Whichever comes first, on each clock.
    fn earlier(self, other: Until) -> Self {
        let sooner = other.monotonic.remaining() < self.monotonic.remaining();
        Until { monotonic: if sooner { other.monotonic } else { self.monotonic }, wall: self.wall.min(other.wall) }
    }

    fn remaining(&self, now: SystemTime) -> Duration {
        self.monotonic.remaining().min(self.wall.duration_since(now).unwrap_or_default())
    }
}

/// The door to one table of leases. Its TTL attribute is `purgeAt`.
pub struct Leases {
    sender: Sender,
    name: String,
    policy: RetryPolicy,
    ambient: Ambient,
    clock_skew: Duration,
}

impl Leases {
    /// By how much clocks may be apart unless [`Leases::with_clock_skew`] says otherwise: 1 s. Clocks that NTP keeps are
    /// apart by milliseconds, so this is generous, and a holder that died is waited for no more than that much longer.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(1);
    /// How long a row is kept after its last acquire, renewal or release: 7 days. No request is on its way for so long,
    /// so none is older than the row's memory of the token.
    pub const RETENTION: Duration = Duration::from_hours(7 * 24);

    /// The table with this name, reached as `client` reaches it, but with the SDK's retries switched off.
    pub fn new(client: &Client, name: impl Into<String>) -> Self {
        Leases {
            sender: Sender::new(client),
            name: name.into(),
            policy: RetryPolicy::default(),
            ambient: Ambient::system(),
            clock_skew: Self::CLOCK_SKEW,
        }
    }

    /// The same table, tried by another policy.
    #[must_use]
    pub fn with_policy(self, policy: RetryPolicy) -> Self {
        Leases { policy, ..self }
    }

    /// The same table under another clock and another source of randomness.
    #[must_use]
    pub fn with_ambient(self, ambient: Ambient) -> Self {
        Leases { ambient, ..self }
    }

    /// The same table where clocks may be apart by this much. All that acquire one lease have to assume the same.
    #[must_use]
    pub fn with_clock_skew(self, clock_skew: Duration) -> Self {
        Leases { clock_skew, ..self }
    }

    /// The clock and the randomness that this table works by.
    #[must_use]
    pub fn ambient(&self) -> &Ambient {
        &self.ambient
    }

    /// How far clocks may be apart.
    #[must_use]
    pub fn clock_skew(&self) -> Duration {
        self.clock_skew
    }

    /// The token of a lease that was acquired elsewhere, as its holder says: whether it is held, the table will tell.
    #[must_use]
    pub fn token(&self, key: &str, number: u64) -> FencingToken {
        FencingToken { table: self.name.clone(), key: key.to_owned(), token: number }
    }

    /// The lease as it stands there (one strongly consistent read); `None` where nobody holds it, or it has ended.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn get(&self, key: &str, call: &Call) -> Result<Option<StoredLease>, Failure> {
        let read = |timeout| self.sender.read(&self.name, lease_key(key), timeout);
        let row = until_read(&self.sender, &self.policy, &self.ambient, call, read).await?;
        let stored = row.as_ref().map(StoredLease::read).transpose()?;
        Ok(stored.filter(|stored| stored.holder.is_some() && !self.has_ended(stored)))
    }

    /// Acquires the lease if nobody holds it or it has ended: one request.
    ///
    /// # Errors
    /// [`AcquireError::Held`] with who holds it and until when. [`AcquireError::Failed`]: see [`Failure`].
    pub async fn acquire(&self, key: &str, holder: &str, terms: Terms, call: &Call) -> Result<Lease, AcquireError> {
        let id = [self.ambient.random().to_be_bytes(), self.ambient.random().to_be_bytes()].concat();
        match self.acquire_as(key, holder, terms, &id, call).await? {
            Acquired::Now(lease) | Acquired::Before(lease) => Ok(lease),
        }
    }

    /// Acquires the lease once for this claim, while it is held: the same request again gets the same lease. Afterwards
    /// it is a new acquire.
    ///
    /// # Errors
    /// As [`Leases::acquire`], and [`AcquireError::KeyReused`].
    pub async fn acquire_once(
        &self,
        key: &str,
        holder: &str,
        terms: Terms,
        claim: &Claim,
        call: &Call,
    ) -> Result<Acquired, AcquireError> {
        self.acquire_as(key, holder, terms, &claim.to_bytes(), call).await
    }

    async fn acquire_as(
        &self,
        key: &str,
        holder: &str,
        terms: Terms,
        id: &[u8],
        call: &Call,
    ) -> Result<Acquired, AcquireError> {
        // Before the first send: whatever time it takes is not counted twice.
        let now = self.ambient.now();
        let until = Until::within(terms.length(), now);
        let expires_at = epoch_millis(now + terms.length());
        let write = condition::acquire(
            key,
            &Acquire {
                holder,
                id,
                floor: epoch_millis(now),
                expires_at,
                purge_at: Self::purge_at(now),
                cutoff: epoch_millis(now).saturating_sub(millis(self.clock_skew)),
            },
        );
        let send = |send: Send| self.sender.write(&self.name, write.clone(), send.timeout);
        let mut resend = Resend::new(&self.sender, &self.policy, &self.ambient, call);
        let (stored, pending) = match resend.until_proved(send).await? {
            Proved::Applied(row) => {
                let stored = read_returned(row)?;
                return Ok(Acquired::Now(self.lease(key, stored, until)));
            }
            Proved::Refused(refusal) => read_refusing(refusal)?,
        };
        // A lease that is not there is free.
        let stored = stored.ok_or_else(|| corrupt("an acquire was refused where no row is"))?;
        let acquired_by = stored.acquire_id.as_slice();
        let is_mine = stored.holder.is_some() && acquired_by == id;
        if is_mine && stored.expires_at == expires_at {
            let lease = self.lease(key, stored, until);
            return Ok(if pending.is_some() { Acquired::Now(lease) } else { Acquired::Before(lease) });
        }
        if is_mine {
            let left = self.remaining(&stored);
            return Ok(Acquired::Before(self.lease(key, stored, Until::within(left, self.ambient.now()))));
        }
        if stored.holder.is_some() && Claim::is_reused(id, acquired_by) {
            return Err(AcquireError::KeyReused);
        }
        let until = moment(stored.expires_at);
        Err(AcquireError::Held { holder: stored.holder.unwrap_or_default(), until })
    }

    /// Renews the lease from now on: one request. Where that fails, the lease is still held as long as time remains, which
    /// is never longer than these terms allow: a renewal that was not answered may have been applied.
    ///
    /// # Errors
    /// [`LeaseError::Fenced`] and [`LeaseError::NotFound`]: it is lost. [`LeaseError::Failed`]: nothing is proved, renew it
    /// again while time remains. [`LeaseError::Conflict`] does not occur.
    pub async fn renew(&self, lease: &mut Lease, terms: Terms, call: &Call) -> Result<(), LeaseError> {
        // Before the first send: it may be applied even if this future is dropped.
        lease.until = lease.until.earlier(Until::within(terms.length(), self.ambient.now()));
        let renewed = self.renew_token(&lease.token, Some(lease.renewals), false, terms, call).await?;
        *lease = renewed;
        Ok(())
    }

    /// Renews a lease by its token alone, for a holder elsewhere: one request, two where that makes it end earlier. With
    /// `at` only if it was renewed so many times.
    ///
    /// # Errors
    /// As [`Leases::renew`]; [`LeaseError::Conflict`]: it was not renewed `at` times.
    pub async fn renew_at(
        &self,
        token: &FencingToken,
        at: Option<u64>,
        terms: Terms,
        call: &Call,
    ) -> Result<Lease, LeaseError> {
        self.renew_token(token, at, at.is_some(), terms, call).await
    }

    /// `at` is how often it was renewed, as far as is known; `only_there` refuses any other number, instead of taking
    /// the one that was found.
    async fn renew_token(
        &self,
        token: &FencingToken,
        mut at: Option<u64>,
        only_there: bool,
        terms: Terms,
        call: &Call,
    ) -> Result<Lease, LeaseError> {
        let mut resend = Resend::new(&self.sender, &self.policy, &self.ambient, call);
        loop {
            let now = self.ambient.now();
            let until = Until::within(terms.length(), now);
            let expires_at = epoch_millis(now + terms.length());
            let write = condition::renew(&token.key, token.token, at, expires_at, Self::purge_at(now));
            let send = |send: Send| self.sender.write(&self.name, write.clone(), send.timeout);
            let refusal = match resend.until_proved(send).await? {
                Proved::Applied(row) => return Ok(self.lease(&token.key, read_returned(row)?, until)),
                Proved::Refused(refusal) => refusal,
            };
            let round_trip = refusal.round_trip;
            let (stored, pending) = read_refusing(refusal)?;
            let stored = under(token, stored)?;
            if stored.holder.is_none() {
                return Err(LeaseError::Fenced);
            }
            // Nobody else writes this token: one renewal more that ends when this one does is this one.
            let is_next = at.is_none_or(|at| stored.renewals == at + 1);
            if is_next && stored.expires_at == expires_at {
                return Ok(self.lease(&token.key, stored, until));
            }
            // What was renewed since has killed every copy of this one.
            let behind = at.map_or(1, |at| stored.renewals.saturating_sub(at));
            if only_there {
                return Err(match pending.filter(|_| behind > 1) {
                    Some(source) => LeaseError::Failed(Failure::OutcomeUnknown { source }),
                    None => LeaseError::Conflict(stored),
                });
            }
            resend.conflict(behind, round_trip);
            at = Some(stored.renewals);
        }
    }

    /// Gives the lease back: one request. Its token stays remembered.
    ///
    /// # Errors
    /// [`LeaseError::Fenced`]: somebody else has acquired it, nothing was changed. [`LeaseError::Failed`]: it ends by
    /// itself when its time is over. [`LeaseError::Conflict`] does not occur.
    pub async fn release(&self, lease: Lease, call: &Call) -> Result<(), LeaseError> {
        self.release_at(&lease.token, None, call).await
    }

    /// Gives a lease back by its token alone, for a holder elsewhere; with `at` only if it was renewed so many times. One
    /// that was given back already is given back again.
    ///
    /// # Errors
    /// As [`Leases::release`]; [`LeaseError::NotFound`]; [`LeaseError::Conflict`]: it was not renewed `at` times.
    pub async fn release_at(&self, token: &FencingToken, at: Option<u64>, call: &Call) -> Result<(), LeaseError> {
        let write = condition::release(&token.key, token.token, at, Self::purge_at(self.ambient.now()));
        let send = |send: Send| self.sender.write(&self.name, write.clone(), send.timeout);
        let mut resend = Resend::new(&self.sender, &self.policy, &self.ambient, call);
        let refusal = match resend.until_proved(send).await? {
            Proved::Applied(_) => return Ok(()),
            Proved::Refused(refusal) => refusal,
        };
        let (stored, pending) = read_refusing(refusal)?;
        match (under(token, stored), pending) {
            // It may have been given back before somebody else acquired it.
            (Err(LeaseError::Fenced), Some(source)) => Err(LeaseError::Failed(Failure::OutcomeUnknown { source })),
            (Err(error), _) => Err(error),
            (Ok(stored), _) => Err(LeaseError::Conflict(stored)),
        }
    }

    fn lease(&self, key: &str, stored: StoredLease, until: Until) -> Lease {
        Lease {
            token: self.token(key, stored.token),
            holder: stored.holder.unwrap_or_default(),
            renewals: stored.renewals,
            expires_at: stored.expires_at,
            until,
            ambient: self.ambient.clone(),
        }
    }

    /// How much is left of a lease that was acquired elsewhere: its end less what clocks may be apart.
    #[must_use]
    pub fn remaining(&self, stored: &StoredLease) -> Duration {
        let now = epoch_millis(self.ambient.now());
        Duration::from_millis(stored.expires_at.saturating_sub(millis(self.clock_skew)).saturating_sub(now))
    }

    /// How long it takes until a lease that ends then is free, if it is neither renewed nor released.
    #[must_use]
    pub fn free_in(&self, until: Timestamp) -> Duration {
        let free_at = until.epoch_millis().unwrap_or_default() + millis(self.clock_skew);
        Duration::from_millis((free_at + 1).saturating_sub(epoch_millis(self.ambient.now())))
    }

    fn has_ended(&self, stored: &StoredLease) -> bool {
        stored.expires_at + millis(self.clock_skew) < epoch_millis(self.ambient.now())
    }

    fn purge_at(now: SystemTime) -> u64 {
        epoch_millis(now + Self::RETENTION) / 1000
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Leases");
        shown.field("name", &self.name).field("policy", &self.policy).field("clock_skew", &self.clock_skew);
        shown.finish_non_exhaustive()
    }
}

/// The row that a write which was applied has returned.
fn read_returned(row: Option<Attributes>) -> Result<StoredLease, Failure> {
    let unsaid = |source: Source| Failure::OutcomeUnknown { source };
    let row = row.ok_or_else(|| unsaid("the write was applied, but its answer shows no row".into()))?;
    StoredLease::read(&row).map_err(|failure| unsaid(failure.into()))
}

/// The row that refused, and what is pending.
fn read_refusing(refusal: Refusal<Option<Attributes>>) -> Result<(Option<StoredLease>, Option<Source>), Failure> {
    let stored = refusal.by.as_ref().map(StoredLease::read).transpose();
    match (stored, refusal.pending) {
        (Ok(stored), pending) => Ok((stored, pending)),
        (Err(_), Some(source)) => Err(Failure::OutcomeUnknown { source }),
        (Err(failure), None) => Err(failure),
    }
}

/// The row that refused, if it is under this token.
fn under(token: &FencingToken, stored: Option<StoredLease>) -> Result<StoredLease, LeaseError> {
    match stored {
        None => Err(LeaseError::NotFound),
        Some(stored) if stored.token == token.token => Ok(stored),
        Some(_) => Err(LeaseError::Fenced),
    }
}

fn corrupt(reason: &str) -> Failure {
    Failure::CorruptItem { reason: reason.to_owned() }
}

fn epoch_millis(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn moment(epoch_millis: u64) -> Timestamp {
    Timestamp::from_epoch_millis(epoch_millis).unwrap_or_else(|| Timestamp::from(SystemTime::UNIX_EPOCH))
}
