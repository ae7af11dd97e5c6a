//! A table is deleted under its writers. It comes back unchanged, under its name or another one. In between, the
//! requests of callers fail at once. Earlier requests keep their verdict.

use crate::harness::engine::{Engine, failure_of, store};
use crate::harness::restore::rows;
use fencepost::{Failure, FailureKind, Key, Record, Store, Table};
use fencepost_test::{Changes, Dynamo, Rates};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "counterId")]
struct Counter {
    count: i64,
}

const FIRST: &str = "Counters";
const SECOND: &str = "CountersRestored";
const COUNTER: &str = "c-1";

/// The time of a call.
const ALLOWED: Duration = Duration::from_secs(5);

/// Answers get lost, so changes are pending when the table goes.
fn lossy() -> Rates {
    Rates {
        dropped: 40,
        answer_lost: 150,
        applied_500: 100,
        refused_500: 20,
        held: 20,
        second_copy: 50,
        throttled: 50,
        garbled: 60,
        ..Rates::default()
    }
}

fn store_on(db: &Dynamo) -> Store {
    let (now, chance) = (db.clone(), db.clone());
    store(&db.client(), move || now.now(), move || chance.random()).with_time_limit(ALLOWED)
}

/// Deletes a table. Gives its rows.
fn delete(engine: &Engine, table: &str) -> Vec<Value> {
    let had = rows(engine, table);
    engine.raw("DeleteTable", &json!({"TableName": table}));
    had
}

/// Restores these rows to a new table.
fn restore(engine: &Engine, table: &str, had: &[Value]) {
    engine.create_table(table, Counter::PARTITION_KEY);
    for row in had {
        engine.raw("PutItem", &json!({"TableName": table, "Item": row}));
    }
}

/// Counts of the answers to the callers.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    applied: u32,
    unknown: u32,
    gone: u32,
}

/// Counts until this time has passed, always in the table of the current name.
async fn counts(db: Dynamo, name: Arc<Mutex<&'static str>>, changes: Arc<Changes>, time: Duration) -> Tally {
    let (store, key, begun, mut told) = (store_on(&db), Key::from(COUNTER), Instant::now(), Tally::default());
    while begun.elapsed() < time {
        let table: Table<Counter> = store.table(*name.lock().expect("no panic"));
        let add_one = |counter: &Counter| Ok::<_, Infallible>(Some(Counter { count: counter.count + 1 }));
        let failed = match db.network().below(2) {
            0 => failure_of(table.update_with_retry(&key, add_one).await),
            _ => failure_of(table.edit(&key, &Counter::FIELDS.count.add(1, ..)).await),
        };
        match failed {
            None => {
                told.applied += 1;
                changes.acknowledged(COUNTER, 1);
            }
            Some(Failure { kind: FailureKind::OutcomeUnknown { .. }, .. }) => {
                told.unknown += 1;
                changes.unknown(COUNTER, 1);
            }
            Some(Failure { kind: FailureKind::Rejected { .. }, .. }) => told.gone += 1,
            Some(Failure { kind: FailureKind::Unavailable { .. } | FailureKind::Contention { .. }, .. }) => {}
            Some(failure) => panic!("{failure}"),
        }
        sleep(Duration::from_millis(db.network().below(400))).await;
    }
    told
}

/// Three writers count while the table goes and comes back, under this name.
async fn play(seed: u64, comes_back_as: &'static str) -> Tally {
    let db = Dynamo::with_seam(seed, lossy(), ());
    db.create_table(FIRST, Counter::PARTITION_KEY);
    let direct: Table<Counter> = Store::new(&db.engine().client()).table(FIRST);
    direct.create(COUNTER, &Counter { count: 0 }).await.expect("a free key");
    let (name, changes) = (Arc::new(Mutex::new(FIRST)), Arc::new(Changes::default()));
    let mut writers = JoinSet::new();
    for _ in 0..3 {
        writers.spawn(counts(db.clone(), name.clone(), changes.clone(), Duration::from_secs(15)));
    }
    sleep(Duration::from_secs(5)).await;
    let had = delete(db.engine(), FIRST);
    sleep(Duration::from_secs(5)).await;
    restore(db.engine(), comes_back_as, &had);
    *name.lock().expect("no panic") = comes_back_as;
    let told = writers.join_all().await;
    db.settle().await;
    changes.assert_nothing_applied_twice(&db.log(), |id| db.number(comes_back_as, id, "count"));
    told.into_iter().fold(Tally::default(), |total, told| Tally {
        applied: total.applied + told.applied,
        unknown: total.unknown + told.unknown,
        gone: total.gone + told.gone,
    })
}

#[tokio::test(start_paused = true)]
async fn no_change_is_doubled_and_no_verdict_is_false_when_a_table_goes_and_comes_back() {
    for comes_back_as in [FIRST, SECOND] {
        let mut total = Tally::default();
        for seed in 0..2 {
            let told = play(seed, comes_back_as).await;
            assert!(told.applied > 10 && told.gone > 10, "seed {seed}: {told:?}");
            total.unknown += told.unknown;
        }
        assert!(total.unknown > 0, "no change was pending when the table went");
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_gone_is_said_to_be_at_once_and_its_items_are_never_said_to_be_absent() {
    let db = Dynamo::with_seed(1);
    db.create_table(FIRST, Counter::PARTITION_KEY);
    let table: Table<Counter> = store_on(&db).table(FIRST);
    let key = Key::from(COUNTER);
    let at = table.create(&key, &Counter { count: 1 }).await.expect("a free key").at;
    let had = delete(db.engine(), FIRST);
    let begun = Instant::now();
    let is_gone = |failure: Failure| matches!(failure.kind, FailureKind::Rejected { .. });
    assert!(is_gone(table.get(&key).await.expect_err("it is gone")));
    let many = table.get_many(&[key.clone(), Key::from("c-2")]).await;
    assert!(is_gone(many.expect_err("it is gone")));
    let deleted = table.delete_at_version(&key, at).await.expect_err("it is gone");
    assert!(deleted.to_string().contains("rejected"), "{deleted}");
    assert_eq!(db.log().len(), 4, "none of them is sent again");
    assert!(begun.elapsed() < Duration::from_secs(1));
    restore(db.engine(), FIRST, &had);
    assert_eq!(table.get(&key).await.expect("it is back").expect("it is there").at, at);
}

/// The answer of the first send is lost. The table is gone when the second one arrives. The outcome is then unknown.
#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_was_lost_is_unknown_when_its_resend_finds_no_table() {
    for garbled in [false, true] {
        let db = Dynamo::with_seed(1);
        db.create_table(FIRST, Counter::PARTITION_KEY);
        let table: Table<Counter> = store_on(&db).table(FIRST);
        let key = Key::from(COUNTER);
        let at = table.create(&key, &Counter { count: 1 }).await.expect("a free key").at;
        let form = fencepost_test::Garbling::Page;
        let lost = if garbled {
            db.fault(fencepost_test::Fault::GarbledAs { form, executed: true }).of("UpdateItem").once()
        } else {
            db.lose_answer().of("UpdateItem").once()
        };
        let had = Arc::new(Mutex::new(Vec::new()));
        let going = had.clone();
        let gone = db.fault(fencepost_test::Fault::Delayed(Duration::ZERO)).of("UpdateItem").after(move |engine| {
            *going.lock().expect("no panic") = delete(engine, FIRST);
        });
        let gone = gone.once();
        let put = |counter: &Counter| Ok::<_, Infallible>(Some(Counter { count: counter.count + 1 }));
        let updated = table.update_at_version(&key, at, put).await.expect_err("nobody knows");
        assert!(updated.to_string().starts_with("outcome unknown"), "{updated}");
        assert_eq!((lost.struck(), gone.struck()), (1, 1));
        let had = had.lock().expect("no panic").clone();
        assert_eq!(had[0]["count"]["N"], "2", "it was applied");
    }
}
