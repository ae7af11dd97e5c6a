//! A client that the machine stops now and then.

use crate::network::Network;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// A client that stands still now and then. While it does, nothing of it runs, its timers included.
///
/// It does so as often as [`Rates::frozen`](crate::Rates::frozen) says, and where
/// [`Dynamo::freeze`](crate::Dynamo::freeze) planned it. Tasks that the client has spawned go on.
#[derive(Debug)]
pub struct Freezing<F> {
    inner: Pin<Box<F>>,
    network: Arc<Network>,
    frozen: Option<Pin<Box<Sleep>>>,
}

impl<F> Freezing<F> {
    /// A client of this network with this future for its work.
    pub fn new(network: &Arc<Network>, inner: F) -> Self {
        Freezing { inner: Box::pin(inner), network: network.clone(), frozen: None }
    }
}

impl<F: Future> Future for Freezing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.frozen.is_none() && this.network.below(1000) < u64::from(this.network.rates.frozen) {
            let millis = if this.network.below(4) == 0 { 420_000 } else { 2_000 };
            this.frozen = Some(Box::pin(sleep(Duration::from_millis(this.network.below(millis)))));
        }
        loop {
            if let Some(frozen) = &mut this.frozen {
                if frozen.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.frozen = None;
            }
            this.network.can_freeze.store(true, SeqCst);
            let polled = this.inner.as_mut().poll(context);
            this.network.can_freeze.store(false, SeqCst);
            if polled.is_ready() {
                return polled;
            }
            match this.network.take_freeze() {
                Some(time) => this.frozen = Some(Box::pin(sleep(time))),
                None => return Poll::Pending,
            }
        }
    }
}
