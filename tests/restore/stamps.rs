//! The run that gives each row a new incarnation: its counts, the rows it leaves alone, and what becomes of writers meanwhile.

use crate::harness::clients::{client_whose_first_write, lost};
use crate::harness::engine::Engine;
use crate::harness::maintenance::run_over;
use crate::harness::restore::rows;
use crate::harness::states::set;
use fencepost::maintenance::{Found, Task};
use fencepost::{Error, Exists, Key, Record, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TABLE: &str = "Notes";
const KEY: &str = "noteId";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    text: String,
}

fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

/// So many notes, with the first one deleted, beside a row of another program.
async fn notes(count: usize) -> (Engine, Table<Note>) {
    let engine = Engine::with_tables(&[(TABLE, KEY)]);
    let table = Store::new(&engine.client()).table(TABLE);
    for number in 0..count {
        let key = Key::from(format!("n-{number}"));
        table.create(&key, &note("x")).await.expect("a free key");
    }
    table.delete("n-0").await.expect("a note");
    let other = json!({KEY: {"S": "other"}, "_version": {"S": "seven"}, "version": {"N": "7"}});
    engine.raw("PutItem", &json!({"TableName": TABLE, "Item": other}));
    (engine, table)
}

/// The incarnation of each row, by its key.
fn incarnations(engine: &Engine) -> BTreeMap<String, Value> {
    let id = |row: &Value| row[KEY]["S"].as_str().expect("a key").to_owned();
    rows(engine, TABLE).into_iter().map(|row| (id(&row), row["_incarnation"].clone())).collect()
}

fn counted(found: Found) -> (u64, u64, u64, u64) {
    (found.live, found.tombstones, found.damaged, found.changed_meanwhile)
}

#[tokio::test]
async fn each_row_gets_an_incarnation_of_its_own_and_rows_of_others_are_left_alone() {
    let (engine, _) = notes(40).await;
    let before = incarnations(&engine);
    let client = engine.client();
    let counted_only = run_over(&client, TABLE, Task::Restamp, false).await.expect("a dry run");
    assert_eq!((counted(counted_only), incarnations(&engine)), ((39, 1, 1, 0), before.clone()));

    for _ in 0..2 {
        let before = incarnations(&engine);
        let found = run_over(&client, TABLE, Task::Restamp, true).await.expect("a run");
        assert_eq!(counted(found), (39, 1, 1, 0), "a second run is as good as the first");
        let mut after = incarnations(&engine);
        assert_eq!(after.remove("other"), Some(Value::Null));
        assert!(after.iter().all(|(id, incarnation)| *incarnation != before[id] && incarnation["B"].is_string()));
        let mut distinct: Vec<_> = after.values().map(Value::to_string).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 40);
    }
}

/// The reason for the rule against other writers: a create is recognised by the incarnation of its row. An update is
/// recognised by the memory of a row with this incarnation.
#[tokio::test(start_paused = true)]
async fn a_writer_that_loses_its_answer_while_its_row_is_restamped_is_told_wrong_or_nothing() {
    let (engine, table) = notes(2).await;
    let restamped_after_its_first_write = |id: &'static str| {
        let client = client_whose_first_write(&engine, move |engine, operation, body| {
            engine.answer(operation, body);
            set(engine, TABLE, id, &[("_incarnation", json!({"B": "AAAAAAAAAAA="}))]);
            lost()
        });
        Store::new(&client).table::<Note>(TABLE)
    };
    let put = |_: &Note| note("new");
    let updated = restamped_after_its_first_write("n-1").update_with_retry("n-1", put).await;
    assert!(matches!(&updated, Err(UpdateError::Failed(failure)) if failure.is_outcome_unknown()), "{updated:?}");
    let created = restamped_after_its_first_write("n-2").create("n-2", &note("mine")).await;
    assert!(
        matches!(created, Err(Error::Refused(Exists(_)))),
        "it was applied, and its caller is told that it was not"
    );
    assert_eq!(table.get("n-2").await.expect("an answer").expect("a note").value, note("mine"));
}
