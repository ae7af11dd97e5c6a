//! How long a transaction takes, and which rows it holds meanwhile.

use crate::answers::{cancelled_by_conflict, error};
use crate::connection::{Answer, Request, TRANSACTION};
use crate::engine::Step;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// What each action of a transaction adds to its time.
const EACH_ACTION: Duration = Duration::from_micros(340);

/// The time of transactions, the rows that those in flight hold, and until when.
#[derive(Debug, Default)]
pub struct Holds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    time: Duration,
    /// By table and key: the end and the token of the transaction.
    rows: BTreeMap<(String, String), (Instant, String)>,
}

fn place(step: &Step) -> (String, String) {
    (step.table.clone(), step.key.to_string())
}

impl Holds {
    /// From now on, each transaction takes this time and [`EACH_ACTION`]; none if zero.
    pub fn set(&self, time: Duration) {
        self.0.lock().expect("no panic while setting").time = time;
    }

    /// How long a request takes from its arrival to its answer.
    pub fn time_of(&self, request: &Request) -> Duration {
        let time = self.0.lock().expect("no panic while reading").time;
        if request.operation != TRANSACTION || time.is_zero() {
            return Duration::ZERO;
        }
        let actions = request.body["TransactItems"].as_array().map_or(0, Vec::len);
        time + EACH_ACTION * u32::try_from(actions).unwrap_or(100)
    }

    /// The answer to a request that meets a transaction in flight.
    ///
    /// [Transaction conflict handling](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling)
    pub fn refuse(&self, request: &Request, steps: &[Step]) -> Option<Answer> {
        let mut state = self.0.lock().expect("no panic while reading");
        let now = Instant::now();
        state.rows.retain(|_, (end, _)| *end > now);
        let holders: Vec<_> = steps.iter().map(|step| state.rows.get(&place(step)).map(|(_, token)| token)).collect();
        if holders.iter().flatten().any(|token| request.token() == Some(token.as_str())) {
            return Some(error(400, "TransactionInProgressException"));
        }
        let met: Vec<_> = holders.iter().map(Option::is_some).collect();
        if !met.contains(&true) {
            return None;
        }
        match request.operation.as_str() {
            TRANSACTION | "TransactGetItems" => Some(cancelled_by_conflict(&met)),
            "PutItem" | "UpdateItem" | "DeleteItem" => Some(error(400, "TransactionConflictException")),
            _ => None,
        }
    }

    /// Notes that a transaction was begun.
    pub fn hold(&self, request: &Request, steps: &[Step]) {
        let time = self.time_of(request);
        if !time.is_zero() {
            let held = (Instant::now() + time, request.token().unwrap_or_default().to_owned());
            let mut state = self.0.lock().expect("no panic while noting");
            state.rows.extend(steps.iter().map(|step| (place(step), held.clone())));
        }
    }
}
