//! [`Leases::while_held`]: does work under a lease, and renews the lease meanwhile.

use super::leases::Leases;
use super::row::{Lease, LeaseHeld, LeaseLost};
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::deadline::Deadline;
use crate::error::{Error, Source};
use crate::fencing_token::FencingToken;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tracing::debug;

/// Why work under a lease did not end by itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unfinished {
    /// Another holder has the lease. The work did not begin.
    Held(LeaseHeld),
    /// The lease was lost by another acquire or by a release. The work was cancelled. The outcome of a write in flight
    /// is *unknown*. If the write demands the lease with [`Attempt::require`](crate::Attempt::require), it was applied
    /// before the lease was lost, or never will be.
    Lost,
    /// No renewal was proved before the time of the lease was over. So the lease counts as lost. The work was
    /// cancelled. The outcome of a write in flight is *unknown*.
    Unknown {
        /// The reason why the last renewal was not proved.
        source: Source,
    },
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfinished::Held(LeaseHeld { holder, until }) => {
                write!(f, "the work did not begin: {holder} holds the lease until {until}; try again then")
            }
            Unfinished::Lost => {
                f.write_str("the work was cancelled: the lease was lost; a write in flight may have been applied")
            }
            Unfinished::Unknown { .. } => f.write_str(
                "the work was cancelled: no renewal was proved in time; a write in flight may have been applied",
            ),
        }
    }
}

impl Leases {
    /// Acquires the lease, does the work, and releases the lease. Renews the lease while the work goes on. Releases it
    /// also if the work ends with an error.
    ///
    /// `work` gets the token to write under. Work and renewals are one future. If you drop it, both end. The lease then
    /// ends by itself. The work is not polled any more once the lease is lost or its time is over, even after the
    /// process was stopped in between. The work may take longer than the time limit of the store, which each acquire,
    /// renewal and release has for itself. After the deadline of a [`Call`], nothing is renewed any more.
    ///
    /// # Errors
    /// [`Error::Refused`]: [`Unfinished`] says whether the work began. [`Error::Failed`]: the lease was not acquired, and
    /// the work did not begin; see [`Failure`](crate::Failure).
    pub async fn while_held<W, F>(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        work: impl FnOnce(FencingToken) -> F,
    ) -> Result<W, Error<Unfinished>>
    where
        F: Future<Output = W>,
    {
        let mut lease = match self.acquire(key, holder, terms).await {
            Ok(lease) => lease,
            Err(Error::Refused(held)) => return Err(Error::Refused(Unfinished::Held(held))),
            Err(Error::Failed(failure)) => return Err(failure.into()),
        };
        // The work is dropped before the lease is released.
        let work = work(lease.token().clone());
        let done = self.work_while(&mut lease, terms, work).await;
        if matches!(done, Err(Unfinished::Lost)) {
            return done.map_err(Error::Refused);
        }
        let done = match (done, self.release(lease).await) {
            // The release gives the proof missing from the renewals.
            (Err(Unfinished::Unknown { .. }), Err(Error::Refused(LeaseLost::Fenced | LeaseLost::NotFound))) => {
                Err(Unfinished::Lost)
            }
            (done, Ok(())) => done,
            (done, Err(error)) => {
                debug!(?error, "not released");
                done
            }
        };
        done.map_err(Error::Refused)
    }

    async fn work_while<W>(
        &self,
        lease: &mut Lease,
        terms: LeaseTerms,
        work: impl Future<Output = W>,
    ) -> Result<W, Unfinished> {
        let mut work = pin!(work);
        let mut unproved: Source = "its time was over before it could be renewed".into();
        loop {
            let wait = tokio::time::sleep(terms.renewal_in(lease.remaining()));
            if let Err(done) = beside(lease, work.as_mut(), wait).await {
                return done.ok_or(Unfinished::Unknown { source: unproved });
            }
            let mut renewed = lease.clone();
            let left = lease.remaining().min(self.store().call().deadline().remaining());
            let until_it_ends = self.in_call(&Call::new(Deadline::within(left)));
            let renewal = until_it_ends.renew(&mut renewed, terms);
            match beside(lease, work.as_mut(), renewal).await {
                Err(done) => return done.ok_or(Unfinished::Unknown { source: unproved }),
                Ok(Ok(())) => *lease = renewed,
                Ok(Err(Error::Refused(LeaseLost::Fenced | LeaseLost::NotFound))) => return Err(Unfinished::Lost),
                // A failed renewal does not mean that the lease is lost.
                Ok(Err(Error::Failed(failure))) => {
                    debug!(%failure, "not renewed");
                    unproved = failure.into();
                    if let Err(done) = beside(lease, work.as_mut(), tokio::time::sleep(PAUSE)).await {
                        return done.ok_or(Unfinished::Unknown { source: unproved });
                    }
                }
            }
        }
    }
}

const PAUSE: Duration = Duration::from_millis(100);

/// Polls the work until `other` is ready, as long as the lease has time left. Looks at the time each time before it
/// polls the work. So a process that wakes up after a pause finds out first. `Err` has the result of the work if the work
/// ended, and nothing if the time of the lease was over.
async fn beside<W: Future, N: Future>(
    lease: &Lease,
    mut work: Pin<&mut W>,
    other: N,
) -> Result<N::Output, Option<W::Output>> {
    // Work that is always ready would use up the budget of the task and starve the renewal. So the renewal has its own.
    let mut other = pin!(tokio::task::coop::unconstrained(other));
    poll_fn(|context| {
        if lease.remaining().is_zero() {
            return Poll::Ready(Err(None));
        }
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Err(Some(done)));
        }
        other.as_mut().poll(context).map(Ok)
    })
    .await
}
