//! [`Leases::while_held`] and [`Leases::campaign`]: do work under a lease.

use super::held::{End, Held};
use super::leases::Leases;
use super::row::{LeaseHeld, LeaseLost};
use super::terms::LeaseTerms;
use crate::error::{Error, Source};
use crate::fencing_token::FencingToken;
use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::task::coop::unconstrained;

/// Why work under a lease did not end by itself, or not while the lease was held.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unfinished {
    /// Another holder has the lease. The work did not begin.
    Held(LeaseHeld),
    /// The lease was lost by another acquire or by a release before the work ended, or before the end of the work was
    /// noticed. The work was cancelled if it had not ended. The outcome of a write in flight is *unknown*. If the write
    /// demands the lease with [`Attempt::require`](crate::Attempt::require), it was applied before the lease was lost, or
    /// never will be.
    Lost,
    /// No renewal was proved before the time of the lease was over. So the lease counts as lost. The work was
    /// cancelled if it had not ended. The outcome of a write in flight is *unknown*.
    Unknown {
        /// The reason why the last renewal was not proved.
        source: Source,
    },
    /// The [campaign](Leases::campaign) was told to stop. The work was cancelled, or it had not begun. The outcome of a
    /// write in flight is *unknown*.
    Stopped,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfinished::Held(LeaseHeld { holder, until }) => {
                write!(f, "the work did not begin: {holder} holds the lease until {until}; try again then")
            }
            Unfinished::Lost => f.write_str(
                "the lease was lost before the work was known to have ended; a write in flight may have been applied",
            ),
            Unfinished::Unknown { .. } => f.write_str(
                "no renewal was proved in time, so the lease counts as lost; a write in flight may have been applied",
            ),
            Unfinished::Stopped => f.write_str("the work was stopped; a write in flight may have been applied"),
        }
    }
}

/// Why work was cancelled.
enum Cancelled {
    OutOfTime,
    Stopped,
}

impl Leases {
    /// Acquires the lease, does the work, and releases the lease. Renews the lease while the work goes on. Releases it
    /// also if the work ends with an error.
    ///
    /// `work` gets the token to write under. It is not polled any more once the lease is lost or its time is over, even
    /// after the process was stopped in between. The lease is [`Held`] meanwhile: if this future is dropped, the work
    /// ends and the lease is released. The work may take longer than the time limit of the store, which each acquire,
    /// renewal and release has for itself. After the deadline of a [`Call`](crate::Call), nothing is renewed any more.
    ///
    /// # Errors
    /// [`Error::Refused`]: [`Unfinished`] says whether the work began. The result of work that ended after the lease was
    /// lost is dropped. [`Error::Failed`]: the lease was not acquired, and the work did not begin; see
    /// [`Failure`](crate::Failure).
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
        let lease = match self.acquire(key, holder, terms).await {
            Ok(lease) => lease,
            Err(Error::Refused(held)) => return Err(Error::Refused(Unfinished::Held(held))),
            Err(Error::Failed(failure)) => return Err(failure.into()),
        };
        under(self.held(lease, terms), pin!(pending()), work).await.map_err(Error::Refused)
    }

    /// Waits for the lease as long as it takes, does the work under it, and releases it, unless `stop` comes first.
    ///
    /// While it waits, it looks at the lease as [`Leases::acquire_within`] does. It goes on waiting if the table does not
    /// answer. `stop` is a future without a value, such as one that awaits `tokio::signal::ctrl_c`. When it is ready, the work is cancelled and the
    /// lease is released, so that the next holder need not wait for its end. Everything else is as in
    /// [`Leases::while_held`].
    ///
    /// # Errors
    /// See [`Leases::while_held`], except for [`Unfinished::Held`]. [`Unfinished::Stopped`]: `stop` was ready first.
    pub async fn campaign<W, F>(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        stop: impl Future<Output = ()>,
        work: impl FnOnce(FencingToken) -> F,
    ) -> Result<W, Error<Unfinished>>
    where
        F: Future<Output = W>,
    {
        let mut stop = pin!(stop);
        match self.elected(key, holder, terms, stop.as_mut()).await? {
            Some(lease) => under(self.held(lease, terms), stop, work).await.map_err(Error::Refused),
            None => Err(Error::Refused(Unfinished::Stopped)),
        }
    }
}

/// Does the work while the lease is held, and releases the lease.
async fn under<W, F: Future<Output = W>>(
    held: Held,
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl FnOnce(FencingToken) -> F,
) -> Result<W, Unfinished> {
    // The work is dropped before the lease is released.
    let done = beside(&held, stop, work(held.token().clone())).await;
    let was_in_time = !held.remaining().is_zero();
    let End { unproved, released } = held.end().await;
    match (done, released) {
        (_, Err(Error::Refused(LeaseLost::Fenced | LeaseLost::NotFound))) => Err(Unfinished::Lost),
        (Ok(done), Ok(())) => Ok(done),
        (Ok(done), Err(Error::Failed(_))) if was_in_time => Ok(done),
        (Ok(_), Err(Error::Failed(failure))) => Err(Unfinished::Unknown { source: failure.into() }),
        (Err(Cancelled::Stopped), _) => Err(Unfinished::Stopped),
        (Err(Cancelled::OutOfTime), _) => {
            let source = unproved.unwrap_or_else(|| "its time was over before it could be renewed".into());
            Err(Unfinished::Unknown { source })
        }
    }
}

/// Polls the work until it ends, the lease has no time left, or it is told to stop. Looks at the time each time before it
/// polls the work. So a process that wakes up after a pause finds out first.
async fn beside<W>(
    held: &Held,
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = W>,
) -> Result<W, Cancelled> {
    // Work that is always ready would use up the budget of the task and starve the others. So they have their own.
    let (mut work, mut lost, mut stop) = (pin!(work), pin!(unconstrained(held.lost())), pin!(unconstrained(stop)));
    poll_fn(|context| {
        if held.remaining().is_zero() {
            return Poll::Ready(Err(Cancelled::OutOfTime));
        }
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Cancelled::Stopped));
        }
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        lost.as_mut().poll(context).map(|()| Err(Cancelled::OutOfTime))
    })
    .await
}
