//! The embedded engine behind a connector that adds delays and counts requests.
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::table;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::{Clock, Rng, Store};
use fencepost_test::{Engine, body_of, client_over, operation_of, response};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// A connection to the engine that takes `hop` in each direction. It may lose one answer on its way back.
#[derive(Clone)]
pub struct Wire {
    engine: Engine,
    begun: Instant,
    hop: Duration,
    requests: Arc<AtomicU32>,
    next_loss: Arc<Mutex<Option<Loss>>>,
}

/// How the answer to an applied request is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// No answer arrives.
    Silent,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// Creates a wire to an engine with empty tables.
    #[must_use]
    pub fn new(hop: Duration) -> Self {
        Wire {
            engine: table::engine(),
            begun: Instant::now(),
            hop,
            requests: Arc::default(),
            next_loss: Arc::default(),
        }
    }

    /// Loses the next answer.
    ///
    /// # Panics
    /// Never, because no code panics while it holds the lock.
    pub fn lose_next(&self, loss: Loss) {
        *self.next_loss.lock().expect("no panic while setting") = Some(loss);
    }

    /// The number of requests since the last call.
    #[must_use]
    pub fn take_requests(&self) -> u32 {
        self.requests.swap(0, SeqCst)
    }

    /// The number in the counter of this id.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn count(&self, id: &str) -> u64 {
        let row = self.engine.row(table::NAME, table::KEY, id);
        row["count"]["N"].as_str().and_then(|count| count.parse().ok()).expect("a counter")
    }

    /// A client of the real SDK over this wire, without retries.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.clone())
    }

    /// The store of a new process, under the virtual clock.
    pub fn store(&self, rng: fastrand::Rng) -> Store {
        store(&self.client(), self.begun, chance(rng))
    }

    /// Carries out a request. Returns the status and the body of the answer.
    pub(crate) fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let answer = self.engine.answer(operation, body);
        drop(self.engine.take_log());
        answer
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.requests.fetch_add(1, SeqCst);
        let wire = self.clone();
        HttpConnectorFuture::new(async move {
            sleep(wire.hop).await;
            let (status, body) = wire.answer(&operation_of(&request), &body_of(&request));
            sleep(wire.hop).await;
            let loss = wire.next_loss.lock().expect("no panic while taking").take();
            if loss == Some(Loss::Silent) {
                std::future::pending::<()>().await;
            }
            response(status, body)
        })
    }
}

/// A store under the virtual clock, which began then.
pub(crate) fn store(client: &Client, begun: Instant, chance: Rng) -> Store {
    let base = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    Store::new(client).with_clock(Clock::new(move || base + begun.elapsed())).with_rng(chance)
}

/// The random numbers of a store.
pub(crate) fn chance(rng: fastrand::Rng) -> Rng {
    let rng = Mutex::new(rng);
    Rng::new(move || rng.lock().expect("no panic while drawing").u64(..))
}

/// Plays on virtual time.
pub(crate) fn paused<A>(played: impl Future<Output = A>) -> A {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime"), played)
}
