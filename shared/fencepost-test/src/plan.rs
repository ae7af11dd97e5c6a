//! Planning a fault in one line.

use crate::engine::Engine;
use crate::fault::{Fault, Rival, Rule, Wanted, When};
use crate::network::Network;
use std::fmt;
use std::sync::Arc;

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
