//! What the wires of one history share: how often each thing happens, which rule is broken, what was applied.

use crate::harness::engine::{Engine, Step, is_read, store};
use aws_sdk_dynamodb::Client;
use fencepost::Store;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

pub(super) const TRANSACTION: &str = "TransactWriteItems";

/// How a history ends in which it was not so.
pub const ONE_PAYLOAD: &str = "one ClientRequestToken must never come with two payloads";

/// How often each thing happens to a request, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// It never arrives.
    pub dropped: u32,
    /// It is applied, and its answer never arrives.
    pub answer_lost: u32,
    /// It is applied, and answered 500.
    pub applied_500: u32,
    /// It is not applied, and answered 500.
    pub refused_500: u32,
    /// It is held for up to five minutes and then delivered; nobody hears its answer.
    pub held: u32,
    /// After its answer, a second copy of it is delivered.
    pub second_copy: u32,
    /// It is throttled.
    pub throttled: u32,
    /// A transaction in flight refuses it; a transaction's reasons say which of its steps met one.
    pub transaction_conflict: u32,
    /// It is denied.
    pub denied: u32,
    /// At any of its steps, the whole client stands still for up to seven minutes.
    pub frozen: u32,
    /// A transaction is said to be in progress, and is applied a little later.
    pub in_progress: u32,
    /// A transaction that was sent before is said to have come with another payload, and is not applied.
    pub mismatch: u32,
    /// Before a transaction arrives, the tokens of all earlier ones are forgotten.
    pub tokens_forgotten: u32,
    /// Where the engine cancels a transaction, some of its steps show a transaction in flight instead.
    pub mixed_reasons: u32,
    /// A batch of reads comes back without some of its keys.
    pub unprocessed: u32,
}

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

/// A write that the engine applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Which operation of the history sent it.
    pub op: u64,
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
    /// Whether it was a burn: it marks a write as never to be applied, and changes nothing else.
    pub fn is_burn(&self) -> bool {
        let [Touched { step, row }] = &self.rows[..] else { return false };
        let version = row["_version"]["N"].as_str().and_then(|version| version.parse::<i64>().ok()).unwrap_or_default();
        let burned = |trace: &Value| trace["N"].as_str() == Some(format!("-{}", version - 1).as_str());
        let is_marked = row["_writes"]["M"].as_object().is_some_and(|memory| memory.values().any(burned));
        is_marked || (step.action == "PutItem" && version == 1 && row.get("_purgeAt").is_some())
    }

    /// What it left in a row; `None` where it did not write it.
    pub fn left_in(&self, table: &str, id: &str) -> Option<&Value> {
        let written = self.rows.iter().filter(|touched| touched.step.action != "ConditionCheckItem");
        let mut of_row = written.filter(|touched| touched.step.table == table && touched.step.id == id);
        of_row.next().map(|touched| &touched.row)
    }
}

/// What the wires of one history share.
pub struct Network {
    pub engine: Engine,
    pub rates: Rates,
    pub broken: Broken,
    pub applied: Mutex<Vec<Applied>>,
    pub rng: Mutex<fastrand::Rng>,
    /// The payload that each token came with.
    payloads: Mutex<BTreeMap<String, Value>>,
    /// The first token of each operation.
    first_tokens: Mutex<BTreeMap<u64, String>>,
    /// The ids that were sent.
    ids: Mutex<BTreeSet<String>>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Answered,
    Dropped,
    AnswerLost,
    Applied500,
    Refused500,
    Held,
    SecondCopy,
    Throttled,
    TransactionConflict,
    Denied,
    InProgress,
    Mismatch,
    TokensForgotten,
    MixedReasons,
    Unprocessed,
}

impl Network {
    pub fn new(engine: &Engine, rates: Rates, broken: Broken, rng: fastrand::Rng) -> Arc<Self> {
        Arc::new(Network {
            engine: engine.clone(),
            rates,
            broken,
            applied: Mutex::default(),
            rng: Mutex::new(rng),
            payloads: Mutex::default(),
            first_tokens: Mutex::default(),
            ids: Mutex::default(),
        })
    }

    /// A store over this client, under this clock, whose random numbers are those of the network.
    pub fn store(self: &Arc<Self>, client: &Client, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Store {
        let chance = self.clone();
        store(client, now, move || chance.rng.lock().expect("no panic while drawing").u64(..))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.rng.lock().expect("no panic while drawing").u64(0..bound.max(1))
    }

    /// `resent` for a transaction whose token came before.
    pub(super) fn fate(&self, operation: &str, resent: bool) -> Fate {
        let rates = &self.rates;
        let (write, transaction) = (!is_read(operation), operation == TRANSACTION);
        let fates = [
            (rates.dropped, Fate::Dropped),
            (rates.answer_lost, Fate::AnswerLost),
            (rates.applied_500, Fate::Applied500),
            (rates.refused_500, Fate::Refused500),
            (rates.throttled, Fate::Throttled),
            (rates.denied, Fate::Denied),
            (if write { rates.held } else { 0 }, Fate::Held),
            (if write { rates.second_copy } else { 0 }, Fate::SecondCopy),
            (if write { rates.transaction_conflict } else { 0 }, Fate::TransactionConflict),
            (if transaction { rates.in_progress } else { 0 }, Fate::InProgress),
            (if transaction && resent { rates.mismatch } else { 0 }, Fate::Mismatch),
            (if transaction { rates.tokens_forgotten } else { 0 }, Fate::TokensForgotten),
            (if transaction { rates.mixed_reasons } else { 0 }, Fate::MixedReasons),
            (if operation == "BatchGetItem" { rates.unprocessed } else { 0 }, Fate::Unprocessed),
        ];
        let mut drawn = u32::try_from(self.below(1000)).expect("below 1000");
        for (rate, fate) in fates {
            if drawn < rate {
                return fate;
            }
            drawn -= rate;
        }
        Fate::Answered
    }

    /// Some of so many, and one at least.
    pub(super) fn some_of(&self, count: usize) -> Vec<bool> {
        let mut some: Vec<_> = (0..count).map(|_| self.below(2) == 0).collect();
        let one = usize::try_from(self.below(u64::try_from(count).expect("few"))).expect("few");
        if let Some(chosen) = some.get_mut(one) {
            *chosen = true;
        }
        some
    }

    /// Notes a transaction's token, and says whether it came before. A new decision takes a new token: with that of an
    /// earlier one it might be answered as applied though it never was.
    pub(super) fn seen_before(&self, op: u64, request: &Value) -> bool {
        let mut payload = request.clone();
        let token = payload["ClientRequestToken"].take().as_str().expect("a transaction has a token").to_owned();
        let earlier = self.payloads.lock().expect("no panic while noting").insert(token.clone(), payload.clone());
        let same = earlier.as_ref().is_none_or(|earlier| *earlier == payload);
        assert!(same, "{ONE_PAYLOAD}: {token} of operation {op} came with {earlier:?} and then with {payload}");
        earlier.is_some()
    }

    pub(super) fn first_token_of(&self, op: u64, token: &Value) -> String {
        let token = token.as_str().expect("a transaction has a token");
        let mut first = self.first_tokens.lock().expect("no panic while noting");
        first.entry(op).or_insert_with(|| token.to_owned()).clone()
    }

    /// Notes a write id, and says whether it was sent before.
    pub(super) fn was_sent(&self, id: &str) -> bool {
        !self.ids.lock().expect("no panic while noting").insert(id.to_owned())
    }

    pub(super) fn hop(&self) -> Duration {
        Duration::from_micros(1000 + self.below(9000))
    }
}
