//! Clients with requests that meet faults chosen by the test.

use super::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

pub use fencepost_test::{Reply, client_answered_by as client_whose};

/// An error of the service with only its name, under this status.
pub fn error(status: u16, code: &str) -> (u16, String) {
    (status, fencepost_test::error(status, code).body.to_string())
}

/// An answer that leaves the outcome of the request open.
pub fn lost() -> (u16, String) {
    error(500, "InternalServerError")
}

/// This cancellation, but its step with this index met another transaction.
pub fn step_in_conflict(answer: &str, step: usize) -> String {
    let mut cancelled: Value = serde_json::from_str(answer).expect("JSON");
    let reasons = cancelled["CancellationReasons"].as_array_mut().expect("one reason for each step");
    reasons[step] = json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"});
    cancelled.to_string()
}

/// A client whose first write fares like this. The engine answers all its other requests.
pub fn client_whose_first_write(
    engine: &Engine,
    fares: impl Fn(&Engine, &str, &[u8]) -> (u16, String) + Send + Sync + 'static,
) -> Client {
    client_whose(engine, move |engine, writes, operation, body| {
        if is_read(operation) || writes > 0 { engine.answer(operation, body) } else { fares(engine, operation, body) }
    })
}

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// It is answered after this many milliseconds.
    Answered(u64),
    /// It is applied. Its answer is lost.
    AnswerLost,
    /// It never arrives.
    Dropped,
    /// It is not applied, because a transaction holds the row.
    InTransaction,
    /// It is not applied, because it is not allowed.
    Denied,
}

/// A client whose requests take the way chosen by the test, which gets the number of requests before each.
pub fn client_that(engine: &Engine, way: impl Fn(usize) -> Way + Send + Sync + 'static) -> Client {
    let requests = AtomicUsize::new(0);
    client_whose(engine, move |engine, _, operation, body| match way(requests.fetch_add(1, SeqCst)) {
        Way::Answered(millis) => Reply::After(Duration::from_millis(millis)),
        Way::AnswerLost => {
            engine.answer(operation, body);
            Reply::Never
        }
        Way::Dropped => Reply::Never,
        Way::InTransaction => error(400, "TransactionConflictException").into(),
        Way::Denied => error(400, "AccessDeniedException").into(),
    })
}

/// Which requests get no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Silent {
    Always,
    ForWrites,
}

/// A client that gets no answer to these requests. They are not applied.
pub fn client_without_answers(engine: &Engine, silent: Silent) -> Client {
    client_whose(engine, move |engine, _, operation, body| {
        let is_silent = silent == Silent::Always || operation != "GetItem";
        if is_silent { Reply::Never } else { engine.answer(operation, body).into() }
    })
}
