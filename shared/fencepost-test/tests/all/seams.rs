//! Faults of one's own, at the seam before the engine.

use crate::counter::{Failed, TABLE, add, held, put};
use fencepost_test::{Answer, Applied, Dynamo, Fault, Network, Rates, Request, Seam, Sent, Wire, error};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

fn scene(seam: impl Seam + 'static) -> Dynamo {
    let db = Dynamo::with_seam(1, Rates::default(), seam);
    db.create_table(TABLE, "id");
    put(&db, "a");
    db
}

/// Every second write meets one in another Region.
struct OtherRegion(AtomicUsize);

impl Seam for OtherRegion {
    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        if self.0.fetch_add(1, SeqCst) % 2 == 1 {
            return error(400, "ReplicatedWriteConflictException");
        }
        network.engine.execute(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_seam_answers_in_place_of_the_engine() {
    let db = scene(OtherRegion(AtomicUsize::new(0)));
    let client = db.client_without_retries();
    add(&client, "a").await.expect("nobody is in the way");
    let conflict = Failed::With("ReplicatedWriteConflictException".to_owned());
    assert_eq!(add(&client, "a").await, Err(conflict));
    assert_eq!((held(&db, "a"), db.log().executed()), (1, 1));
}

/// Adds ten instead of one, loses the answers to client 7 and undoes each applied write.
struct Meddler;

impl Seam for Meddler {
    fn leaves(&self, _: &Network, request: &mut Request) {
        request.body["ExpressionAttributeValues"][":one"] = json!({"N": "10"});
    }

    fn fault(&self, _: &Network, request: &Request) -> Option<Fault> {
        (request.op == 7).then_some(Fault::AnswerLost)
    }

    fn applied(&self, network: &Network, applied: &Applied) {
        let row = applied.left_in(TABLE, "a").expect("it was written");
        assert_eq!(row["n"]["N"], "10");
        network.engine.raw("PutItem", &json!({"TableName": TABLE, "Item": {"id": {"S": "a"}, "n": {"N": "0"}}}));
    }

    fn lost(&self, _: &Request) -> Option<Answer> {
        Some(error(400, "ThrottlingException"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_seam_changes_requests_decides_their_fate_and_what_is_heard_of_a_lost_answer() {
    let db = scene(Meddler);
    let wire: Wire = db.wire();
    add(&wire.client(), "a").await.expect("an answer");
    assert_eq!(held(&db, "a"), 0, "undone");
    wire.works_on(7);
    assert_eq!(add(&wire.client(), "a").await, Err(Failed::With("ThrottlingException".to_owned())));
    let ops: Vec<_> = db.network().applied().iter().map(|applied| applied.op).collect();
    assert_eq!((ops, db.log().executed()), (vec![0, 7], 2));
}

/// Notes each line of the log as it grows.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<String>>>);

impl Seam for Watcher {
    fn logged(&self, _: &Network, number: usize, sent: &Sent) {
        self.0.lock().expect("no panic").push(format!("{number}: {sent}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_seam_sees_the_log_grow() {
    let watcher = Watcher::default();
    let db = scene(watcher.clone());
    db.lose_answer().once();
    add(&db.client(), "a").await.expect("the second send is answered");
    db.settle().await;
    let (seen, log) = (watcher.0.lock().expect("no panic").clone(), db.log());
    assert_eq!(seen.len(), 6, "two left, arrived and were heard of: {seen:#?}");
    for (number, sent) in log.iter().enumerate() {
        assert_eq!(seen[number * 3 + 2], format!("{number}: {sent}"));
    }
    assert!(seen[0].ends_with("; nothing heard (its answer was lost)"), "{}", seen[0]);
}
