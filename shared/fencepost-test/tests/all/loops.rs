//! The usual loop and `fencepost::Table`, side by side, where 5 % of the answers are lost.

use crate::counter::{Failed, TABLE, add_at, held, put, read};
use aws_sdk_dynamodb::Client;
use fencepost::{Clock, Record, Rng, Store, Table, UpdateError};
use fencepost_test::{Changes, Dynamo, Planned, for_each_seed};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Counter {
    n: u64,
}

const ID: &str = "a";

fn lossy(db: &Dynamo) -> Planned {
    db.lose_answer().of("UpdateItem").with_probability(0.05)
}

/// Reads, writes at the version, and begins again when the condition fails.
async fn increment(client: &Client) -> Result<(), ()> {
    loop {
        let version = read(client, ID).await.map_err(drop)?;
        match add_at(client, ID, version).await {
            Ok(()) => return Ok(()),
            Err((Failed::With(code), _)) if code == "ConditionalCheckFailedException" => {}
            Err(_) => return Err(()),
        }
    }
}

async fn increment_with(counters: &Table<Counter>) -> Result<(), ()> {
    let added: Result<_, UpdateError> =
        counters.update_with_retry(ID, |counter| Ok(Some(Counter { n: counter.n + 1 }))).await;
    match added {
        Ok(_) => Ok(()),
        Err(UpdateError::Failed(failure)) if failure.is_outcome_unknown() => Err(()),
        Err(other) => panic!("{other}"),
    }
}

fn counters(db: &Dynamo) -> Table<Counter> {
    let (clock, chance) = (db.clone(), db.clone());
    let store = Store::new(&db.client()).with_clock(Clock::new(move || clock.now()));
    store.with_rng(Rng::new(move || chance.random())).table(TABLE)
}

/// Each writer adds one ten times, all at once.
async fn write<F: Future<Output = Result<(), ()>>>(changes: &Changes, add: impl Fn() -> F) {
    let writer = || async {
        for _ in 0..10 {
            match add().await {
                Ok(()) => changes.acknowledged(ID, 1),
                Err(()) => changes.unknown(ID, 1),
            }
        }
    };
    tokio::join!(writer(), writer(), writer(), writer());
}

#[test]
fn the_usual_loop_adds_twice_when_answers_are_lost() {
    let doubled = Cell::new(0);
    for_each_seed(20, async |db| {
        db.create_table(TABLE, "id");
        put(&db, ID);
        let (client, changes) = (db.client(), Changes::default());
        let lost = lossy(&db);
        Box::pin(write(&changes, || increment(&client))).await;
        db.settle().await;
        if let Err(twice) = changes.check(&db.log(), |id| held(&db, id)) {
            assert!(lost.struck() > 0, "{twice}");
            doubled.set(doubled.get() + 1);
        }
    });
    assert!(doubled.get() > 0, "no seed shows it");
}

#[test]
fn a_table_adds_nothing_twice_when_answers_are_lost() {
    let lost = Cell::new(0);
    for_each_seed(20, async |db| {
        db.create_table(TABLE, "id");
        let (counters, changes) = (counters(&db), Changes::default());
        counters.create(ID, &Counter { n: 0 }).await.expect("a free key");
        let struck = lossy(&db);
        Box::pin(write(&changes, || increment_with(&counters))).await;
        db.settle().await;
        changes.assert_nothing_applied_twice(&db.log(), |id| held(&db, id));
        lost.set(lost.get() + struck.struck());
    });
    assert!(lost.get() > 0, "no answer was lost");
}

#[tokio::test(start_paused = true)]
async fn a_table_takes_a_race_that_another_writer_took_back_for_a_race() {
    let db = Dynamo::with_seed(1);
    db.create_table(TABLE, "id");
    let counters = counters(&db);
    counters.create(ID, &Counter { n: 0 }).await.expect("a free key");
    let conflict = db.conflict_next().of("UpdateItem").once();
    increment_with(&counters).await.expect("the second attempt is applied");
    assert_eq!((held(&db, ID), conflict.struck()), (1, 1));
}
