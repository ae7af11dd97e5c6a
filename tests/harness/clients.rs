//! Clients whose requests fare as the test says.

use super::engine::{Engine, body_of, client_over, is_read, operation_of, response};
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// What becomes of a request.
pub enum Reply {
    /// It is answered at once, with this status and body.
    Now(u16, String),
    /// It is given to the engine after half of this time, and answered after the other half.
    After(Duration),
    /// Nobody hears an answer.
    Never,
}

impl From<(u16, String)> for Reply {
    fn from((status, body): (u16, String)) -> Self {
        Reply::Now(status, body)
    }
}

/// An error of the service that says nothing but its name, and is answered with this status.
pub fn error(status: u16, code: &str) -> (u16, String) {
    let body = json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "on purpose"});
    (status, body.to_string())
}

/// An answer that says nothing of what became of the request.
pub fn lost() -> (u16, String) {
    error(500, "InternalServerError")
}

/// A client whose requests are answered by the test. It learns how many writes came before, the operation and its body.
pub fn client_whose<R: Into<Reply> + 'static>(
    engine: &Engine,
    answer: impl Fn(&Engine, usize, &str, &[u8]) -> R + Send + Sync + 'static,
) -> Client {
    let writes = AtomicUsize::new(0);
    let answer = move |engine: &Engine, operation: &str, body: &[u8]| {
        let before = writes.fetch_add(usize::from(!is_read(operation)), SeqCst);
        answer(engine, before, operation, body).into()
    };
    client_over(Answering { engine: engine.clone(), answer })
}

struct Answering<F> {
    engine: Engine,
    answer: F,
}

impl<F> fmt::Debug for Answering<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answering")
    }
}

impl<F: Fn(&Engine, &str, &[u8]) -> Reply + Send + Sync> HttpConnector for Answering<F> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = (operation_of(&request), body_of(&request));
        match (self.answer)(&self.engine, &operation, &body) {
            Reply::Now(status, body) => HttpConnectorFuture::ready(response(status, body)),
            Reply::Never => HttpConnectorFuture::new(std::future::pending()),
            Reply::After(time) => {
                let engine = self.engine.clone();
                HttpConnectorFuture::new(async move {
                    tokio::time::sleep(time / 2).await;
                    let (status, body) = engine.answer(&operation, &body);
                    tokio::time::sleep(time / 2).await;
                    response(status, body)
                })
            }
        }
    }
}

/// A cancellation in which the second step met another transaction.
pub fn second_step_in_conflict(answer: &str) -> String {
    let mut cancelled: Value = serde_json::from_str(answer).expect("JSON");
    let reasons = cancelled["CancellationReasons"].as_array_mut().expect("one reason for each step");
    reasons[1] = json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"});
    cancelled.to_string()
}

/// What becomes of a request on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// It is answered after this many milliseconds.
    Answered(u64),
    /// It is applied, and nobody hears its answer.
    AnswerLost,
    /// It never arrives.
    Dropped,
    /// It is not applied, because a transaction holds the row.
    InTransaction,
    /// It is not applied, because it is not allowed.
    Denied,
}

/// A client each of whose requests goes the way that the test says. It learns how many requests came before.
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
    ForWritesThatItApplies,
}

/// A client that hears nothing of these requests. Those that it hears nothing of are not applied, unless the name says so.
pub fn client_without_answers(engine: &Engine, silent: Silent) -> Client {
    client_whose(engine, move |engine, _, operation, body| {
        let is_silent = silent == Silent::Always || operation != "GetItem";
        if is_silent && silent != Silent::ForWritesThatItApplies {
            return Reply::Never;
        }
        let answer = engine.answer(operation, body);
        if is_silent && answer.0 == 200 { Reply::Never } else { answer.into() }
    })
}

/// An answer to a write: its status, its code, and whether the write was applied before.
pub type Line = (u16, &'static str, bool);

/// A client whose writes are answered by this script, and by the engine when it has ended.
pub fn client_by_script(engine: &Engine, script: &[Line]) -> Client {
    let lines = Mutex::new(script.iter().copied().collect::<VecDeque<_>>());
    client_whose(engine, move |engine, _, operation, body| {
        let line = if is_read(operation) { None } else { lines.lock().expect("no panic").pop_front() };
        match line {
            None => engine.answer(operation, body),
            Some((status, code, applied)) => {
                if applied {
                    engine.answer(operation, body);
                }
                error(status, code)
            }
        }
    })
}
