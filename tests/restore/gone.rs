//! A table is deleted under its writers, and comes back unchanged. In between, the requests of callers fail at once. Earlier
//! requests keep their verdict.

use crate::harness::engine::{Engine, store};
use crate::harness::restore::rows;
use fencepost::{Failure, FailureKind, Key, Record, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "counterId")]
struct Counter {
    count: i64,
}

const TABLE: &str = "Counters";
const COUNTER: &str = "c-1";

/// The time of a call.
const ALLOWED: Duration = Duration::from_secs(5);

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

#[tokio::test(start_paused = true)]
async fn a_table_that_is_gone_is_said_to_be_at_once_and_its_items_are_never_said_to_be_absent() {
    let db = Dynamo::with_seed(1);
    db.create_table(TABLE, Counter::PARTITION_KEY);
    let table: Table<Counter> = store_on(&db).table(TABLE);
    let key = Key::from(COUNTER);
    let at = table.create(&key, &Counter { count: 1 }).await.expect("a free key").at;
    let had = delete(db.engine(), TABLE);
    let begun = Instant::now();
    let is_gone = |failure: Failure| matches!(failure.kind, FailureKind::Rejected { .. });
    assert!(is_gone(table.get(&key).await.expect_err("it is gone")));
    let many = table.get_many(&[key.clone(), Key::from("c-2")]).await;
    assert!(is_gone(many.expect_err("it is gone")));
    let deleted = table.delete_at_version(&key, at).await.expect_err("it is gone");
    assert!(deleted.to_string().contains("rejected"), "{deleted}");
    assert_eq!(db.log().len(), 4, "none of them is sent again");
    assert!(begun.elapsed() < Duration::from_secs(1));
    restore(db.engine(), TABLE, &had);
    assert_eq!(table.get(&key).await.expect("it is back").expect("it is there").at, at);
}

/// The answer of the first send is lost. The table is gone when the second one arrives. The outcome is then unknown.
#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_was_lost_is_unknown_when_its_resend_finds_no_table() {
    for garbled in [false, true] {
        let db = Dynamo::with_seed(1);
        db.create_table(TABLE, Counter::PARTITION_KEY);
        let table: Table<Counter> = store_on(&db).table(TABLE);
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
            *going.lock().expect("no panic") = delete(engine, TABLE);
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
