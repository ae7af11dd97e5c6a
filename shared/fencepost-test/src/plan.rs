//! Planning a fault in one line.

use crate::answers::is_conditional;
use crate::engine::{Engine, Step, is_read};
use crate::fault::Fault;
use crate::network::Network;
use crate::request::Request;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A fault that strikes as soon as it is said how often: with [`once`](Self::once), [`times`](Self::times),
/// [`always`](Self::always) or [`with_probability`](Self::with_probability).
///
/// Without [`of`](Self::of), [`on`](Self::on) and [`about`](Self::about) it is meant for every request of every client.
/// Each send counts: a request that the SDK repeats by itself may be struck more than once.
#[must_use = "a fault strikes only after `once`, `times`, `always` or `with_probability`"]
pub struct Plan {
    network: Arc<Network>,
    fault: Fault,
    wanted: Wanted,
    silent: bool,
    rival: Option<Rival>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("fault", &self.fault).field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl Plan {
    pub(crate) fn new(network: &Arc<Network>, fault: Fault) -> Self {
        Plan { network: network.clone(), fault, wanted: Wanted::default(), silent: false, rival: None }
    }

    /// Only for this operation, such as `UpdateItem`.
    pub fn of(mut self, operation: &str) -> Self {
        self.wanted.operation = Some(operation.to_owned());
        self
    }

    /// Only for requests that touch this table.
    pub fn on(mut self, table: &str) -> Self {
        self.wanted.table = Some(table.to_owned());
        self
    }

    /// Only for requests that touch a row with this partition key.
    pub fn about(mut self, id: &str) -> Self {
        self.wanted.id = Some(id.to_owned());
        self
    }

    /// Only for requests that may change something.
    pub fn of_writes(mut self) -> Self {
        self.wanted.writes_only = true;
        self
    }

    pub(crate) fn of_conditional_writes(mut self) -> Self {
        self.wanted.conditional_only = true;
        self.of_writes()
    }

    /// Spares so many of these requests first.
    pub fn sparing(mut self, requests: usize) -> Self {
        self.wanted.spared = requests;
        self
    }

    /// Lets the connection stay open if no answer comes, instead of being reset. Only a timeout of the client ends the
    /// wait; the SDK has none by default.
    pub fn silently(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Lets another writer be first: this runs right before the request arrives. After a
    /// [`conflict_next`](crate::Dynamo::conflict_next), the engine then judges the condition.
    pub fn after(mut self, rival: impl Fn(&Engine) + Send + Sync + 'static) -> Self {
        self.rival = Some(Arc::new(rival));
        self
    }

    /// Strikes the next of these requests.
    pub fn once(self) -> Planned {
        self.times(1)
    }

    /// Strikes the next so many of these requests.
    pub fn times(self, requests: usize) -> Planned {
        self.when(When::Times(requests))
    }

    /// Strikes all of these requests from now on.
    pub fn always(self) -> Planned {
        self.when(When::Always)
    }

    /// Strikes this share of these requests: 0.05 for 5 %. The seed decides which.
    pub fn with_probability(self, share: f64) -> Planned {
        self.when(When::Share(share))
    }

    fn when(self, when: When) -> Planned {
        let rule = Rule::new(self.fault, self.wanted, self.silent, self.rival, when);
        Planned(self.network.plan(rule))
    }
}

/// A planned fault, to be asked whether it struck. A test shows nothing if its fault never strikes.
#[derive(Clone)]
pub struct Planned(Arc<Rule>);

impl Planned {
    /// How many requests it struck so far.
    pub fn struck(&self) -> usize {
        self.0.struck()
    }
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned").field("fault", &self.0.fault).field("struck", &self.struck()).finish_non_exhaustive()
    }
}

/// The change of another writer right before a request arrives.
pub type Rival = Arc<dyn Fn(&Engine) + Send + Sync>;

/// A fault, the requests that it is meant for, and when it strikes.
pub struct Rule {
    pub fault: Fault,
    pub wanted: Wanted,
    /// Whether a client that hears no answer keeps waiting, instead of seeing its connection reset.
    pub silent: bool,
    pub rival: Option<Rival>,
    state: Mutex<State>,
}

/// Which requests a fault is meant for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub operation: Option<String>,
    pub table: Option<String>,
    pub id: Option<String>,
    pub writes_only: bool,
    pub conditional_only: bool,
    /// How many of them it spares first.
    pub spared: usize,
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Times(usize),
    Share(f64),
    Always,
}

#[derive(Debug)]
struct State {
    spared: usize,
    when: When,
    struck: usize,
}

impl Wanted {
    fn has(&self, request: &Request, steps: &[Step]) -> bool {
        let is = |wanted: &Option<String>, given: &str| wanted.as_ref().is_none_or(|wanted| wanted == given);
        let any_table = self.table.is_none() && self.id.is_none();
        is(&self.operation, &request.operation)
            && (any_table || steps.iter().any(|step| is(&self.table, &step.table) && is(&self.id, &step.id)))
            && !(self.writes_only && is_read(&request.operation))
            && (!self.conditional_only || is_conditional(request))
    }
}

impl Rule {
    pub fn new(fault: Fault, wanted: Wanted, silent: bool, rival: Option<Rival>, when: When) -> Self {
        let state = State { spared: wanted.spared, when, struck: 0 };
        Rule { fault, wanted, silent, rival, state: Mutex::new(state) }
    }

    /// How often it struck.
    pub fn struck(&self) -> usize {
        self.state.lock().expect("no panic while counting").struck
    }

    /// Whether it strikes this request. `draw` gives a number from 0 to below 1.
    pub fn strikes(&self, request: &Request, steps: &[Step], draw: impl Fn() -> f64) -> bool {
        if !self.wanted.has(request, steps) {
            return false;
        }
        let mut state = self.state.lock().expect("no panic while counting");
        if state.spared > 0 {
            state.spared -= 1;
            return false;
        }
        let strikes = match &mut state.when {
            When::Times(left) => {
                let is_left = *left > 0;
                *left = left.saturating_sub(1);
                is_left
            }
            When::Share(share) => draw() < *share,
            When::Always => true,
        };
        state.struck += usize::from(strikes);
        strikes
    }
}
