//! Renewing a lease and giving it back.

use super::leases::{Leases, read_returned};
use super::outcome::LeaseError;
use super::row::{Lease, StoredLease};
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::error::{Failure, Source};
use crate::fencing_token::FencingToken;
use crate::protocol::condition;
use crate::protocol::deliver::{Delivery, Send, WriteOutcome};
use crate::retry::DualClockDeadline;
use crate::timestamp::epoch_millis;

impl Leases {
    /// Renews the lease from now on: one request. Where that fails, the lease is still held as long as time remains, which
    /// is never longer than these terms allow: a renewal that was not answered may have been applied.
    ///
    /// # Errors
    /// [`LeaseError::Fenced`] and [`LeaseError::NotFound`]: it is lost. [`LeaseError::Failed`]: nothing is proved, renew it
    /// again while time remains. [`LeaseError::Conflict`] does not occur.
    pub async fn renew(&self, lease: &mut Lease, terms: LeaseTerms, call: &Call) -> Result<(), LeaseError> {
        // Before the first send: it may be applied even if this future is dropped.
        lease.until = lease.until.earlier(DualClockDeadline::within(terms.length(), self.now()));
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
        terms: LeaseTerms,
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
        terms: LeaseTerms,
        call: &Call,
    ) -> Result<Lease, LeaseError> {
        let mut delivery = Delivery::new(self.sender(), call);
        // An earlier renewal of this call that may have been applied before another one followed it.
        let mut earlier: Option<Source> = None;
        loop {
            let now = self.now();
            let until = DualClockDeadline::within(terms.length(), now);
            let expires_at = epoch_millis(now + terms.length());
            let at = renewals.at();
            let write = condition::renew(&token.key, token.token, at, expires_at, Self::purge_at(now));
            let send = |send: Send| self.sender().write(&self.name, write.clone(), send.timeout);
            let refusal = match delivery.until_proved(send).await {
                Ok(WriteOutcome::Applied(row)) => return Ok(self.lease(&token.key, read_returned(row)?, until)),
                Ok(WriteOutcome::Refused(refusal)) => refusal,
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
            delivery.conflict(stored.renewals.saturating_sub(at), round_trip);
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
        let write = condition::release(&token.key, token.token, at, Self::purge_at(self.now()));
        let send = |send: Send| self.sender().write(&self.name, write.clone(), send.timeout);
        let mut delivery = Delivery::new(self.sender(), call);
        let refusal = match delivery.until_proved(send).await? {
            WriteOutcome::Applied(_) => return Ok(()),
            WriteOutcome::Refused(refusal) => refusal,
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
