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
//! | [`Leases::renew_at`], for a holder elsewhere | 1 write; 1 read before it where the number of renewals is not given |
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
pub use row::{Lease, LeaseVersion, StoredLease};
pub use terms::{InvalidTerms, Terms};

use crate::ambient::Ambient;
use crate::call::Call;
use crate::condition::{self, Acquire, lease_key};
use crate::error::{Failure, Source};
use crate::fencing_token::FencingToken;
use crate::idempotency::Claim;
use crate::resend::{Proved, Resend, Send, until_read};
use crate::retry::{RetryPolicy, Until};
use crate::send::Sender;
use crate::table::Attributes;
use crate::timestamp::{Timestamp, epoch_seconds};
use aws_sdk_dynamodb::Client;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    /// Clocks that are further apart sign nothing that `DynamoDB` accepts: 5 minutes.
    const MAX_CLOCK_SKEW: Duration = Duration::from_mins(5);
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

    /// The same table where clocks may be apart by this much, 5 minutes at most. All that acquire one lease have to assume the same.
    #[must_use]
    pub fn with_clock_skew(self, clock_skew: Duration) -> Self {
        Leases { clock_skew: clock_skew.min(Self::MAX_CLOCK_SKEW), ..self }
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

    /// The row of the lease (one strongly consistent read), whether it is held or not; `None` where it has none.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn stored(&self, key: &str, call: &Call) -> Result<Option<StoredLease>, Failure> {
        let read = |timeout| self.sender.read(&self.name, lease_key(key), timeout);
        let row = until_read(&self.sender, &self.policy, &self.ambient, call, read).await?;
        row.as_ref().map(StoredLease::read).transpose()
    }

    /// The lease as it stands there (one strongly consistent read); `None` where nobody holds it, or it has ended.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn get(&self, key: &str, call: &Call) -> Result<Option<StoredLease>, Failure> {
        let stored = self.stored(key, call).await?;
        Ok(stored.filter(|stored| stored.holder.is_some() && !self.has_ended(stored)))
    }

    /// Acquires the lease if nobody holds it or it has ended: one request.
    ///
    /// # Errors
    /// [`AcquireError::Held`] with who holds it and until when. [`AcquireError::Failed`]: see [`Failure`].
    pub async fn acquire(&self, key: &str, holder: &str, terms: Terms, call: &Call) -> Result<Lease, AcquireError> {
        let id = self.new_acquire_id();
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
        self.acquire_as(key, holder, terms, &AcquireId::Claimed(claim), call).await
    }

    async fn acquire_as(
        &self,
        key: &str,
        holder: &str,
        terms: Terms,
        id: &AcquireId<'_>,
        call: &Call,
    ) -> Result<Acquired, AcquireError> {
        let (id, once) = (id.to_bytes(), matches!(id, AcquireId::Random(_)));
        // Before the first send: whatever time it takes is not counted twice.
        let now = self.ambient.now();
        let until = Until::within(terms.length(), now);
        let expires_at = epoch_millis(now + terms.length());
        let write = condition::acquire(
            key,
            &Acquire {
                holder,
                id: &id,
                once,
                floor: epoch_millis(now),
                expires_at,
                purge_at: Self::purge_at(now),
                cutoff: epoch_millis(now).saturating_sub(millis(self.clock_skew)),
            },
        );
        let send = |send: Send| self.sender.write(&self.name, write.clone(), send.timeout);
        let mut resend = Resend::new(&self.sender, &self.policy, &self.ambient, call);
        let (stored, pending) = match resend.until_proved(send).await? {
            Proved::Applied(row) => return Ok(Acquired::Now(self.lease(key, read_returned(row)?, until))),
            Proved::Refused(refusal) => refusal.read(StoredLease::read)?,
        };
        // A lease that is not there is free.
        let stored = stored.ok_or_else(|| corrupt("an acquire was refused where no row is"))?;
        match (&stored.holder, stored.acquire_id == id) {
            // By an earlier send of this call: it asked for this end.
            (Some(_), true) if pending.is_some() && stored.expires_at == expires_at => {
                Ok(Acquired::Now(self.lease(key, stored, until)))
            }
            (Some(_), true) => {
                let until = Until::within(self.remaining(&stored), self.ambient.now());
                Ok(Acquired::Before(self.lease(key, stored, until)))
            }
            (Some(_), false) if Claim::is_reused(&id, &stored.acquire_id) => Err(AcquireError::KeyReused),
            (Some(holder), false) => {
                Err(AcquireError::Held { holder: holder.clone(), until: moment(stored.expires_at) })
            }
            // Whoever learned of it has released it since.
            (None, _) => {
                let source = pending.unwrap_or_else(|| "it was acquired, and released since".into());
                Err(AcquireError::Failed(Failure::OutcomeUnknown { source }))
            }
        }
    }

    fn new_acquire_id(&self) -> AcquireId<'static> {
        AcquireId::Random([self.ambient.random().to_be_bytes(), self.ambient.random().to_be_bytes()])
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
        *lease = self.renew_token(&lease.token, Renewals::Seen(lease.renewals), terms, call).await?;
        Ok(())
    }

    /// Renews a lease by its token, for a holder elsewhere: one request with `at`, and only if it was renewed so many times;
    /// without it a read before, for a renewal that named no number of them could be applied again by a late copy.
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
        if let Some(at) = at {
            return self.renew_token(token, Renewals::Demanded(at), terms, call).await;
        }
        let stored = under(token, self.stored(token.lease_key(), call).await?)?;
        if stored.holder.is_none() {
            return Err(LeaseError::Fenced);
        }
        self.renew_token(token, Renewals::Seen(stored.renewals), terms, call).await
    }

    async fn renew_token(
        &self,
        token: &FencingToken,
        mut renewals: Renewals,
        terms: Terms,
        call: &Call,
    ) -> Result<Lease, LeaseError> {
        let mut resend = Resend::new(&self.sender, &self.policy, &self.ambient, call);
        // An earlier renewal of this call that may have been applied before another one followed it.
        let mut earlier: Option<Source> = None;
        loop {
            let now = self.ambient.now();
            let until = Until::within(terms.length(), now);
            let expires_at = epoch_millis(now + terms.length());
            let at = renewals.at();
            let write = condition::renew(&token.key, token.token, at, expires_at, Self::purge_at(now));
            let send = |send: Send| self.sender.write(&self.name, write.clone(), send.timeout);
            let refusal = match resend.until_proved(send).await {
                Ok(Proved::Applied(row)) => return Ok(self.lease(&token.key, read_returned(row)?, until)),
                Ok(Proved::Refused(refusal)) => refusal,
                Err(failure) => return Err(unless_unknown(failure, earlier)),
            };
            let round_trip = refusal.round_trip;
            let (stored, pending) = refusal.read(StoredLease::read)?;
            let stored = under(token, stored)?;
            if stored.holder.is_none() {
                return Err(LeaseError::Fenced);
            }
            // Nobody else writes this token: one renewal more that ends when this one does is this one.
            let is_next = at.checked_add(1) == Some(stored.renewals);
            if is_next && stored.expires_at == expires_at {
                return Ok(self.lease(&token.key, stored, until));
            }
            // One more is somebody else's, and kills each copy of this. More may have followed this one; and where fewer are
            // than were demanded, a copy of this one may come true yet.
            let pending = pending.filter(|_| !is_next);
            if let Renewals::Demanded(_) = renewals {
                return Err(match pending {
                    Some(source) => LeaseError::Failed(Failure::OutcomeUnknown { source }),
                    None => LeaseError::Conflict(stored),
                });
            }
            earlier = pending.or(earlier);
            resend.conflict(stored.renewals.saturating_sub(at), round_trip);
            renewals = Renewals::Seen(stored.renewals);
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
        let (stored, pending) = refusal.read(StoredLease::read)?;
        match (under(token, stored), pending) {
            // It may have been given back before somebody else acquired it.
            (Err(LeaseError::Fenced), Some(source)) => Err(LeaseError::Failed(Failure::OutcomeUnknown { source })),
            // A copy of it may come true yet, when it has been renewed so many times.
            (Ok(stored), Some(source)) if at.is_some_and(|at| stored.renewals < at) => {
                Err(LeaseError::Failed(Failure::OutcomeUnknown { source }))
            }
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
        stored.expires_at.saturating_add(millis(self.clock_skew)) < epoch_millis(self.ambient.now())
    }

    fn purge_at(now: SystemTime) -> u64 {
        epoch_seconds(now + Self::RETENTION)
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Leases");
        shown.field("name", &self.name).field("policy", &self.policy).field("clock_skew", &self.clock_skew);
        shown.finish_non_exhaustive()
    }
}

/// Which acquire it is.
enum AcquireId<'a> {
    /// Of one call.
    Random([[u8; 8]; 2]),
    /// Of one idempotency key.
    Claimed(&'a Claim),
}

impl AcquireId<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            AcquireId::Random(bits) => bits.concat(),
            AcquireId::Claimed(claim) => claim.to_bytes(),
        }
    }
}

/// How often a lease must have been renewed for a renewal to be made.
#[derive(Clone, Copy)]
enum Renewals {
    /// As often as was seen; if it was renewed since, then as often as that.
    Seen(u64),
    /// As often as a client demands.
    Demanded(u64),
}

impl Renewals {
    fn at(self) -> u64 {
        match self {
            Renewals::Seen(at) | Renewals::Demanded(at) => at,
        }
    }
}

/// The row that a write which was applied has returned.
fn read_returned(row: Option<Attributes>) -> Result<StoredLease, Failure> {
    let unsaid = |source: Source| Failure::OutcomeUnknown { source };
    let row = row.ok_or_else(|| unsaid("the write was applied, but its answer shows no row".into()))?;
    StoredLease::read(&row).map_err(|failure| unsaid(failure.into()))
}

/// The failure, or that nothing is proved where an earlier send may have been applied.
fn unless_unknown(failure: Failure, earlier: Option<Source>) -> LeaseError {
    LeaseError::Failed(match earlier {
        Some(source) => Failure::OutcomeUnknown { source },
        None => failure,
    })
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
