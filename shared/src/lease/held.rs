//! [`Leases::while_held`]: does work under a lease, and renews the lease meanwhile.

use super::leases::Leases;
use super::outcome::{AcquireError, LeaseError};
use super::row::Lease;
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::error::{Failure, Source};
use crate::fencing_token::FencingToken;
use crate::retry::Deadline;
use crate::timestamp::Timestamp;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use thiserror::Error;
use tracing::debug;

/// Why work under a lease did not end by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkError {
    /// Another holder has the lease. The work did not begin.
    #[error("the work did not begin: {holder} holds the lease until {until}; try again then")]
    Held {
        /// The other holder.
        holder: String,
        /// The end of the lease by the clock of its holder.
        until: Timestamp,
    },
    /// The lease was lost: another holder acquired it, or it was released. The work was cancelled. The outcome of a
    /// write in flight is *unknown*. If the write demands the lease with [`Attempt::require`](crate::Attempt::require),
    /// it was applied before the lease was lost, or never will be.
    #[error("the work was cancelled: the lease was lost; a write in flight may have been applied")]
    Lost,
    /// No renewal was proved before the time of the lease was over, so the lease counts as lost. The work was
    /// cancelled. The outcome of a write in flight is *unknown*.
    #[error("the work was cancelled: no renewal was proved in time; a write in flight may have been applied")]
    Unknown {
        /// The reason why the last renewal was not proved.
        source: Source,
    },
    /// The lease was not acquired, and the work did not begin. See [`Failure`].
    #[error(transparent)]
    Failed(Failure),
}

impl From<AcquireError> for WorkError {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Held { holder, until } => WorkError::Held { holder, until },
            AcquireError::Failed(failure) => WorkError::Failed(failure),
            AcquireError::KeyReused => {
                WorkError::Failed(Failure::Rejected { source: "an acquire without a key met one with a key".into() })
            }
        }
    }
}

impl Leases {
    /// Acquires the lease, does the work, and releases the lease. Renews the lease while the work goes on. Releases it
    /// also if the work ends with an error.
    ///
    /// `work` gets the token to write under. Work and renewals are one future. If you drop it, both end, and the lease
    /// ends by itself. The work is not polled any more once the lease is lost or its time is over, even after the
    /// process was stopped in between. The work may take longer than the time limit of the store, which each acquire,
    /// renewal and release has for itself. After the deadline of a [`Call`], nothing is renewed any more.
    ///
    /// # Errors
    /// See [`WorkError`].
    pub async fn while_held<W, F>(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        work: impl FnOnce(FencingToken) -> F,
    ) -> Result<W, WorkError>
    where
        F: Future<Output = W>,
    {
        let mut lease = self.acquire(key, holder, terms).await?;
        // The work is dropped before the lease is released.
        let work = work(lease.token().clone());
        let done = self.work_while(&mut lease, terms, work).await;
        if matches!(done, Err(WorkError::Lost)) {
            return done;
        }
        match (done, self.release(lease).await) {
            // The release proves what no renewal has proved.
            (Err(WorkError::Unknown { .. }), Err(LeaseError::Fenced | LeaseError::NotFound)) => Err(WorkError::Lost),
            (done, Ok(())) => done,
            (done, Err(error)) => {
                debug!(?error, "not released");
                done
            }
        }
    }

    /// Polls the work, and renews the lease meanwhile.
    async fn work_while<W>(
        &self,
        lease: &mut Lease,
        terms: LeaseTerms,
        work: impl Future<Output = W>,
    ) -> Result<W, WorkError> {
        let mut work = pin!(work);
        let mut unproved: Source = "its time was over before it could be renewed".into();
        loop {
            let wait = tokio::time::sleep(terms.renewal_in(lease.remaining()));
            match beside(lease, work.as_mut(), wait).await {
                Turn::Done(done) => return Ok(done),
                Turn::Over => return Err(WorkError::Unknown { source: unproved }),
                Turn::Next(()) => {}
            }
            let mut renewed = lease.clone();
            let left = lease.remaining().min(self.store().call().deadline().remaining());
            let until_it_ends = self.in_call(&Call::new(Deadline::within(left)));
            let renewal = until_it_ends.renew(&mut renewed, terms);
            match beside(lease, work.as_mut(), renewal).await {
                Turn::Done(done) => return Ok(done),
                Turn::Over => return Err(WorkError::Unknown { source: unproved }),
                Turn::Next(Ok(())) => *lease = renewed,
                Turn::Next(Err(LeaseError::Fenced | LeaseError::NotFound | LeaseError::Conflict(_))) => {
                    return Err(WorkError::Lost);
                }
                // A renewal that failed does not mean that the lease is lost.
                Turn::Next(Err(LeaseError::Failed(failure))) => {
                    debug!(%failure, "not renewed");
                    unproved = failure.into();
                    match beside(lease, work.as_mut(), tokio::time::sleep(PAUSE)).await {
                        Turn::Done(done) => return Ok(done),
                        Turn::Over => return Err(WorkError::Unknown { source: unproved }),
                        Turn::Next(()) => {}
                    }
                }
            }
        }
    }
}

/// The pause after a failed renewal.
const PAUSE: Duration = Duration::from_millis(100);

/// The event that came first.
enum Turn<W, N> {
    /// The work ended.
    Done(W),
    /// The other future was ready.
    Next(N),
    /// The time of the lease was over.
    Over,
}

/// Polls the work until `other` is ready, as long as the lease has time left. Looks at the time each time before it
/// polls the work. So a process that wakes up after a pause finds out first.
async fn beside<W: Future, N: Future>(lease: &Lease, mut work: Pin<&mut W>, other: N) -> Turn<W::Output, N::Output> {
    // Work that is always ready would use up the budget of the task and starve the renewal. So the renewal does not
    // share that budget.
    let mut other = pin!(tokio::task::coop::unconstrained(other));
    poll_fn(|context| {
        if lease.remaining().is_zero() {
            return Poll::Ready(Turn::Over);
        }
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Turn::Done(done));
        }
        other.as_mut().poll(context).map(Turn::Next)
    })
    .await
}
