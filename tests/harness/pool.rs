//! [`Pool`]: simulated connections that are opened with a handshake, carry one request at a time, and may be dead.

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use fencepost_test::{body_of, client_over, operation_of, response};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::sleep;

/// The connections of one client.
///
/// A request takes an idle connection, or opens one. Its connection is idle again after the answer. If the request is
/// dropped before that, its connection is closed.
#[derive(Clone)]
pub struct Pool(Arc<Simulation>);

struct Simulation {
    handshake: Duration,
    hop: Duration,
    answer: Box<Answer>,
    state: Mutex<State>,
}

/// Answers a request, given its operation and its body, with a status and a body.
type Answer = dyn Fn(&str, &[u8]) -> (u16, String) + Send + Sync;

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    fates: VecDeque<Fate>,
    all_after: Option<Fate>,
    counts: Counts,
    in_flight: u32,
}

#[derive(Clone, Copy)]
struct Connection {
    is_dead: bool,
}

/// The fate of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// It is carried out without an answer.
    AnswerLost,
    /// It never arrives.
    Dropped,
}

/// The counts since the last call of [`Pool::take_counts`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// The requests.
    pub requests: u32,
    /// The connections opened, from the start of the handshake on.
    pub opened: u32,
    /// The most requests in flight together.
    pub most_in_flight: u32,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

impl Pool {
    /// Creates a pool without connections. `answer` carries out the arriving requests. A request takes `hop` in each
    /// direction.
    pub fn new(
        handshake: Duration,
        hop: Duration,
        answer: impl Fn(&str, &[u8]) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        Pool(Arc::new(Simulation { handshake, hop, answer: Box::new(answer), state: Mutex::default() }))
    }

    /// A client of the real SDK over this pool, without retries.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.clone())
    }

    /// Sets the fates of the next requests. The requests after them are answered.
    pub fn next(&self, fates: &[Fate]) {
        self.state().fates = fates.iter().copied().collect();
    }

    /// Sets the fate of all requests after those of [`Pool::next`].
    pub fn all_after(&self, fate: Fate) {
        self.state().all_after = Some(fate);
    }

    /// Adds idle connections.
    pub fn open(&self, count: usize) {
        self.state().idle.extend(vec![Connection { is_dead: false }; count]);
    }

    /// Kills the idle connections, as a freeze of the process does. A request finds out after one hop.
    pub fn kill_idle(&self) {
        self.state().idle.iter_mut().for_each(|connection| connection.is_dead = true);
    }

    /// The number of idle connections.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.state().idle.len()
    }

    /// The counts since the last call.
    #[must_use]
    pub fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.state().counts)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no panic in the simulation")
    }

    fn begin(&self) -> (InFlight, Fate) {
        let mut state = self.state();
        state.counts.requests += 1;
        state.in_flight += 1;
        state.counts.most_in_flight = state.counts.most_in_flight.max(state.in_flight);
        let fate = state.fates.pop_front().or(state.all_after).unwrap_or(Fate::Answered);
        (InFlight { pool: self.clone() }, fate)
    }

    async fn connection(&self) -> Connection {
        let idle = self.state().idle.pop();
        if let Some(connection) = idle {
            return connection;
        }
        self.state().counts.opened += 1;
        sleep(self.0.handshake).await;
        Connection { is_dead: false }
    }
}

/// One request. It is in flight until this is dropped.
struct InFlight {
    pool: Pool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.pool.state().in_flight -= 1;
    }
}

impl HttpConnector for Pool {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (in_flight, fate) = self.begin();
        HttpConnectorFuture::new(async move {
            let pool = &in_flight.pool;
            let Simulation { hop, answer, .. } = &*pool.0;
            let connection = pool.connection().await;
            sleep(*hop).await;
            if connection.is_dead {
                return Err(ConnectorError::io("connection reset".into()));
            }
            if fate == Fate::Dropped {
                std::future::pending::<()>().await;
            }
            let (status, body) = answer(&operation_of(&request), &body_of(&request));
            if fate == Fate::AnswerLost {
                std::future::pending::<()>().await;
            }
            sleep(*hop).await;
            pool.state().idle.push(connection);
            response(status, body)
        })
    }
}
