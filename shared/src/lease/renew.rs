//! Renews leases and releases them.

use super::judge::{AfterRenewal, LeaseTimes, judge_renewal};
use super::leases::{Leases, read_returned};
use super::outcome::LeaseError;
use super::row::{Lease, StoredLease};
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::error::{Failure, Source};
use crate::fencing_token::FencingToken;
use crate::protocol::condition;
use crate::protocol::deliver::{Delivery, WriteOutcome};
use crate::retry::DualClockDeadline;

impl Leases {
    /// Renews the lease from now on. Sends one request.
    ///
    /// If this fails, the lease is still held as long as time remains. That time is never longer than these terms
    /// allow, because a renewal without an answer may have been applied.
    ///
    /// # Errors
    /// [`LeaseError::Fenced`] and [`LeaseError::NotFound`]: the lease is lost. [`LeaseError::Failed`]: nothing is
    /// proved; renew again while time remains. [`LeaseError::Conflict`] does not occur.
    pub async fn renew(&self, lease: &mut Lease, terms: LeaseTerms) -> Result<(), LeaseError> {
        // Done before the first send, because the renewal may be applied even if this future is dropped.
        lease.until = lease.until.earlier(DualClockDeadline::within(terms.length(), self.now()));
        *lease = self.renew_token(&lease.token, Renewals::Seen(lease.renewals), terms, &self.store().call()).await?;
        Ok(())
    }

    /// Renews a lease by its token, for a holder in another process.
    ///
    /// With `at`, renews only if the lease has exactly that many renewals, and sends one request. Without `at`, reads
    /// the lease first to learn the number. A renewal without that number could be applied again by a late copy.
    ///
    /// # Errors
    /// See [`Leases::renew`]. Also [`LeaseError::Conflict`]: the lease does not have `at` renewals.
    pub async fn renew_at(
        &self,
        token: &FencingToken,
        at: Option<u64>,
        terms: LeaseTerms,
    ) -> Result<Lease, LeaseError> {
        let call = &self.store().call();
        if let Some(at) = at {
            return self.renew_token(token, Renewals::Demanded(at), terms, call).await;
        }
        let stored = under(token, self.in_call(call).stored(token.lease_key()).await?)?;
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
        // An earlier renewal of this call. It may have been applied before another renewal followed it.
        let mut earlier: Option<Source> = None;
        loop {
            let now = self.now();
            let until = DualClockDeadline::within(terms.length(), now);
            let LeaseTimes { expires_at, .. } = LeaseTimes::at(now, terms.length(), self.clock_skew());
            let at = renewals.at();
            let write = condition::renew(&token.key, token.token, at, expires_at, Self::purge_at(now));
            let refusal = match delivery.write(&self.name, &write).await {
                Ok(WriteOutcome::Applied(row)) => return Ok(self.lease(&token.key, read_returned(row)?, until)),
                Ok(WriteOutcome::Refused(refusal)) => refusal,
                Err(failure) => return Err(unless_unknown(failure, earlier)),
            };
            let round_trip = refusal.round_trip;
            let (stored, pending) = refusal.read(StoredLease::read)?;
            let stored = under(token, stored)?;
            let pending = match judge_renewal(&stored, at, expires_at, pending.is_some()) {
                AfterRenewal::Lost => return Err(LeaseError::Fenced),
                AfterRenewal::Renewed => return Ok(self.lease(&token.key, stored, until)),
                AfterRenewal::Moved => None,
                AfterRenewal::MovedPerhapsBy => pending,
            };
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

    /// Releases the lease. Sends one request. The row keeps the token.
    ///
    /// # Errors
    /// [`LeaseError::Fenced`]: another holder has acquired the lease; nothing was changed. [`LeaseError::NotFound`]:
    /// the lease has no row any more. [`LeaseError::Failed`]: the lease ends by itself when its time is over.
    /// [`LeaseError::Conflict`] does not occur.
    pub async fn release(&self, lease: Lease) -> Result<(), LeaseError> {
        self.release_at(&lease.token, None).await
    }

    /// Releases a lease by its token, for a holder in another process. With `at`, releases only if the lease has
    /// exactly that many renewals. Releasing a lease twice succeeds.
    ///
    /// # Errors
    /// See [`Leases::release`]. Also [`LeaseError::Conflict`]: the lease does not have `at` renewals.
    pub async fn release_at(&self, token: &FencingToken, at: Option<u64>) -> Result<(), LeaseError> {
        let write = condition::release(&token.key, token.token, at, Self::purge_at(self.now()));
        let call = self.store().call();
        let mut delivery = Delivery::new(self.sender(), &call);
        let refusal = match delivery.write(&self.name, &write).await? {
            WriteOutcome::Applied(_) => return Ok(()),
            WriteOutcome::Refused(refusal) => refusal,
        };
        let (stored, pending) = refusal.read(StoredLease::read)?;
        match (under(token, stored), pending) {
            // The release may have been applied before another holder acquired the lease.
            (Err(LeaseError::Fenced), Some(source)) => Err(LeaseError::Failed(Failure::OutcomeUnknown { source })),
            // A copy of this release may still be applied, when the lease has been renewed `at` times.
            (Ok(stored), Some(source)) if at.is_some_and(|at| stored.renewals < at) => {
                Err(LeaseError::Failed(Failure::OutcomeUnknown { source }))
            }
            (Err(error), _) => Err(error),
            (Ok(stored), _) => Err(LeaseError::Conflict(stored)),
        }
    }
}

/// The number of renewals that a lease must have for the next one.
#[derive(Clone, Copy)]
enum Renewals {
    /// The number that was seen. If the lease was renewed since, the current number counts.
    Seen(u64),
    /// The number that a client demands.
    Demanded(u64),
}

impl Renewals {
    fn at(self) -> u64 {
        match self {
            Renewals::Seen(at) | Renewals::Demanded(at) => at,
        }
    }
}

/// The failure. If an earlier send may have been applied, the outcome is unknown instead.
fn unless_unknown(failure: Failure, earlier: Option<Source>) -> LeaseError {
    LeaseError::Failed(match earlier {
        Some(source) => Failure::OutcomeUnknown { source },
        None => failure,
    })
}

/// Returns the row that refused, if it has this token.
fn under(token: &FencingToken, stored: Option<StoredLease>) -> Result<StoredLease, LeaseError> {
    match stored {
        None => Err(LeaseError::NotFound),
        Some(stored) if stored.token == token.token => Ok(stored),
        Some(_) => Err(LeaseError::Fenced),
    }
}
