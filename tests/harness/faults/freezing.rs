//! A client that the machine stops now and then.

use super::network::Network;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// A client that stands still now and then: while it does, nothing of it runs, its timers included.
pub struct Freezing<F> {
    inner: Pin<Box<F>>,
    network: Arc<Network>,
    frozen: Option<Pin<Box<Sleep>>>,
}

impl<F> Freezing<F> {
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
        if let Some(frozen) = &mut this.frozen {
            if frozen.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.frozen = None;
        }
        this.inner.as_mut().poll(context)
    }
}
