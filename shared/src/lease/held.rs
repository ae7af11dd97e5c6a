//! [`Held`]: a lease that is renewed for as long as its holder wants it.

use super::leases::Leases;
use super::row::{Lease, LeaseHeld, LeaseLost};
use super::terms::LeaseTerms;
use crate::call::Call;
use crate::clock::Clock;
use crate::deadline::{Deadline, DualClockDeadline};
use crate::error::{Error, Failure, FailureKind, Source};
use crate::fencing_token::FencingToken;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tracing::debug;

/// The pause before a failed renewal is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// How late [`Held::lost`] may tell of a time that only the wall clock says is over.
const TICK: Duration = Duration::from_secs(1);

/// A lease that a task of this process renews as long as this value lives. [`Leases::hold`] makes it.
///
/// Give it back with [`Held::release`]. If the value is dropped instead, by a panic or because the future that has it is
/// dropped, the task releases the lease. It cannot do so after its runtime was shut down or its process killed. The lease
/// then ends by itself.
///
/// The task needs a thread to run on, and timers. Work that blocks a thread of its runtime may stop both, also where there
/// are several threads, so give such work to [`tokio::task::spawn_blocking`].
#[must_use = "the lease is released when this value is dropped"]
pub struct Held {
    token: FencingToken,
    clock: Clock,
    /// The end of the lease as far as it is proved. `None` once the lease is lost.
    until: Receiver<Option<DualClockDeadline>>,
    task: JoinHandle<End>,
}

/// The end of a lease that was held.
pub(super) struct End {
    /// Why the last renewal was not proved, if the time of the lease was over.
    pub unproved: Option<Source>,
    pub released: Result<(), Error<LeaseLost>>,
}

impl Held {
    /// The token to write under.
    #[must_use]
    pub fn token(&self) -> &FencingToken {
        &self.token
    }

    /// The time for which the lease is held if no renewal follows. Zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.borrow().map_or(Duration::ZERO, |until| until.remaining(self.clock.now()))
    }

    /// Waits until the lease is lost, or its time is over without a proved renewal. Whoever holds it must stop then.
    pub async fn lost(&self) {
        let mut until = self.until.clone();
        loop {
            let remaining = self.remaining();
            if remaining.is_zero() {
                return;
            }
            // A machine that stands still may stop the clock of the timer, so the time is looked at now and then.
            if let Ok(Err(_)) = tokio::time::timeout(remaining.min(TICK), until.changed()).await {
                // The task was ended with its runtime, so the lease only runs out.
                tokio::time::sleep(remaining.min(TICK)).await;
            }
        }
    }

    /// Ends the renewals and releases the lease. The release is sent even if this future is dropped.
    ///
    /// # Errors
    /// See [`Leases::release`]. [`Error::Refused`]: the lease was lost before. Another holder may have had it for a while.
    pub async fn release(self) -> Result<(), Error<LeaseLost>> {
        self.end().await.released
    }

    pub(super) async fn end(self) -> End {
        drop(self.until);
        self.task.await.unwrap_or_else(|error| {
            let failure = Failure::of(FailureKind::OutcomeUnknown { source: error.into() });
            End { unproved: None, released: Err(failure.into()) }
        })
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("token", &self.token).field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

impl Leases {
    /// Acquires the lease, waits for it up to `timeout` if another caller holds it, and renews it in the background.
    ///
    /// # Errors
    /// See [`Leases::acquire_within`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn hold(
        &self,
        key: &str,
        holder: &str,
        terms: LeaseTerms,
        timeout: Duration,
    ) -> Result<Held, Error<LeaseHeld>> {
        Ok(self.held(self.acquire_within(key, holder, terms, timeout).await?, terms))
    }

    /// Renews the lease in the background from now on.
    #[inline] // A task has the code of all its requests. So it is compiled by programs that hold leases, and not here.
    pub(super) fn held(&self, lease: Lease, terms: LeaseTerms) -> Held {
        let (token, clock) = (lease.token.clone(), lease.clock.clone());
        let (shown, until) = watch::channel(Some(lease.until));
        let task = tokio::spawn(self.clone().keep(lease, terms, shown));
        Held { token, clock, until, task }
    }

    /// Renews the lease until it is lost, its time is over, or nobody wants it. Then it releases the lease.
    async fn keep(self, mut lease: Lease, terms: LeaseTerms, shown: Sender<Option<DualClockDeadline>>) -> End {
        let mut unproved = None;
        let renewed = self.renewed(&mut lease, terms, &shown, &mut unproved);
        if let Some(Some(lost)) = unless(pin!(shown.closed()), renewed).await {
            shown.send_replace(None);
            return End { unproved, released: Err(Error::Refused(lost)) };
        }
        let released = self.release(lease).await;
        if let Err(error) = &released {
            debug!(?error, "not released");
        }
        End { unproved, released }
    }

    /// Renews the lease until a renewal finds it lost. `None` if its time is over without proof.
    async fn renewed(
        &self,
        lease: &mut Lease,
        terms: LeaseTerms,
        shown: &Sender<Option<DualClockDeadline>>,
        unproved: &mut Option<Source>,
    ) -> Option<LeaseLost> {
        loop {
            tokio::time::sleep(terms.renewal_in(lease.remaining())).await;
            let left = lease.remaining();
            if left.is_zero() {
                return None;
            }
            let left = left.min(self.store().call().deadline().remaining());
            let until_it_ends = self.in_call(&Call::new(Deadline::within(left)));
            let mut renewed = lease.clone();
            match until_it_ends.renew(&mut renewed, terms).await {
                Ok(()) => {
                    shown.send_replace(Some(renewed.until));
                    (*lease, *unproved) = (renewed, None);
                }
                Err(Error::Refused(lost)) => return Some(lost),
                // A failed renewal does not mean that the lease is lost.
                Err(Error::Failed(failure)) => {
                    debug!(%failure, "not renewed");
                    *unproved = Some(failure.into());
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// The output of `other`, or `None` if `stop` is ready first. `stop` is asked first.
pub(super) async fn unless<T>(
    mut stop: Pin<&mut impl Future<Output = ()>>,
    other: impl Future<Output = T>,
) -> Option<T> {
    let mut other = pin!(other);
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => other.as_mut().poll(context).map(Some),
    })
    .await
}
