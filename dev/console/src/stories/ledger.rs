//! The counts of a side during a play, and the events of each request.

use super::told::{Teller, millis, read_units, write_units};
use fencepost_test::{Engine, Fault, Network, Outcome, Seam, Sent};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The number of effects in the tables, such as the value of a counter.
pub type Held = fn(&Engine) -> i64;

/// When an effect counts as applied twice.
#[derive(Clone, Copy, Debug)]
pub enum Twice {
    /// Each call with more than one effect.
    PerCall,
    /// Each effect beyond the first, because there can be one in all.
    InAll,
}

/// The counters of one side, with the known facts of its requests. It stands between the network and the engine, where
/// it sees each request leave and arrive, and each answer come back.
#[derive(Clone)]
pub struct Ledger {
    teller: Teller,
    held: Held,
    twice: Twice,
    state: Arc<Mutex<State>>,
}

/// The counters of a side at one moment.
#[derive(Clone, Default)]
pub struct Totals(BTreeMap<&'static str, i64>);

impl Totals {
    /// A counter, which is 0 until something was counted.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn to_json(&self) -> Value {
        json!(self.0)
    }
}

/// One send of a request: its call and its body.
type Body = (u64, String);

#[derive(Default)]
struct State {
    counters: Totals,
    /// Whether a counter has changed since the counters were told.
    is_dirty: bool,
    /// The number of calls so far.
    calls: u64,
    /// The current call of each client.
    call_of_client: BTreeMap<u64, u64>,
    requests: Vec<Noted>,
    /// The writes sent, and whether one with this body was applied.
    writes: BTreeMap<Body, bool>,
    /// The effects of each call.
    effects: BTreeMap<u64, i64>,
}

/// The events told of a request.
struct Noted {
    body: Body,
    arrivals: usize,
    /// How it was answered where it arrived last.
    answer: String,
}

impl Ledger {
    pub fn new(teller: Teller, held: Held, twice: Twice) -> Self {
        Ledger { teller, held, twice, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while counting")
    }

    pub fn teller(&self) -> &Teller {
        &self.teller
    }

    /// Adds to a counter.
    pub fn count(&self, name: &'static str, by: i64) {
        self.state().add(name, by);
    }

    /// A client begins a call. Gives its number.
    pub fn begin_call(&self, client: usize) -> u64 {
        let mut state = self.state();
        state.calls += 1;
        let call = state.calls;
        state.call_of_client.insert(client as u64, call);
        call
    }

    /// Tells the counters if one has changed.
    pub fn tell_counters(&self) {
        let mut state = self.state();
        if std::mem::take(&mut state.is_dirty) {
            self.teller.moment(None, "counters", json!({ "values": state.counters.to_json() }));
        }
    }

    /// The counters, with the present contents of the tables.
    pub fn totals(&self, engine: &Engine) -> Totals {
        let mut state = self.state();
        self.measure(&mut state, engine, None);
        state.counters.clone()
    }

    /// Counts the present effects. Each new one is an effect of this call.
    fn measure(&self, state: &mut State, engine: &Engine, call: Option<u64>) {
        let held = (self.held)(engine);
        let new = held - state.counters.get("held");
        state.add("removed", (-new).max(0));
        if new != 0 {
            state.add("held", new);
            *state.effects.entry(call.unwrap_or_default()).or_default() += new;
        }
        let twice = match self.twice {
            Twice::PerCall => state.effects.values().filter(|effects| **effects > 1).count().try_into().unwrap_or(0),
            Twice::InAll => (held - 1).max(0),
        };
        state.add("appliedTwice", twice - state.counters.get("appliedTwice"));
    }

    fn left(&self, state: &mut State, number: usize, sent: &Sent) {
        let client = sent.request.op;
        let call = state.call_of_client.get(&client).copied().unwrap_or(0);
        let body = (call, sent.request.body.to_string());
        let is_write = !sent.is_read();
        let resend = state.writes.contains_key(&body);
        if is_write {
            state.writes.entry(body.clone()).or_default();
        }
        state.requests.push(Noted { body, arrivals: 0, answer: String::new() });
        state.add("requests", 1);
        state.add("resends", i64::from(resend));
        let kind = match sent.operation() {
            "TransactWriteItems" => "transaction",
            _ if is_write => "write",
            _ => "read",
        };
        let told = json!({ "request": number, "is": kind, "resend": resend, "text": text_of(sent) });
        self.tell(sent, "sent", told);
        if let Some(Fault::Frozen(time)) = sent.fault {
            let until = self.teller.now() + millis(time);
            let text = format!("its process stands still for {} s", time.as_secs_f64());
            self.tell(sent, "paused", json!({ "until": until, "text": text }));
        }
    }

    fn arrived(&self, state: &mut State, engine: &Engine, number: usize, sent: &Sent) {
        let Some((_, outcome)) = sent.arrivals.last() else { return };
        if sent.is_read() {
            state.add("readUnits", read_units(engine, sent));
        } else {
            state.add("writeUnits", write_units(engine, sent));
            self.measure(state, engine, Some(state.requests[number].body.0));
        }
        let (word, mut text) = in_words(outcome);
        state.add("conflicts", i64::from(word == "conflict"));
        if let Some(was_applied) = state.writes.get_mut(&state.requests[number].body) {
            if word == "conflict" && *was_applied {
                "refused by its own first send, which was applied".clone_into(&mut text);
            }
            *was_applied |= *outcome == Outcome::Done;
        }
        state.requests[number].answer.clone_from(&text);
        self.tell(sent, "arrived", json!({ "request": number, "outcome": word, "text": text }));
    }

    fn heard(&self, state: &mut State, number: usize, sent: &Sent) {
        let Some((_, outcome)) = &sent.heard else { return };
        let (word, mut text) = in_words(outcome);
        state.add("lostAnswers", i64::from(word == "lost"));
        if word == "conflict" {
            text.clone_from(&state.requests[number].answer);
        }
        self.tell(sent, "heard", json!({ "request": number, "outcome": word, "text": text }));
    }

    fn tell(&self, sent: &Sent, kind: &str, members: Value) {
        let client = usize::try_from(sent.request.op).ok();
        self.teller.moment(client, kind, members);
    }
}

impl State {
    fn add(&mut self, name: &'static str, by: i64) {
        if by != 0 {
            *self.counters.0.entry(name).or_default() += by;
            self.is_dirty = true;
        }
    }
}

impl Seam for Ledger {
    fn logged(&self, network: &Network, number: usize, sent: &Sent) {
        let mut state = self.state();
        if number == state.requests.len() {
            self.left(&mut state, number, sent);
        } else if sent.arrivals.len() > state.requests[number].arrivals {
            state.requests[number].arrivals += 1;
            self.arrived(&mut state, &network.engine, number, sent);
        } else {
            self.heard(&mut state, number, sent);
        }
    }
}

/// A request in words: its operation, its tables and the ids of its rows.
fn text_of(sent: &Sent) -> String {
    let rows: Vec<_> = sent.steps.iter().map(|step| format!("{} {}", step.table, step.id)).collect();
    format!("{} {}", sent.operation(), rows.join(", "))
}

const FAILED: &str = "ConditionalCheckFailedException";

fn in_the_way(code: &str) -> String {
    let why = if code == FAILED {
        "its condition does not hold"
    } else {
        "a condition does not hold, or it met a transaction"
    };
    format!("refused: {why}")
}

/// How a request ended, in a word for the page and in words for its visitor.
fn in_words(outcome: &Outcome) -> (&'static str, String) {
    match outcome {
        Outcome::Done => ("done", String::new()),
        Outcome::Reset => ("lost", "the connection broke, so its client knows nothing".to_owned()),
        Outcome::Error(_, code) => {
            let lost_race = [FAILED, "TransactionCanceledException", "TransactionConflictException"];
            if lost_race.contains(&code.as_str()) { ("conflict", in_the_way(code)) } else { ("error", code.clone()) }
        }
        _ => ("error", outcome.to_string()),
    }
}
