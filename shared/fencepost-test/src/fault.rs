//! The faults of requests, their rates and their plans.

use crate::answers::is_conditional;
use crate::connection::{Request, TRANSACTION};
use crate::engine::{Engine, Step, is_read};
use crate::garbling::Garbling;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It never arrives.
    Dropped,
    /// It is executed. Its answer never arrives.
    AnswerLost,
    /// It is executed, and answered 500.
    Applied500,
    /// It is not executed, and answered 500.
    Refused500,
    /// It is held for up to five minutes and then executed. Its answer is lost.
    Held,
    /// It is held for so long, and then executed and answered.
    Delayed(Duration),
    /// After its answer, a second copy of it is executed. It comes before the signature of the request has ended.
    SecondCopy,
    /// So long after its answer, a second copy of it is executed, unless the signature of the request has ended by then.
    CopiedAfter(Duration),
    /// It is throttled.
    Throttled,
    /// It loses a race: its condition is answered as failed.
    Conflict,
    /// A transaction in flight refuses it. The reasons of a transaction say which of its steps met one.
    TransactionConflict,
    /// It is denied.
    Denied,
    /// The whole client stands still for so long, as soon as the request has left.
    Frozen(Duration),
    /// A transaction is said to be in progress, and is executed a little later.
    InProgress,
    /// A transaction is said to have come with another payload before, and is not executed.
    Mismatch,
    /// Before a transaction arrives, the tokens of all earlier ones are forgotten.
    TokensForgotten,
    /// If the engine cancels the transaction, some of its reasons show a transaction in flight instead.
    MixedReasons,
    /// A batch of reads comes back without some of its keys.
    Unprocessed,
    /// Its answer is garbled. The seed decides the form and whether the request is executed.
    Garbled,
    /// Its answer is garbled in this way.
    GarbledAs {
        /// What comes back.
        form: Garbling,
        /// Whether the request is executed.
        executed: bool,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Fault::Dropped => "it never arrived",
            Fault::AnswerLost => "its answer was lost",
            Fault::Applied500 => "it was answered 500 after it was executed",
            Fault::Refused500 => "it was answered 500 instead of being executed",
            Fault::Held => "it was held, and its answer was lost",
            Fault::Delayed(time) => return write!(f, "it was held for {time:?}"),
            Fault::SecondCopy => "a second copy of it came later",
            Fault::CopiedAfter(time) => return write!(f, "a second copy of it came {time:?} later"),
            Fault::Throttled => "it was throttled",
            Fault::Conflict => "it lost a race",
            Fault::TransactionConflict => "it met a transaction",
            Fault::Denied => "it was denied",
            Fault::Frozen(time) => return write!(f, "its client then stood still for {time:?}"),
            Fault::InProgress => "it was said to be in progress",
            Fault::Mismatch => "its token was said to have come with another payload",
            Fault::TokensForgotten => "the tokens of earlier transactions were forgotten",
            Fault::MixedReasons => "some of its reasons show a transaction in flight",
            Fault::Unprocessed => "some of its keys came back unprocessed",
            Fault::Garbled => "its answer was garbled",
            Fault::GarbledAs { form, executed: true } => return write!(f, "{form} came after it was executed"),
            Fault::GarbledAs { form, executed: false } => {
                return write!(f, "{form} came instead of its being executed");
            }
        };
        f.write_str(said)
    }
}

/// How often each thing happens to a request, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// [`Fault::Dropped`].
    pub dropped: u32,
    /// [`Fault::AnswerLost`].
    pub answer_lost: u32,
    /// [`Fault::Applied500`].
    pub applied_500: u32,
    /// [`Fault::Refused500`].
    pub refused_500: u32,
    /// [`Fault::Held`]. Writes only.
    pub held: u32,
    /// [`Fault::SecondCopy`]. Writes only.
    pub second_copy: u32,
    /// Of a thousand second copies, how many come within half a second.
    pub copied_soon: u32,
    /// Of a thousand second copies, how many come in the last three seconds of the life of their signature. The others come
    /// at any time of that life.
    pub copied_last: u32,
    /// [`Fault::Throttled`].
    pub throttled: u32,
    /// [`Fault::TransactionConflict`]. Writes only.
    pub transaction_conflict: u32,
    /// [`Fault::Denied`].
    pub denied: u32,
    /// At any of its steps, the whole client stands still for up to seven minutes. See [`Freezing`](crate::Freezing).
    pub frozen: u32,
    /// [`Fault::InProgress`]. Transactions only.
    pub in_progress: u32,
    /// [`Fault::Mismatch`]. Only transactions that were sent before.
    pub mismatch: u32,
    /// [`Fault::TokensForgotten`]. Transactions only.
    pub tokens_forgotten: u32,
    /// [`Fault::MixedReasons`]. Transactions only.
    pub mixed_reasons: u32,
    /// [`Fault::Unprocessed`]. `BatchGetItem` only.
    pub unprocessed: u32,
    /// [`Fault::Garbled`].
    pub garbled: u32,
}

impl Rates {
    /// The fault for a request that this number below 1000 draws. `resent` for a transaction with a token that came
    /// before.
    pub fn fault(&self, mut drawn: u32, operation: &str, resent: bool) -> Option<Fault> {
        let (write, transaction) = (!is_read(operation), operation == TRANSACTION);
        let faults = [
            (self.dropped, Fault::Dropped),
            (self.answer_lost, Fault::AnswerLost),
            (self.applied_500, Fault::Applied500),
            (self.refused_500, Fault::Refused500),
            (self.throttled, Fault::Throttled),
            (self.denied, Fault::Denied),
            (if write { self.held } else { 0 }, Fault::Held),
            (if write { self.second_copy } else { 0 }, Fault::SecondCopy),
            (if write { self.transaction_conflict } else { 0 }, Fault::TransactionConflict),
            (if transaction { self.in_progress } else { 0 }, Fault::InProgress),
            (if transaction && resent { self.mismatch } else { 0 }, Fault::Mismatch),
            (if transaction { self.tokens_forgotten } else { 0 }, Fault::TokensForgotten),
            (if transaction { self.mixed_reasons } else { 0 }, Fault::MixedReasons),
            (if operation == "BatchGetItem" { self.unprocessed } else { 0 }, Fault::Unprocessed),
            (self.garbled, Fault::Garbled),
        ];
        for (rate, fault) in faults {
            if drawn < rate {
                return Some(fault);
            }
            drawn -= rate;
        }
        None
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
