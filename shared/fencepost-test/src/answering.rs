//! Clients that the test answers.

use crate::connection::{body_of, client_over, operation_of, response};
use crate::engine::{Engine, is_read};
use crate::garbling::Garbling;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// The answer of a test to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It is answered at once, with this status and body.
    Now(u16, String),
    /// It is given to the engine after half of this time, and answered after the other half.
    After(Duration),
    /// It is given to the engine. This form comes back in place of the answer, with its details drawn from the number.
    Garbled(Garbling, u64),
    /// No answer comes.
    Never,
}

impl From<(u16, String)> for Reply {
    fn from((status, body): (u16, String)) -> Self {
        Reply::Now(status, body)
    }
}

/// A client that the test answers. It learns how many writes came before, the operation and its body.
///
/// Use it where the test must decide each answer itself. For a fault among real answers, plan it on a
/// [`Dynamo`](crate::Dynamo).
pub fn client_answered_by<R: Into<Reply> + 'static>(
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
            Reply::Garbled(form, seed) => {
                let (status, body) = self.engine.answer(&operation, &body);
                HttpConnectorFuture::ready(form.in_place_of(status, &body, seed))
            }
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
