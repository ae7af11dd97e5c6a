//! The faults of the test kit between the real SDK and the engine, and the rules of Fencepost that a test can break
//! there.
//!
//! A seed replays exactly: it decides all chance, under tokio's paused clock.

use super::engine::store;
use aws_sdk_dynamodb::Client;
use fencepost::Store;
use fencepost_test::{Answer, Engine, Fault, Outcome, Request, Seam, Sent, Step, error, is_read};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

mod broken;

pub use broken::{Broken, drop_unused};
pub use fencepost_test::{Applied, Freezing, Network, Rates, Touched, Wire};

/// A store over this client, under this clock, with the random numbers of the network.
pub fn store_on(
    network: &Arc<Network>,
    client: &Client,
    now: impl Fn() -> SystemTime + Send + Sync + 'static,
) -> Store {
    let chance = network.clone();
    store(client, now, move || chance.rng.lock().expect("no panic while drawing").u64(..))
}

/// The table that several Regions write, with strong consistency.
pub const REGIONAL: &str = "PlayRegional";
const CONFLICT: &str = "ReplicatedWriteConflictException";
const TRANSACTION: &str = "TransactWriteItems";

/// How a history ends in which it was not so.
pub const ONE_PAYLOAD: &str = "one ClientRequestToken must never come with two payloads";

thread_local! {
    /// A history has its thread for itself.
    static LOST_ANSWERS: Cell<usize> = const { Cell::new(0) };
}

/// The number of writes that were applied on this thread and not acknowledged, since the last call.
pub fn take_lost_answers() -> usize {
    LOST_ANSWERS.take()
}

/// A network with these rates of faults and a broken rule.
pub fn network_that_breaks(engine: &Engine, rates: Rates, broken: Broken, rng: fastrand::Rng) -> Arc<Network> {
    let (payloads, first_tokens, ids) = Default::default();
    Network::through(engine, rates, rng, Breaking { broken, payloads, first_tokens, ids })
}

/// Breaks a rule.
struct Breaking {
    broken: Broken,
    /// The payload of each token.
    payloads: Mutex<BTreeMap<String, Value>>,
    /// The first token of each operation.
    first_tokens: Mutex<BTreeMap<u64, String>>,
    ids: Mutex<BTreeSet<String>>,
}

impl Breaking {
    /// A new decision takes a new token. With the token of an earlier one, it might be answered as applied without
    /// having been applied.
    fn check_payload(&self, Request { op, body, .. }: &Request) {
        let mut payload = body.clone();
        let token = payload["ClientRequestToken"].take().as_str().expect("a transaction has a token").to_owned();
        let earlier = self.payloads.lock().expect("no panic while noting").insert(token.clone(), payload.clone());
        let same = earlier.as_ref().is_none_or(|earlier| *earlier == payload);
        assert!(same, "{ONE_PAYLOAD}: {token} of operation {op} came with {earlier:?} and then with {payload}");
    }

    fn first_token_of(&self, op: u64, token: &Value) -> String {
        let token = token.as_str().expect("a transaction has a token");
        let mut first = self.first_tokens.lock().expect("no panic while noting");
        first.entry(op).or_insert_with(|| token.to_owned()).clone()
    }

    /// Notes a write id, and says whether it was sent before.
    fn was_sent(&self, id: &str) -> bool {
        !self.ids.lock().expect("no panic while noting").insert(id.to_owned())
    }

    /// The rows that a write will touch, as they are before it, if a broken rule makes rows forget.
    fn before(&self, engine: &Engine, Request { operation, body, .. }: &Request) -> Vec<(Step, Value)> {
        if is_read(operation) || !matches!(self.broken, Broken::Forgets { .. } | Broken::RevivedWithoutMemory) {
            return Vec::new();
        }
        let row = |step: &Step| engine.row_at(&step.table, &step.key);
        engine.steps_of(operation, body).into_iter().map(|step| (step.clone(), row(&step))).collect()
    }
}

impl Seam for Breaking {
    fn leaves(&self, network: &Network, request: &mut Request) {
        broken::leave_out_of_leases(&mut request.body, self.broken);
        broken::leave_out(&mut request.body, self.broken);
        if request.operation != TRANSACTION {
            match self.broken {
                Broken::NoCondition => broken::without_condition(&mut request.body),
                Broken::OnlyEqual => broken::with_equality(&mut request.body),
                Broken::FreshIds => broken::with_fresh_id(&mut request.body, network, |id| self.was_sent(id)),
                _ => {}
            }
            return;
        }
        if self.broken == Broken::TokenReused {
            let first = self.first_token_of(request.op, &request.body["ClientRequestToken"]);
            request.body["ClientRequestToken"] = json!(first);
        }
        self.check_payload(request);
        if self.broken == Broken::NoIdInTransactions {
            broken::without_ids(&mut request.body);
        }
    }

    /// An eventually consistent read may say anything: none is ever answered.
    fn fault(&self, _: &Network, Request { operation, body, .. }: &Request) -> Option<Fault> {
        may_be_stale(operation, body).then_some(Fault::Dropped)
    }

    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        if meets_another_region(network, request) {
            let is_hidden = self.broken == Broken::ConflictHidden;
            return if is_hidden { Answer { status: 200, body: json!({}) } } else { error(400, CONFLICT) };
        }
        let before = self.before(&network.engine, request);
        let mut answer = network.engine.execute(request);
        if answer.is_success() {
            for (step, before) in &before {
                broken::forget(&network.engine, self.broken, step, before);
            }
        }
        match self.broken {
            Broken::NoJudge => broken::without_memory(&mut answer.body, false),
            Broken::LastWriterOnly => broken::without_memory(&mut answer.body, true),
            Broken::BurnsIgnored => broken::without_burns(&mut answer.body),
            Broken::GuardBeforeJudge => broken::without_own_traces(&mut answer.body, &request.body),
            _ => {}
        }
        answer
    }

    fn logged(&self, _: &Network, _: usize, sent: &Sent) {
        let is_lost = sent.fault.is_some_and(loses_the_answer);
        let is_applied = matches!(sent.arrivals.last(), Some((_, Outcome::Done)));
        let is_news = sent.heard.is_none() && sent.arrivals.len() == 1;
        if is_lost && is_applied && is_news && !is_read(&sent.request.operation) {
            LOST_ANSWERS.set(LOST_ANSWERS.get() + 1);
        }
    }

    fn applied(&self, network: &Network, applied: &Applied) {
        for Touched { step, row } in &applied.rows {
            let gone = match self.broken {
                Broken::RowsDeleted => row.get("_purgeAt").is_some(),
                Broken::LeasesDeleted => row.get("token").is_some() && row.get("holder").is_none(),
                _ => false,
            };
            if gone {
                network.engine.raw("DeleteItem", &json!({"TableName": step.table, "Key": step.key}));
            }
        }
    }

    /// The belief of the loop if the throttling of a resend wiped out the lost answer.
    fn lost(&self, _: &Request) -> Option<Answer> {
        (self.broken == Broken::ThrottlingClears).then(|| error(400, "ThrottlingException"))
    }
}

/// Whether this write is refused for now, because another Region writes the same item. One in six is.
fn meets_another_region(network: &Network, Request { operation, body, .. }: &Request) -> bool {
    !is_read(operation) && body["TableName"] == REGIONAL && network.below(6) == 0
}

/// Whether the client gets no acknowledgement of a request that was executed.
fn loses_the_answer(fault: Fault) -> bool {
    let is_silent = matches!(fault, Fault::AnswerLost | Fault::Held | Fault::InProgress);
    is_silent || matches!(fault, Fault::Applied500 | Fault::Garbled | Fault::GarbledAs { .. })
}

/// Whether a request is a read that may get an old state.
fn may_be_stale(operation: &str, body: &Value) -> bool {
    let consistent = |read: &Value| read["ConsistentRead"] == true;
    match operation {
        "BatchGetItem" => !body["RequestItems"].as_object().expect("tables").values().all(consistent),
        "TransactGetItems" => false,
        _ => is_read(operation) && !consistent(body),
    }
}
