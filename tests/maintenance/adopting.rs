//! Rows of other programs are adopted ahead of time, while those programs write.

use super::{KEY, TABLE, accounts, foreign_update, put, row};
use crate::harness::clients::{Way, client_that, client_whose};
use crate::harness::engine::{Engine, number};
use crate::harness::functions::LEASES;
use crate::harness::maintenance::{options, run_over, run_with};
use crate::harness::restore::rows;
use fencepost::maintenance::{Found, Task};
use fencepost::{Names, Record, Settings, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId", settings = Settings::without_ttl().shared_with_versioned_writers().swept())]
struct Account {
    balance: u64,
}

fn foreign(version: u64) -> Value {
    json!({"_version": {"N": version.to_string()}, "balance": {"N": "10"}})
}

async fn adopt(engine: &Engine) -> Found {
    run_over(&engine.client(), TABLE, Task::Adopt, true).await.expect("a run")
}

async fn add_one(table: &Table<Account>, id: &str) -> u64 {
    let decide = |account: &Account| Account { balance: account.balance + 1 };
    table.update_with_retry(id, decide).await.expect("a change").value.balance
}

#[tokio::test]
async fn foreign_rows_get_the_next_version_an_incarnation_and_a_memory_and_keep_their_values() {
    let engine = accounts();
    put(&engine, "zero", &foreign(0));
    let mut marked = foreign(7);
    marked["_buried"] = json!({"N": "8"}); // the mark of its next version
    put(&engine, "seven", &marked);
    put(&engine, "none", &json!({"balance": {"N": "10"}}));
    let last = (1u64 << 53) - 1;
    put(&engine, "last", &foreign(last));
    let table: Table<Account> = Store::new(&engine.client()).table(TABLE);
    table.create("own", &Account { balance: 10 }).await.expect("a free key");
    let (own, before) = (row(&engine, "own"), rows(&engine, TABLE));

    let counted = run_over(&engine.client(), TABLE, Task::Adopt, false).await.expect("a dry run");
    assert_eq!((counted.foreign, counted.live, counted.written), (4, 1, 3));
    assert_eq!(rows(&engine, TABLE), before, "a dry run writes nothing");

    let found = adopt(&engine).await;
    assert_eq!((found.foreign, found.live, found.written, found.changed_meanwhile), (4, 1, 3, 0));
    for (id, version) in [("zero", 1), ("seven", 8), ("none", 1)] {
        let row = row(&engine, id);
        assert_eq!((number(&row, "_version"), number(&row, "balance")), (version, 10), "{row}");
        let memory = row["_writes"]["M"].as_object().expect("a memory");
        assert_eq!(memory.values().collect::<Vec<_>>(), [&json!({"N": (version - 1).to_string()})]);
        assert!(row["_incarnation"]["B"].is_string());
    }
    assert_eq!(row(&engine, "own"), own);
    assert_eq!(row(&engine, "last"), before.iter().find(|row| row[KEY]["S"] == "last").expect("it").clone());
    let again = adopt(&engine).await;
    assert_eq!((again.foreign, again.live, again.written), (1, 4, 0), "a second run has nothing to do");
    assert_eq!(add_one(&table, "seven").await, 11, "it is not buried by its adoption");
}

#[tokio::test]
async fn a_table_with_other_names_is_adopted_under_them() {
    let engine = accounts();
    put(&engine, "a", &json!({"version": {"N": "3"}}));
    let mut options = options(TABLE, Task::Adopt, true);
    options.target.names = Names::DEFAULT.version("version").incarnation("inc").writes("w");
    let (found, _) = run_with(&engine.client(), &options).await.expect("a run");
    assert_eq!(found.written, 1);
    let row = row(&engine, "a");
    assert_eq!((number(&row, "version"), row["inc"]["B"].is_string(), row["w"]["M"].is_object()), (4, true, true));
}

/// Another program changes each row after the run has read it, some of them twice.
#[tokio::test(start_paused = true)]
async fn a_change_that_comes_between_is_kept_and_adopted_with_the_row() {
    let engine = accounts();
    (0..8).for_each(|number| put(&engine, &format!("a-{number}"), &foreign(3)));
    let attempts = Mutex::new([0; 8]);
    let client = client_whose(&engine, move |engine, _, operation, body| {
        let text = String::from_utf8_lossy(body);
        let of_this_write = |number: &usize| text.contains(&format!("\"a-{number}\""));
        if let Some(number) = (0..8).find(of_this_write).filter(|_| operation == "UpdateItem") {
            // Each row before its first write, and every other row before its second one.
            let mut attempts = attempts.lock().expect("no panic");
            attempts[number] += 1;
            if attempts[number] <= 2 - number % 2 {
                foreign_update(engine, &format!("a-{number}"), 2 + attempts[number] as u64);
            }
        }
        engine.answer(operation, body)
    });
    let found = run_over(&client, TABLE, Task::Adopt, true).await.expect("a run");
    assert_eq!((found.written, found.changed_meanwhile), (8, 8));
    for number_of_row in 0..8 {
        let row = row(&engine, &format!("a-{number_of_row}"));
        let changes = if number_of_row % 2 == 0 { 2 } else { 1 };
        assert_eq!((number(&row, "balance"), number(&row, "_version")), (10 + changes, 3 + changes + 1), "{row}");
        assert!(row["_incarnation"]["B"].is_string());
    }
}

/// Two operators and a program of this crate at once, with answers that get lost: each row is adopted once.
#[tokio::test(start_paused = true)]
async fn rows_that_are_adopted_from_all_sides_at_once_are_adopted_once() {
    let engine = accounts();
    (0..20).for_each(|number| put(&engine, &format!("a-{number}"), &foreign(3)));
    let slow = |lose: usize| {
        client_that(&engine, move |request| match request % lose {
            0 if request > 2 => Way::AnswerLost,
            other => Way::Answered(5 + other as u64),
        })
    };
    let (one, other) = (slow(7), slow(5));
    let table: Table<Account> = Store::new(&slow(1000)).table(TABLE);
    let changes = async {
        for number in 0..20 {
            add_one(&table, &format!("a-{number}")).await;
        }
    };
    let (one, other, ()) =
        tokio::join!(run_over(&one, TABLE, Task::Adopt, true), run_over(&other, TABLE, Task::Adopt, true), changes);
    let written = one.expect("a run").written + other.expect("a run").written;
    assert!((1..=20).contains(&written), "{written}");
    for number_of_row in 0..20 {
        let row = row(&engine, &format!("a-{number_of_row}"));
        // The change raises the version by one, and so does an adoption that came before it.
        assert_eq!(number(&row, "balance"), 11, "{row}");
        assert!([4, 5].contains(&number(&row, "_version")) && row["_incarnation"]["B"].is_string(), "{row}");
    }
    assert_eq!(adopt(&engine).await.written, 0);
}

#[tokio::test]
async fn leases_and_mappings_are_not_adopted_and_leases_not_restamped() {
    let engine = Engine::with_tables(&[(LEASES, "leaseKey"), ("Mappings", "hostIp")]);
    let terms = fencepost::lease::LeaseTerms::new(Duration::from_secs(10)).expect("long enough");
    Store::new(&engine.client()).leases(LEASES).acquire("k", "a", terms).await.expect("free");
    let mapping = json!({"hostIp": {"S": "10.0.0.1"}, "creationTimestamp": {"N": "1"}, "instanceId": {"S": "i-1"}});
    engine.raw("PutItem", &json!({"TableName": "Mappings", "Item": mapping}));
    for (task, table, part) in [
        (Task::Adopt, LEASES, "has leases, which have no version"),
        (Task::Adopt, "Mappings", "the newest instance wins"),
        (Task::Restamp, LEASES, "start with an empty table"),
    ] {
        let before = rows(&engine, table);
        for write in [false, true] {
            let refused = run_over(&engine.client(), table, task, write).await.expect_err("not for this table");
            assert!(refused.to_string().contains(part), "{task:?} {table}: {refused}");
        }
        assert_eq!(rows(&engine, table), before, "{task:?} {table}");
        run_over(&engine.client(), table, Task::Explain, false).await.expect("it can be explained");
    }
}
