//! Damaged tables: a sentence for each row, no crash, no write.

use super::{KEY, TABLE, accounts, put};
use crate::harness::maintenance::{options, run_with};
use crate::harness::restore::rows;
use fencepost::maintenance::{Kind, Task, WrongTable};
use fencepost::{Error, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::Instant;

const INCARNATION: &str = "AAAAAAAAAAA=";

/// A row of this crate, but for these attributes.
fn own(changes: &Value) -> Value {
    let mut row = json!({
        "_version": {"N": "7"},
        "_incarnation": {"B": INCARNATION},
        "_writes": {"M": {"AgICAgICAgI": {"N": "6"}}},
        "balance": {"N": "1"},
    });
    let attributes = row.as_object_mut().expect("an object");
    attributes.extend(changes.as_object().expect("an object").clone());
    attributes.retain(|_, value| !value.is_null());
    row
}

/// A row: its id, its attributes, its kind, and a part of its explanation.
type Animal = (&'static str, Value, &'static str, &'static str);

/// Damaged, odd and good rows. The tests beside `explain` have every damage.
fn zoo() -> Vec<Animal> {
    let is = |value: Value| own(&json!({ "_version": value }));
    let memory = |value: Value| own(&json!({ "_writes": value }));
    vec![
        ("good", own(&json!({})), "live", "A live item at version 7."),
        ("no-version", is(Value::Null), "damaged", "`_version` is missing"),
        ("text-version", is(json!({"S": "7"})), "damaged", "`_version` is the text \"7\""),
        ("ahead", memory(json!({"M": {"AgICAgICAgI": {"N": "9"}}})), "live", "the row is only at version 7"),
        ("bad-time", own(&json!({"_purgeAt": {"S": "soon"}})), "damaged", "`_purgeAt` is the text \"soon\""),
        ("tombstone", own(&json!({"_purgeAt": {"N": "4102444800"}, "_buried": {"N": "7"}})), "tombstone", "2100-01-01"),
        ("lined", own(&json!({"_given": {"N": "3"}, "_served": {"N": "2"}})), "live", "took 3 tickets"),
        ("served", own(&json!({"_given": {"N": "3"}, "_served": {"N": "2"}})), "live", "is number 2"),
        ("foreign", json!({"_version": {"N": "3"}}), "foreign", "makes version 4."),
    ]
}

fn damaged() -> impl Iterator<Item = Animal> {
    zoo().into_iter().filter(|(_, _, kind, _)| *kind == "damaged")
}

#[tokio::test]
async fn each_row_of_a_damaged_table_gets_a_sentence_and_nothing_is_written() {
    let engine = accounts();
    for (id, row, ..) in zoo() {
        put(&engine, id, &row);
    }
    let before = rows(&engine, TABLE);
    engine.take_log();
    let (found, out) = run_with(&engine.client(), &options(TABLE, Task::Explain, false)).await.expect("a run");
    assert!(engine.take_log().iter().all(|asked| ["DescribeTable", "Scan"].contains(&asked.operation.as_str())));
    assert_eq!(rows(&engine, TABLE), before);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (summary, told) = lines.split_last().expect("a summary");
    let told: BTreeMap<_, _> = told.iter().map(|row| (row["key"][KEY]["S"].as_str().expect("a key"), row)).collect();
    assert_eq!(told.len(), zoo().len());
    for (id, _, kind, part) in zoo() {
        let row = told[id];
        let all = [&row["sentences"], &row["problems"]].map(Value::to_string).join(" ").replace("\\\"", "\"");
        assert!(row["kind"] == kind && all.contains(part), "{id}: {part}\n{row}");
        let problems = row["problems"].as_array().expect("a list").len();
        assert_eq!(problems, usize::from(row["kind"] == "damaged" || id == "ahead"), "{row}");
    }
    assert_eq!(summary["summary"]["found"]["damaged"], found.damaged);
    assert_eq!((found.rows(), found.damaged, found.written), (zoo().len() as u64, damaged().count() as u64, 0));
}

/// Instances of the newest leader of a shard, as a user of the crate stores them.
#[tokio::test]
async fn rows_of_any_table_where_the_newest_instance_wins_are_known_by_the_names_of_its_record() {
    let engine = accounts();
    put(&engine, "s-1", &json!({"term": {"N": "7"}, "node": {"S": "a"}, "address": {"S": "x"}}));
    let run = |task| Store::new(&engine.client()).maintain(task, TABLE, &[KEY]);
    for (run, kind) in
        [(run(Task::Explain), Kind::Foreign), (run(Task::Explain).of_instances(["term", "node"]), Kind::Mapping)]
    {
        let mut run = run;
        let told = run.next_page().await.expect("a page").expect("a row").remove(0).explanation;
        assert_eq!(told.kind, kind, "{told}");
        assert_eq!(
            told.to_string().contains("the number 7") && told.to_string().contains("\"a\""),
            kind == Kind::Mapping,
            "{told}"
        );
    }
    let refused = run(Task::Adopt).of_instances(["term", "node"]).next_page().await;
    assert!(matches!(refused, Err(Error::Refused(WrongTable::Mappings))), "{refused:?}");
}

/// A damaged row is left alone by every task, and reported.
#[tokio::test]
async fn a_run_that_writes_leaves_damaged_rows_alone_and_tells_of_them() {
    for task in [Task::Adopt, Task::Sweep, Task::Restamp] {
        let engine = accounts();
        let damaged: Vec<_> = damaged().collect();
        for (id, row, ..) in &damaged {
            put(&engine, id, row);
        }
        let before = rows(&engine, TABLE);
        let (found, out) = run_with(&engine.client(), &options(TABLE, task, true)).await.expect("a run");
        assert_eq!((found.damaged, found.written), (damaged.len() as u64, 0), "{task:?}");
        assert_eq!(out.lines().count(), damaged.len() + 1, "{task:?}");
        assert_eq!(rows(&engine, TABLE), before);
    }
}

#[tokio::test]
async fn only_rows_with_problems_are_shown_if_the_operator_asks_for_them() {
    let engine = accounts();
    for (id, row, ..) in zoo() {
        put(&engine, id, &row);
    }
    let mut options = options(TABLE, Task::Explain, false);
    (options.problems_only, options.target.json) = (true, false);
    let (found, out) = run_with(&engine.client(), &options).await.expect("a run");
    // Each damaged row, and the one that remembers a write ahead of its version.
    assert_eq!(out.matches("Wrong: ").count(), damaged().count() + 1);
    assert!(!out.contains("\"good\"") && out.contains("{\"accountId\":{\"S\":\"text-version\"}}: damaged\n"), "{out}");
    assert!(out.trim_end().ends_with(&format!(
        "{} rows are damaged. They are left alone. `fencepost explain --problems` says why.",
        found.damaged
    )));
}

/// 40 rows of 4 KB at 8 units per second: 8 rows in a page, and a second between two pages.
#[tokio::test(start_paused = true)]
async fn a_paced_run_reads_small_pages_and_waits_between_them() {
    let engine = accounts();
    let text = "x".repeat(4000);
    (0..40).for_each(|number| put(&engine, &format!("a-{number}"), &json!({"text": {"S": text}})));
    let mut options = options(TABLE, Task::Explain, false);
    options.rate = NonZeroU32::new(8);
    engine.take_log();
    let start = Instant::now();
    let (found, _) = run_with(&engine.client(), &options).await.expect("a run");
    let scans = engine.take_log().iter().filter(|asked| asked.operation == "Scan").count();
    assert_eq!((found.rows(), scans), (40, 6));
    let took = start.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(6)).contains(&took), "{took:?}");
}
