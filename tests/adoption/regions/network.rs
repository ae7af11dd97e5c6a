//! Two Regions over one table with multi-Region strong consistency: of two writes to one item in different Regions, one
//! is refused for now.

use crate::harness::clock::TEN_O_CLOCK;
use crate::harness::engine::{Engine, Step, body_of, client_over, is_read, operation_of, response, store};
use crate::harness::off::{OffClock, OffClocks};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use fencepost::Store;
use fencepost_test::Garbling;
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// A request dated this many milliseconds in the past is refused unread.
const SIGNATURE_LIFE: i64 = 300_000;

/// How often each thing happens to a request, in thousandths.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rates {
    /// It never arrives.
    pub dropped: u64,
    /// It is executed. Its answer never arrives.
    pub answer_lost: u64,
    /// It arrives, but its answer is damaged.
    pub garbled: u64,
    /// It is a write, and is delivered only when its signature has run out or nearly so. Its answer never arrives.
    pub held: u64,
    /// Against all promises, a conflict between Regions is answered as if the write were applied.
    pub conflict_denied: u64,
}

/// The events on the network.
#[derive(Clone, Copy, Default, Debug)]
pub struct Totals {
    pub requests: usize,
    /// Reads of one item without consistency.
    pub inconsistent: usize,
    pub conflicts: usize,
    /// Lost answers to applied writes.
    pub lost: usize,
}

/// The network between both Regions.
pub struct Network {
    engine: Engine,
    rates: Rates,
    clocks: OffClocks,
    rng: Mutex<fastrand::Rng>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_flight: Vec<Flight>,
    totals: Totals,
    next: u64,
    /// The rows left by applied writes, in their order.
    rows: Vec<(Step, Value)>,
}

/// A write between its arrival in a Region and its commit in all.
struct Flight {
    number: u64,
    region: usize,
    item: Step,
    /// Whether a write of the other Region has taken its place.
    is_refused: bool,
}

/// The connection of one client to its Region.
#[derive(Clone)]
struct Connection {
    network: Arc<Network>,
    region: usize,
    clock: OffClock,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl Network {
    pub fn new(engine: &Engine, rates: Rates, seed: u64) -> Arc<Self> {
        Arc::new(Network {
            engine: engine.clone(),
            rates,
            clocks: OffClocks::of(seed, Instant::now()),
            rng: Mutex::new(fastrand::Rng::with_seed(seed)),
            state: Mutex::default(),
        })
    }

    /// The store of a client in this Region, with a clock of its own.
    pub fn store(self: &Arc<Self>, region: usize) -> Store {
        let clock = self.clocks.draw();
        let client = client_over(Connection { network: self.clone(), region, clock: clock.clone() });
        let (chance, now) = (self.clone(), move || clock.now(Duration::from_millis(TEN_O_CLOCK)));
        store(&client, now, move || chance.rng.lock().expect("no panic while drawing").u64(..))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.rng.lock().expect("no panic while drawing").u64(0..bound)
    }

    pub fn totals(&self) -> Totals {
        self.state().totals
    }

    /// The rows left by applied writes, in their order.
    pub fn rows(&self) -> Vec<(Step, Value)> {
        self.state().rows.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic while noting")
    }

    fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    /// Notes the arrival of a write. `None` if one of the other Region is at the same item.
    fn arrives(&self, region: usize, item: &Step) -> Option<u64> {
        let both = self.below(2) == 0;
        let mut state = self.state();
        let is_met = |flight: &&mut Flight| {
            flight.region != region && (&flight.item.table, &flight.item.id) == (&item.table, &item.id)
        };
        if let Some(other) = state.in_flight.iter_mut().find(is_met) {
            // At least one of them is refused, and both may be.
            other.is_refused |= both;
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.in_flight.push(Flight { number, region, item: item.clone(), is_refused: false });
        Some(number)
    }

    /// Ends the flight of a write. Returns whether it may be applied.
    fn ends(&self, number: u64) -> bool {
        let mut state = self.state();
        let at = state.in_flight.iter().position(|flight| flight.number == number).expect("it arrived");
        !state.in_flight.remove(at).is_refused
    }

    fn apply(&self, operation: &str, body: &Value, item: &Step) -> (u16, String) {
        let answer = self.engine.answer(operation, body.to_string().as_bytes());
        if answer.0 == 200 {
            let row = self.engine.row(&item.table, &self.engine.key_of(&item.table), &item.id);
            let mut state = self.state();
            state.rows.push((item.clone(), row));
        }
        answer
    }
}

/// The answer to a client.
struct Answer {
    status: u16,
    body: String,
    /// The seed of the damaged answer in its place.
    garbled: Option<u64>,
}

impl Answer {
    fn of((status, body): (u16, String)) -> Self {
        Answer { status, body, garbled: None }
    }
}

impl Connection {
    /// One request's way there and back. `None` when the client never hears of it.
    async fn carry(self, operation: String, body: Value) -> Option<Answer> {
        let (network, signed) = (&self.network, Instant::now());
        let life = SIGNATURE_LIFE + self.clock.ahead();
        let problem = |code: &str| (400, crate::harness::clients::error(400, code).1);
        network.state().totals.requests += 1;
        sleep(network.millis(1, 20)).await;
        let Rates { dropped, answer_lost, garbled, held, conflict_denied } = network.rates;
        let drawn = network.below(1000);
        if drawn < dropped {
            return None;
        }
        let is_lost = drawn < dropped + answer_lost + held;
        let is_garbled = (1000 - garbled..1000).contains(&drawn);
        let garbled = is_garbled.then(|| network.below(u64::MAX));
        if is_read(&operation) {
            let is_inconsistent = operation == "GetItem" && body["ConsistentRead"] != true;
            network.state().totals.inconsistent += usize::from(is_inconsistent);
            let answer = network.engine.answer(&operation, body.to_string().as_bytes());
            sleep(network.millis(1, 20)).await;
            return (!is_lost).then_some(Answer { garbled, ..Answer::of(answer) });
        }
        if operation == "TransactWriteItems" {
            return Some(Answer::of(problem("ValidationException")));
        }
        if is_lost && drawn >= dropped + answer_lost {
            let lives_longer = u64::try_from(self.clock.ahead()).unwrap_or_default();
            sleep(network.millis(20, 330_000 + lives_longer)).await;
        }
        if i64::try_from(signed.elapsed().as_millis()).expect("a test is short") > life {
            return (!is_lost).then(|| Answer::of(problem("InvalidSignatureException")));
        }
        let item = network.engine.steps_of(&operation, &body).remove(0);
        let flight = network.arrives(self.region, &item);
        let mut answer = None;
        if let Some(number) = flight {
            sleep(network.millis(5, 60)).await;
            if network.ends(number) {
                answer = Some(network.apply(&operation, &body, &item));
            }
        }
        let answer = answer.unwrap_or_else(|| {
            network.state().totals.conflicts += 1;
            let is_denied = network.below(1000) < conflict_denied;
            if is_denied { (200, "{}".to_owned()) } else { problem("ReplicatedWriteConflictException") }
        });
        network.state().totals.lost += usize::from(is_lost && answer.0 == 200);
        sleep(network.millis(1, 20)).await;
        (!is_lost).then_some(Answer { garbled, ..Answer::of(answer) })
    }
}

impl HttpConnector for Connection {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = serde_json::from_slice(&body_of(&request)).unwrap_or_else(|_| json!({}));
        let carried = self.clone().carry(operation_of(&request), body);
        let (answered, answer) = oneshot::channel();
        let breaks_off = self.network.below(2) == 0;
        // A request arrives even if its client gives up on it.
        tokio::spawn(async move {
            match carried.await {
                Some(answer) => drop(answered.send(answer)),
                None if breaks_off => drop(answered),
                None => {
                    sleep(Duration::from_hours(1)).await;
                    drop(answered);
                }
            }
        });
        HttpConnectorFuture::new(async move {
            match answer.await {
                Ok(Answer { status, body, garbled: None }) => response(status, body),
                Ok(Answer { status, body, garbled: Some(seed) }) => {
                    let form = usize::try_from(seed % 9).expect("few");
                    Garbling::ALL[form].in_place_of(status, &body, seed)
                }
                Err(_) => Err(ConnectorError::io("connection reset".into())),
            }
        })
    }
}
