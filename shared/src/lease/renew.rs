//! Renews leases and releases them.

use super::leases::{Leases, corrupt, read_returned};
use super::row::{Lease, LeaseLost, NotHeldAt};
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::deadline::DualClockDeadline;
use crate::driver::attempt::{Applied, Done, Next};
use crate::driver::rows::Sending;
use crate::error::{Error, Failure, FailureKind, Source};
use crate::fencing_token::FencingToken;
use fencepost_core::condition::{self, LeaseTimes};
use fencepost_core::lease::{self, StoredLease, judge_renewal};
use fencepost_core::{After, Facts, after};

impl Leases {
    /// Renews the lease from now on. Sends one request.
    ///
    /// If this fails, the lease is still held as long as time remains. That time is never longer than these terms
    /// allow, because a renewal without an answer may have been applied.
    ///
    /// # Errors
    /// [`Error::Refused`]: the lease is lost. [`Error::Failed`]: nothing is proved; renew again while time remains.
    pub async fn renew(&self, lease: &mut Lease, terms: LeaseTerms) -> Result<(), Error<LeaseLost>> {
        // Done before the first send, because the renewal may be applied even if this future is dropped.
        lease.until = lease.until.earlier(DualClockDeadline::within(terms.length(), self.now()));
        *lease = self.renew_token(&lease.token, lease.renewals, terms, follow, &self.store().call()).await?;
        Ok(())
    }

    /// Renews a lease by its token, for a holder in another process.
    ///
    /// With `at`, renews only if the lease has exactly `at` renewals, and sends one request. Without `at`, reads the
    /// lease first to learn the number. A renewal without the number could be applied again by a late copy.
    ///
    /// # Errors
    /// See [`Leases::renew`]. Also [`NotHeldAt::Conflict`]: the lease does not have `at` renewals.
    pub async fn renew_at(
        &self,
        token: &FencingToken,
        at: Option<u64>,
        terms: LeaseTerms,
    ) -> Result<Lease, Error<NotHeldAt>> {
        let call = &self.store().call();
        if let Some(at) = at {
            let conflict = |stored: &StoredLease| Some(NotHeldAt::Conflict(stored.clone()));
            return self.renew_token(token, at, terms, conflict, call).await;
        }
        let stored = under(token, self.in_call(call).stored(token.lease_key()).await?).map_err(refused_as)?;
        if stored.holder.is_none() {
            return Err(refused_as(LeaseLost::Fenced));
        }
        self.renew_token(token, stored.renewals, terms, follow, call).await
    }

    /// Renews the lease if it has `at` renewals. For another number, `conflict` gives the error to return, or `None` to
    /// renew on the lease's own number.
    async fn renew_token<R: From<LeaseLost>>(
        &self,
        token: &FencingToken,
        mut at: u64,
        terms: LeaseTerms,
        conflict: impl Fn(&StoredLease) -> Option<R>,
        call: &Call,
    ) -> Result<Lease, Error<R>> {
        let mut attempt = self.change("renew", token.row(), call);
        // An earlier renewal of this call. It may have been applied before another renewal followed it.
        let mut earlier: Option<Source> = None;
        let mut last = None;
        let done = attempt.decided(self.sender(), call, |attempt| {
            let refused = attempt.refused_by(lease::read);
            if let (Some(refused), Some((expires_at, until))) = (refused, last) {
                let (stored, pending) = refused?;
                let stored = match under(token, stored) {
                    Ok(stored) if stored.holder.is_some() => stored,
                    lost => return Ok(Next::Answer(Err(refused_as(lost.err().unwrap_or(LeaseLost::Fenced))))),
                };
                let facts = Facts { is_pending: pending.is_some(), ..Facts::default() };
                let pending = match after(judge_renewal(&stored, at, expires_at), facts) {
                    After::Landed(_) => return Ok(Next::Answer(Ok((stored, until)))),
                    After::NotApplied => None,
                    _ => pending,
                };
                if let Some(conflict) = conflict(&stored) {
                    return match pending {
                        Some(source) => Err(Failure::of(FailureKind::OutcomeUnknown { source })),
                        None => Ok(Next::Answer(Err(Error::Refused(conflict)))),
                    };
                }
                if let Some(source) = pending {
                    earlier = Some(source);
                }
                attempt.lost_race();
                at = stored.renewals;
            }
            let now = self.now();
            let until = DualClockDeadline::within(terms.length(), now);
            let LeaseTimes { expires_at, .. } = LeaseTimes::at(now, terms.length(), self.clock_skew());
            last = Some((expires_at, until));
            let write = condition::renew(token.row(), token.token, at, expires_at, Self::purge_at(now));
            Ok(Next::Send(Sending::repeating(write), until))
        });
        let (stored, until) = match done.await {
            Ok(Done::Answered(told)) => told?,
            Ok(Done::Applied(Applied { answer: until, shown, .. })) => (read_returned(&attempt, shown)?, until),
            Err(failure) => return Err(unless_unknown(failure, earlier).into()),
        };
        Ok(self.lease(&token.key, stored, until))
    }

    /// Releases the lease. Sends one request. The row keeps the token.
    ///
    /// # Errors
    /// [`Error::Refused`]: the lease is lost, because another holder has acquired it or it has no row any more; nothing
    /// was changed. [`Error::Failed`]: the lease ends by itself when its time is over.
    pub async fn release(&self, lease: Lease) -> Result<(), Error<LeaseLost>> {
        match self.release_at(&lease.token, None).await {
            Ok(()) => Ok(()),
            Err(Error::Refused(NotHeldAt::Lost(lost))) => Err(Error::Refused(lost)),
            Err(Error::Refused(NotHeldAt::Conflict(_))) => Err(corrupt("its own lease refused a release").into()),
            Err(Error::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Releases a lease by its token, for a holder in another process. With `at`, releases only if the lease has
    /// exactly `at` renewals. Releasing a lease twice succeeds.
    ///
    /// # Errors
    /// See [`Leases::release`]. Also [`NotHeldAt::Conflict`]: the lease does not have `at` renewals.
    pub async fn release_at(&self, token: &FencingToken, at: Option<u64>) -> Result<(), Error<NotHeldAt>> {
        let write = condition::release(token.row(), token.token, at, Self::purge_at(self.now()));
        let call = self.store().call();
        let mut attempt = self.change("release", token.row(), &call);
        let done = attempt.repeated(self.sender(), &call, &write, lease::read);
        let Done::Answered((stored, pending)) = done.await? else { return Ok(()) };
        let unknown = |source| Failure::of(FailureKind::OutcomeUnknown { source }).at(|| attempt.place());
        match (under(token, stored), pending) {
            // The release may have been applied before another holder acquired the lease.
            (Err(LeaseLost::Fenced), Some(source)) => Err(unknown(source).into()),
            // A copy of this release may still be applied, when the lease has been renewed `at` times.
            (Ok(stored), Some(source)) if at.is_some_and(|at| stored.renewals < at) => Err(unknown(source).into()),
            (Err(lost), _) => Err(refused_as(lost)),
            (Ok(stored), _) => Err(Error::Refused(NotHeldAt::Conflict(stored))),
        }
    }
}

/// Where the lease has another number of renewals than was seen, the renewal is made on that number.
fn follow<R>(_: &StoredLease) -> Option<R> {
    None
}

fn refused_as<R: From<LeaseLost>>(lost: LeaseLost) -> Error<R> {
    Error::Refused(lost.into())
}

/// The failure. If an earlier send may have been applied, the outcome is unknown instead.
fn unless_unknown(failure: Failure, earlier: Option<Source>) -> Failure {
    match earlier {
        Some(source) => Failure { kind: FailureKind::OutcomeUnknown { source }, ..failure },
        None => failure,
    }
}

fn under(token: &FencingToken, stored: Option<StoredLease>) -> Result<StoredLease, LeaseLost> {
    match stored {
        None => Err(LeaseLost::NotFound),
        Some(stored) if stored.token == token.token => Ok(stored),
        Some(_) => Err(LeaseLost::Fenced),
    }
}
