//! The function dies at one of its requests, each in turn, and the same event comes again.

use super::exactly_once::Deed;
use super::shop::{Shop, TABLES};
use crate::harness::engine::{Engine, body_of, client_over, operation_of, response};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// What becomes of the request at which the function dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Last {
    NeverArrives,
    Arrives,
    ArrivesAfterTheRepeat,
}

/// An operation and its body.
type Message = (String, Vec<u8>);

/// Takes so many requests; with the next one the function is at its end.
#[derive(Debug)]
struct Dying {
    engine: Engine,
    left: AtomicUsize,
    last: Last,
    dead: Arc<Notify>,
    under_way: Arc<Mutex<Option<Message>>>,
}

impl HttpConnector for Dying {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = (operation_of(&request), body_of(&request));
        if self.left.fetch_sub(1, SeqCst) > 0 {
            let (status, body) = self.engine.answer(&operation, &body);
            return HttpConnectorFuture::ready(response(status, body));
        }
        match self.last {
            Last::NeverArrives => {}
            Last::Arrives => drop(self.engine.answer(&operation, &body)),
            Last::ArrivesAfterTheRepeat => {
                *self.under_way.lock().expect("no panic") = Some((operation, body));
            }
        }
        self.dead.notify_one();
        HttpConnectorFuture::new(std::future::pending())
    }
}

/// Whether it died at the request after so many.
async fn dies(deed: Deed, after: usize, last: Last) -> bool {
    let engine = Engine::with_tables(TABLES);
    let event = deed.prepare(&engine).await;
    let (dead, under_way) = (Arc::<Notify>::default(), Arc::<Mutex<Option<Message>>>::default());
    let (left, under) = (AtomicUsize::new(after), under_way.clone());
    let dying = Dying { engine: engine.clone(), left, last, dead: dead.clone(), under_way: under };
    let dying = Shop::reached_by(&engine, &client_over(dying));
    let mut answers = Vec::new();
    let died = tokio::select! {
        answer = dying.send(&event) => {
            answers.push(answer);
            false
        }
        () = dead.notified() => true,
    };
    answers.push(Shop::on(&engine).send(&event).await);
    let late = under_way.lock().expect("no panic").take();
    if let Some((operation, body)) = late {
        engine.answer(&operation, &body);
    }
    answers.push(Shop::on(&engine).send(&event).await);
    deed.assert_once(&engine, &answers);
    died
}

#[tokio::test]
async fn a_crash_at_any_request_and_the_same_event_again_is_once() {
    for deed in Deed::ALL {
        for last in [Last::NeverArrives, Last::Arrives, Last::ArrivesAfterTheRepeat] {
            let mut after = 0;
            while dies(deed, after, last).await {
                after += 1;
            }
            assert!(after >= 2, "{deed:?} has a request before its write: {after}");
        }
    }
}
