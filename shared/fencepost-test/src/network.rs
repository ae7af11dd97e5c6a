//! The shared state of the wires of one test: rates, plans and logs; and a client that the machine stops now and then.

use crate::capacity::{Capacities, Capacity, Units};
use crate::connection::{Answer, Request};
use crate::engine::{Engine, Step};
use crate::fault::{Fault, Rates, Rule};
use crate::garbling::Garbling;
use crate::holds::Holds;
use crate::log::{Log, Outcome, Sent};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Stands between the network and the engine and may change requests and answers.
///
/// The methods do nothing special by default. Implement one to break a rule of your own program on purpose, to add a
/// fault that this crate does not have, or to let something else than the engine answer.
pub trait Seam: Send + Sync {
    /// A request leaves its client. Changes made here go over the wire.
    fn leaves(&self, _network: &Network, _request: &mut Request) {}

    /// Decides the fault of a request, in place of the planned or drawn one.
    fn fault(&self, _network: &Network, _request: &Request) -> Option<Fault> {
        None
    }

    /// A request arrives. The default lets the engine execute it.
    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        network.engine.execute(request)
    }

    /// The engine has applied a write.
    fn applied(&self, _network: &Network, _applied: &Applied) {}

    /// The log entry of a request has changed: it left its client, it arrived or its client heard an answer. The number
    /// is its place in the log, which must not be asked for here.
    fn logged(&self, _network: &Network, _number: usize, _sent: &Sent) {}

    /// The answer to a request was lost. Returns another answer for its client, if any.
    fn lost(&self, _request: &Request) -> Option<Answer> {
        None
    }
}

/// Changes nothing.
impl Seam for () {}

/// A write that the engine applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Which operation of the test sent it.
    pub op: u64,
    /// When it was applied.
    pub time: Instant,
    /// One for each step, in their order.
    pub rows: Vec<Touched>,
    /// Whether it was a second copy of a request that was answered with a refusal.
    pub is_copy_of_refused: bool,
}

/// A row that an applied write touched.
#[derive(Clone, Debug)]
pub struct Touched {
    /// Of a transaction's `ConditionCheckItem` too, which leaves the row as it was.
    pub step: Step,
    /// The row right after it.
    pub row: Value,
}

impl Applied {
    /// The row after it; `None` where it did not write it.
    pub fn left_in(&self, table: &str, id: &str) -> Option<&Value> {
        let written = self.rows.iter().filter(|touched| touched.step.action != "ConditionCheckItem");
        let mut of_row = written.filter(|touched| touched.step.table == table && touched.step.id == id);
        of_row.next().map(|touched| &touched.row)
    }
}

/// The shared state of the wires of one test.
pub struct Network {
    /// The engine that answers arriving requests.
    pub engine: Engine,
    /// How often each fault happens.
    pub rates: Rates,
    /// All chance of this test.
    pub rng: Mutex<fastrand::Rng>,
    pub(crate) seam: Box<dyn Seam>,
    pub(crate) holds: Holds,
    pub(crate) capacities: Capacities,
    hops: Mutex<Option<Duration>>,
    begun: Instant,
    applied: Mutex<Vec<Applied>>,
    sent: Mutex<Vec<Sent>>,
    rules: Mutex<Vec<Arc<Rule>>>,
    /// The tokens of the transactions that were sent.
    tokens: Mutex<BTreeSet<String>>,
    /// Whether the client that is running now can stand still.
    pub(crate) can_freeze: AtomicBool,
    /// For how long it is to.
    freeze: Mutex<Option<Duration>>,
    under_way: AtomicUsize,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("rates", &self.rates).finish_non_exhaustive()
    }
}

/// A request that is on its way, until this is dropped.
pub(crate) struct UnderWay(Arc<Network>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, SeqCst);
    }
}

impl Network {
    /// A network with these rates of faults, drawn from this generator. Transactions take no more time than other
    /// requests, until [`Network::transactions_take`] is called.
    pub fn new(engine: &Engine, rates: Rates, rng: fastrand::Rng) -> Arc<Self> {
        Self::through(engine, rates, rng, ())
    }

    /// The same, with a seam before the engine.
    pub fn through(engine: &Engine, rates: Rates, rng: fastrand::Rng, seam: impl Seam + 'static) -> Arc<Self> {
        Arc::new(Network {
            engine: engine.clone(),
            rates,
            rng: Mutex::new(rng),
            seam: Box::new(seam),
            holds: Holds::default(),
            capacities: Capacities::default(),
            hops: Mutex::default(),
            begun: Instant::now(),
            applied: Mutex::default(),
            sent: Mutex::default(),
            rules: Mutex::default(),
            tokens: Mutex::default(),
            can_freeze: AtomicBool::new(false),
            freeze: Mutex::default(),
            under_way: AtomicUsize::new(0),
        })
    }

    /// From now on, items or tables have this capacity beside those given before, and units are counted.
    pub fn capacity(&self, capacity: Capacity) {
        self.capacities.add(capacity);
    }

    /// From now on, [`Log::units`] has the units of each request. Nothing is throttled for it.
    pub fn count_units(&self) {
        self.capacities.count();
    }

    /// From now on, transactions take so long: see [`Dynamo::transactions_take`](crate::Dynamo::transactions_take).
    pub fn transactions_take(&self, time: Duration) {
        self.holds.set(time);
    }

    /// From now on, a request takes exactly so long in each direction.
    pub fn hops(&self, hop: Duration) {
        *self.hops.lock().expect("no panic while setting") = Some(hop);
    }

    /// A number below this one, or 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.rng.lock().expect("no panic while drawing").u64(0..bound.max(1))
    }

    /// Every write that the engine applied, oldest first. Nothing more is noted while the guard lives.
    pub fn applied(&self) -> MutexGuard<'_, Vec<Applied>> {
        self.applied.lock().expect("no panic while noting")
    }

    /// Every request that left a client, oldest first.
    pub fn log(&self) -> Log {
        Log::new(self.sent.lock().expect("no panic while logging").clone())
    }

    /// Plans a fault. Of two that strike the same request, the one that was planned first does.
    pub(crate) fn plan(&self, rule: Rule) -> Arc<Rule> {
        let rule = Arc::new(rule);
        self.rules.lock().expect("no panic while planning").push(rule.clone());
        rule
    }

    /// The planned fault that strikes this request.
    pub(crate) fn planned(&self, request: &Request, steps: &[Step]) -> Option<Arc<Rule>> {
        let rules = self.rules.lock().expect("no panic while planning");
        let draw = || self.rng.lock().expect("no panic while drawing").f64();
        rules.iter().find(|rule| rule.strikes(request, steps, draw)).cloned()
    }

    /// The fault that chance has for a request. `resent` for a transaction with a token that came before.
    pub(crate) fn drawn(&self, operation: &str, resent: bool) -> Option<Fault> {
        let drawn = u32::try_from(self.below(1000)).expect("below 1000");
        self.rates.fault(drawn, operation, resent)
    }

    /// The fault with a form, where it has none yet.
    pub(crate) fn formed(&self, fault: Fault) -> Fault {
        if fault != Fault::Garbled {
            return fault;
        }
        let form = usize::try_from(self.below(Garbling::ALL.len() as u64)).expect("few");
        Fault::GarbledAs { form: Garbling::ALL[form], executed: self.below(2) == 0 }
    }

    /// The delay of a second copy after the first one, if its signature is still accepted for so many milliseconds. The
    /// answer to the first one is back by then.
    pub(crate) fn copied_after(&self, left: u64) -> Duration {
        let Rates { copied_soon, copied_last, .. } = self.rates;
        let (soon, last) = (u64::from(copied_soon), u64::from(copied_last));
        let drawn = if soon + last > 0 { self.below(1000) } else { 1000 };
        let after = match drawn {
            _ if drawn < soon => self.below(500),
            _ if drawn < soon + last => left.saturating_sub(20 + self.below(3_000)),
            _ => self.below(left),
        };
        Duration::from_millis(20 + after)
    }

    /// Some of so many, at least one.
    pub(crate) fn some_of(&self, count: usize) -> Vec<bool> {
        let mut some: Vec<_> = (0..count).map(|_| self.below(2) == 0).collect();
        let one = usize::try_from(self.below(u64::try_from(count).expect("few"))).expect("few");
        if let Some(chosen) = some.get_mut(one) {
            *chosen = true;
        }
        some
    }

    /// Notes a transaction's token, and says whether it came before.
    pub(crate) fn came_before(&self, request: &Request) -> bool {
        let Some(token) = request.token() else { return false };
        !self.tokens.lock().expect("no panic while noting").insert(token.to_owned())
    }

    /// How long a request is on its way in one direction.
    pub(crate) fn hop(&self) -> Duration {
        let hop = *self.hops.lock().expect("no panic while reading");
        hop.unwrap_or_else(|| Duration::from_micros(1000 + self.below(9000)))
    }

    /// Lets the client that is running now stand still.
    pub(crate) fn freeze(&self, time: Duration) {
        assert!(self.can_freeze.load(SeqCst), "run the client in `Dynamo::freezing`: else it cannot be frozen");
        *self.freeze.lock().expect("no panic while setting") = Some(time);
    }

    pub(crate) fn take_freeze(&self) -> Option<Duration> {
        self.freeze.lock().expect("no panic while reading").take()
    }

    /// Notes a request that leaves its client. Gives its number in the log.
    pub(crate) fn log_sent(&self, request: &Request, steps: Vec<Step>, fault: Option<Fault>) -> usize {
        let mut sent = self.sent.lock().expect("no panic while logging");
        let (at, request) = (self.begun.elapsed(), request.clone());
        let number = sent.len();
        let (arrivals, heard, units) = (Vec::new(), None, BTreeMap::new());
        sent.push(Sent { at, request, steps, fault, arrivals, heard, units });
        self.seam.logged(self, number, &sent[number]);
        number
    }

    pub(crate) fn log_arrival(&self, number: usize, outcome: Outcome, units: BTreeMap<String, Units>) {
        self.log_more(number, |sent, at| {
            sent.arrivals.push((at, outcome));
            for (table, units) in units {
                *sent.units.entry(table).or_default() += units;
            }
        });
    }

    pub(crate) fn log_heard(&self, number: usize, outcome: Outcome) {
        self.log_more(number, |sent, at| sent.heard = Some((at, outcome)));
    }

    fn log_more(&self, number: usize, more: impl FnOnce(&mut Sent, Duration)) {
        let mut sent = self.sent.lock().expect("no panic while logging");
        more(&mut sent[number], self.begun.elapsed());
        self.seam.logged(self, number, &sent[number]);
    }

    pub(crate) fn under_way(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, SeqCst);
        UnderWay(self.clone())
    }

    /// Whether no request and no copy of one is on its way.
    pub fn is_quiet(&self) -> bool {
        self.under_way.load(SeqCst) == 0
    }
}

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
