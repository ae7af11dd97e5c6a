//! Which rows a transaction in flight holds.

use crate::answers::{cancelled_by_conflict, error};
use crate::connection::{Answer, Request, TRANSACTION};
use crate::engine::Step;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// The rows that transactions in flight hold, and until when.
#[derive(Debug, Default)]
pub struct Holds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    overlap: Duration,
    /// By table and key: the end and the token of the transaction.
    rows: BTreeMap<(String, String), (Instant, String)>,
}

fn place(step: &Step) -> (String, String) {
    (step.table.clone(), step.key.to_string())
}

impl Holds {
    /// From now on, each transaction holds its rows for so long.
    pub fn set(&self, overlap: Duration) {
        self.0.lock().expect("no panic while setting").overlap = overlap;
    }

    /// How long each transaction holds its rows.
    pub fn overlap(&self) -> Duration {
        self.0.lock().expect("no panic while reading").overlap
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
        let mut state = self.0.lock().expect("no panic while noting");
        if state.overlap > Duration::ZERO && request.operation == TRANSACTION {
            let held = (Instant::now() + state.overlap, request.token().unwrap_or_default().to_owned());
            state.rows.extend(steps.iter().map(|step| (place(step), held.clone())));
        }
    }
}
