//! Expired tombstones are removed where TTL does not, and nothing else.

use super::{TABLE, accounts, foreign_update, put, row};
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::Engine;
use crate::harness::maintenance::run_over;
use fencepost::maintenance::{Found, Task};
use serde_json::{Value, json};

/// A tombstone of version 7, but for its mark and its time.
fn buried(mark: Option<u64>, purge_at: Option<u64>) -> Value {
    let mut row = json!({
        "_version": {"N": "7"},
        "_incarnation": {"B": "AAAAAAAAAAA="},
        "_writes": {"M": {"AgICAgICAgI": {"N": "6"}}},
        "balance": {"N": "1"},
    });
    for (name, value) in [("_buried", mark), ("_purgeAt", purge_at)] {
        if let Some(value) = value {
            row[name] = json!({"N": value.to_string()});
        }
    }
    row
}

const PAST: Option<u64> = Some(1_000_000_000);
const FUTURE: Option<u64> = Some(4_102_444_800);

/// The ids of the rows, and whether a sweep removes them.
const ROWS: [(&str, Option<u64>, Option<u64>, bool); 7] = [
    ("due", Some(7), PAST, true),
    ("due-without-a-mark", None, PAST, true),
    ("not-due", Some(7), FUTURE, false),
    ("kept", Some(7), None, false),
    ("revived", Some(5), PAST, false),
    ("revived-later", Some(5), FUTURE, false),
    ("live", None, None, false),
];

fn table() -> Engine {
    let engine = accounts();
    for (id, mark, purge_at, _) in ROWS {
        put(&engine, id, &buried(mark, purge_at));
    }
    put(&engine, "foreign", &json!({"_version": {"N": "3"}, "ttl": {"N": "1000000000"}}));
    engine
}

async fn sweep(engine: &Engine, write: bool) -> Found {
    run_over(&engine.client(), TABLE, Task::Sweep, write).await.expect("a run")
}

fn left(engine: &Engine) -> Vec<&'static str> {
    ROWS.iter().map(|(id, ..)| *id).filter(|id| !row(engine, id).is_null()).collect()
}

#[tokio::test]
async fn a_sweep_removes_tombstones_whose_time_has_passed_and_nothing_else() {
    let engine = table();
    let counted = sweep(&engine, false).await;
    assert_eq!((counted.tombstones, counted.live, counted.foreign, counted.written), (4, 3, 1, 2));
    assert_eq!(left(&engine).len(), ROWS.len(), "a dry run writes nothing");
    let found = sweep(&engine, true).await;
    assert_eq!((found.written, found.changed_meanwhile, found.removed_meanwhile), (2, 0, 0));
    let kept: Vec<_> = ROWS.iter().filter(|(.., removed)| !removed).map(|(id, ..)| *id).collect();
    assert_eq!(left(&engine), kept);
    assert!(!row(&engine, "foreign").is_null());
    assert_eq!(sweep(&engine, true).await.written, 0);
}

/// Another program brings a tombstone back to life after the sweep has read it.
#[tokio::test(start_paused = true)]
async fn a_tombstone_that_comes_back_to_life_meanwhile_is_not_removed() {
    let engine = table();
    let client = client_whose(&engine, |engine, _, operation, body| {
        if operation == "DeleteItem" && String::from_utf8_lossy(body).contains("\"due\"") {
            foreign_update(engine, "due", 7);
        }
        engine.answer(operation, body)
    });
    let found = run_over(&client, TABLE, Task::Sweep, true).await.expect("a run");
    assert_eq!((found.written, found.changed_meanwhile), (1, 1));
    let revived = row(&engine, "due");
    assert_eq!((&revived["_version"]["N"], &revived["balance"]["N"]), (&json!("8"), &json!("2")));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_removal_is_found_out() {
    let engine = table();
    let client = client_whose(&engine, |engine, writes, operation, body| {
        let answer = engine.answer(operation, body);
        if writes == 0 && operation == "DeleteItem" { lost() } else { answer }
    });
    let found = run_over(&client, TABLE, Task::Sweep, true).await.expect("a run");
    assert_eq!((found.written, found.removed_meanwhile), (2, 0));
    assert_eq!(left(&engine).len(), ROWS.len() - 2);
}
