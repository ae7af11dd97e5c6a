//! The rules that a test can break on purpose, as a seam before the engine.

use super::breaking;
use super::forgetting;
use fencepost_test::{Answer, Applied, Engine, Fault, Network, Rates, Request, Seam, Step, Touched, error, is_read};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const TRANSACTION: &str = "TransactWriteItems";

/// How a history ends in which it was not so.
pub const ONE_PAYLOAD: &str = "one ClientRequestToken must never come with two payloads";

/// A rule broken on purpose: the tests that do show that the histories notice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Broken {
    Nothing,
    /// Refusals show nobody's write ids: there is nothing to judge by.
    NoJudge,
    /// Refusals show the last writer's id alone.
    LastWriterOnly,
    /// A deleted row is gone at once: no tombstone.
    RowsDeleted,
    /// A lost answer is forgotten when the resend is throttled.
    ThrottlingClears,
    /// The steps of a transaction leave no write id behind.
    NoIdInTransactions,
    /// Nothing is refused because of a lower fencing token.
    NoFence,
    /// A transaction does not ask whether the lease that it requires is held.
    NotRequired,
    /// The row of a lease is gone as soon as it is released: its tokens begin anew.
    LeasesDeleted,
    /// A renewal does not ask how often the lease was renewed.
    RenewalsUnchecked,
    /// A renewal does not ask whether the lease is held.
    HolderUnchecked,
    /// Cancellations do not show what the request itself left in the items: a step whose own condition failed decides
    /// before anybody asks whether the transaction landed.
    GuardBeforeJudge,
    /// All transactions of one operation have the token of its first.
    TokenReused,
    /// An add does not ask whether its row remembers it.
    AddOfAnyId,
    /// The window of an add has no upper bound.
    AddNeverLate,
    /// The window of an add has no lower bound.
    AddNeverEarly,
    /// Rows forget each id after so many commits.
    Forgets {
        after: u64,
    },
    /// A burn does not ask whether the row remembers the write that it burns.
    BurnOfAnyId,
    /// A burn stores no id.
    BurnLeavesNothing,
    /// A burn has no window.
    BurnAtAnyVersion,
    /// A burn stores the id as an applied write does.
    BurnAsAdd,
    /// Burned writes are judged as applied ones.
    BurnsIgnored,
    /// A write has another id on every send but the first.
    FreshIds,
    /// The create on a tombstone forgets what the row remembered.
    RevivedWithoutMemory,
    /// No condition asks which row it is.
    AnyIncarnation,
    /// Puts have no condition.
    NoCondition,
    /// The conditions of puts ask whether values are equal where they should ask for their order.
    OnlyEqual,
}

/// A network whose faults happen this often, with a rule broken.
pub fn network_that_breaks(engine: &Engine, rates: Rates, broken: Broken, rng: fastrand::Rng) -> Arc<Network> {
    let (payloads, first_tokens, ids) = Default::default();
    Network::through(engine, rates, rng, Breaking { broken, payloads, first_tokens, ids })
}

/// Breaks a rule.
struct Breaking {
    broken: Broken,
    /// The payload that each token came with.
    payloads: Mutex<BTreeMap<String, Value>>,
    /// The first token of each operation.
    first_tokens: Mutex<BTreeMap<u64, String>>,
    /// The ids that were sent.
    ids: Mutex<BTreeSet<String>>,
}

impl Breaking {
    /// A new decision takes a new token: with that of an earlier one it might be answered as applied though it never
    /// was.
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

    /// The rows that a write will touch, where a broken rule makes them forget.
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
        breaking::without_rule(&mut request.body, self.broken);
        forgetting::without_rule(&mut request.body, self.broken);
        if request.operation != TRANSACTION {
            match self.broken {
                Broken::NoCondition => breaking::without_condition(&mut request.body),
                Broken::OnlyEqual => breaking::with_equality(&mut request.body),
                Broken::FreshIds => forgetting::with_fresh_id(&mut request.body, network, |id| self.was_sent(id)),
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
            breaking::without_ids(&mut request.body);
        }
    }

    /// An eventually consistent read may say anything: none is ever answered.
    fn fault(&self, _: &Network, Request { operation, body, .. }: &Request) -> Option<Fault> {
        may_be_stale(operation, body).then_some(Fault::Dropped)
    }

    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        let before = self.before(&network.engine, request);
        let mut answer = network.engine.execute(request);
        if answer.is_success() {
            for (step, before) in &before {
                forgetting::forget(&network.engine, self.broken, step, before);
            }
        }
        match self.broken {
            Broken::NoJudge => breaking::without_memory(&mut answer.body, false),
            Broken::LastWriterOnly => breaking::without_memory(&mut answer.body, true),
            Broken::BurnsIgnored => forgetting::without_burns(&mut answer.body),
            Broken::GuardBeforeJudge => breaking::without_own_traces(&mut answer.body, &request.body),
            _ => {}
        }
        answer
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

    /// What the loop would believe had the throttling of a resend wiped out the lost answer.
    fn lost(&self, _: &Request) -> Option<Answer> {
        (self.broken == Broken::ThrottlingClears).then(|| error(400, "ThrottlingException"))
    }
}

/// Whether it was a burn: it marks a write as never to be applied, and changes nothing else.
pub fn is_burn(applied: &Applied) -> bool {
    let [Touched { step, row }] = &applied.rows[..] else { return false };
    let version = row["_version"]["N"].as_str().and_then(|version| version.parse::<i64>().ok()).unwrap_or_default();
    let burned = |trace: &Value| trace["N"].as_str() == Some(format!("-{}", version - 1).as_str());
    let is_marked = row["_writes"]["M"].as_object().is_some_and(|memory| memory.values().any(burned));
    is_marked || (step.action == "PutItem" && version == 1 && row.get("_purgeAt").is_some())
}

/// Whether a request is a read that may be answered with an old state.
pub fn may_be_stale(operation: &str, body: &Value) -> bool {
    let consistent = |read: &Value| read["ConsistentRead"] == true;
    match operation {
        "BatchGetItem" => !body["RequestItems"].as_object().expect("tables").values().all(consistent),
        "TransactGetItems" => false,
        _ => is_read(operation) && !consistent(body),
    }
}
