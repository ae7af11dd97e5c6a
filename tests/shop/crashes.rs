//! The function dies at one of its requests, each in turn, and the same event comes again.

use super::exactly_once::Deed;
use super::world::{Shop, TABLES};
use crate::harness::clients::{Reply, client_whose};
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
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

/// A client that is answered so often. With the next request the function is at its end.
fn dying_client(
    engine: &Engine,
    (after, last): (usize, Last),
    dead: &Arc<Notify>,
    under_way: &Arc<Mutex<Option<Message>>>,
) -> Client {
    let (requests, dead, under_way) = (AtomicUsize::new(0), dead.clone(), under_way.clone());
    client_whose(engine, move |engine, _, operation, body| {
        if requests.fetch_add(1, SeqCst) < after {
            return Reply::from(engine.answer(operation, body));
        }
        match last {
            Last::NeverArrives => {}
            Last::Arrives => drop(engine.answer(operation, body)),
            Last::ArrivesAfterTheRepeat => {
                *under_way.lock().expect("no panic") = Some((operation.to_owned(), body.to_vec()));
            }
        }
        dead.notify_one();
        Reply::Never
    })
}

/// Whether it died at the request after so many.
async fn dies(deed: Deed, after: usize, last: Last) -> bool {
    let engine = Engine::with_tables(TABLES);
    let event = deed.prepare(&engine).await;
    let (dead, under_way) = (Arc::<Notify>::default(), Arc::<Mutex<Option<Message>>>::default());
    let dying = dying_client(&engine, (after, last), &dead, &under_way);
    let dying = Shop::on(&engine).reached_by(&dying);
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
