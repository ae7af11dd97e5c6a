//! A fault that a test has planned: what, to which requests, and how often.

use crate::answers::is_conditional;
use crate::engine::{Engine, Step, is_read};
use crate::fault::Fault;
use crate::request::Request;
use std::sync::{Arc, Mutex};

/// What another writer does right before a request arrives.
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
