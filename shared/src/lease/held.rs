//! Work under a lease that is renewed while it goes on.

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
        /// When the lease ends, by its holder's clock.
        until: Timestamp,
    },
    /// The lease was lost: somebody else acquired it, or it was released. The work was cancelled. A write that was in
    /// flight is *unknown*. Under the token it was applied before the lease was lost, or never will be.
    #[error("the work was cancelled: the lease was lost; a write in flight may have been applied")]
    Lost,
    /// No renewal was proved before the lease's time was over, so the lease had to be taken for lost. The work was
    /// cancelled, with the same consequences.
    #[error("the work was cancelled: no renewal was proved in time; a write in flight may have been applied")]
    Unknown {
        /// The answer to the last renewal, or what stood in its place.
        source: Source,
    },
    /// The lease was not acquired, and the work did not begin: see [`Failure`].
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
    /// Acquires the lease, does the work, renews the lease meanwhile, and releases it in the end, whatever the work gives.
    ///
    /// Work and renewals are one future: dropped, both end, and the lease ends by itself. The work is given the token to
    /// write under; it is not polled any more once the lease is lost or its time is over, also when the process was
    /// stopped in between. `call` is that of all its requests: after its deadline nothing is renewed any more.
    ///
    /// # Errors
    /// See [`WorkError`].
    pub async fn while_held<W, F>(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        call: &Call,
        work: impl FnOnce(FencingToken) -> F,
    ) -> Result<W, WorkError>
    where
        F: Future<Output = W>,
    {
        // Boxed, as the renewals are: the SDK's futures are large, and none of them is needed at the same time as another.
        let mut lease = Box::pin(self.acquire(key, holder, terms, call)).await?;
        // The work is gone before the lease is given back.
        let work = work(lease.token().clone());
        let done = self.work_while(&mut lease, terms, call, work).await;
        if matches!(done, Err(WorkError::Lost)) {
            return done;
        }
        match (done, Box::pin(self.release(lease, call)).await) {
            // It proves what no renewal has.
            (Err(WorkError::Unknown { .. }), Err(LeaseError::Fenced | LeaseError::NotFound)) => Err(WorkError::Lost),
            (done, Ok(())) => done,
            (done, Err(error)) => {
                debug!(?error, "not released");
                done
            }
        }
    }

    /// Goes on with the work, and renews the lease meanwhile.
    async fn work_while<W>(
        &self,
        lease: &mut Lease,
        terms: LeaseTerms,
        call: &Call,
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
            let until_it_ends = Call::new(Deadline::within(lease.remaining().min(call.deadline().remaining())));
            let renewal = Box::pin(self.renew(&mut renewed, terms, &until_it_ends));
            match beside(lease, work.as_mut(), renewal).await {
                Turn::Done(done) => return Ok(done),
                Turn::Over => return Err(WorkError::Unknown { source: unproved }),
                Turn::Next(Ok(())) => *lease = renewed,
                Turn::Next(Err(LeaseError::Fenced | LeaseError::NotFound | LeaseError::Conflict(_))) => {
                    return Err(WorkError::Lost);
                }
                // One renewal that failed is no lost lease.
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

/// Between two renewals of which the first failed.
const PAUSE: Duration = Duration::from_millis(100);

/// What came first.
enum Turn<W, N> {
    /// The work was done.
    Done(W),
    /// The other future was ready.
    Next(N),
    /// The lease's time was over.
    Over,
}

/// Goes on with the work, as long as the lease has time left, until `other` is ready. Time is looked at each time before
/// the work goes on: whoever wakes up after a pause finds out first.
async fn beside<W: Future, N: Future>(lease: &Lease, mut work: Pin<&mut W>, other: N) -> Turn<W::Output, N::Output> {
    // Without a share of its own, work that is always ready would use up the task's budget and starve the renewal.
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
