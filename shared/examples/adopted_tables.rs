//! **A table of `PynamoDB` and one of Toasty.** Other programs write the table and go on doing so. Each of their writes
//! demands the version which it has read and raises it. The usual way does the same in Rust. After a lost answer, its
//! repeat is refused, reads the item again and makes the change twice. This recipe names their version attribute. The
//! first change adopts a row: the same write adds the attributes of this crate and raises their version. All other
//! attributes stay. `docs/adoption.md` in the repository finds the settings for a library. Run it with `cargo run -p
//! fencepost --example adopted_tables`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Edit, Names, Record, Settings, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A delete leaves a tombstone, which a sweep removes. `PynamoDB` filters it out by an attribute that it lacks.
const BESIDE_PYNAMODB: Settings =
    Settings::without_ttl().shared_with_versioned_writers().swept().names(Names::DEFAULT.version("version"));

/// Toasty cannot read tombstones. So a delete removes the row. A delete or a create with a lost answer is then unknown.
const BESIDE_TOASTY: Settings =
    Settings::without_ttl().shared_with_versioned_writers().removed().names(Names::DEFAULT.version("version"));

#[derive(Serialize, Deserialize, Record)]
#[record(key = "userId", settings = BESIDE_PYNAMODB)]
struct User {
    points: i64,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "id", settings = BESIDE_TOASTY)]
struct Account {
    balance: i64,
}

/// A save of theirs, of an object that they have read at this version. Whether it was accepted.
fn they_save(db: &Dynamo, (table, key, number): (&str, &str, &str), version: u32, value: i64) -> bool {
    let values = json!({":seen": {"N": version.to_string()}, ":next": {"N": (version + 1).to_string()}, ":n": {"N": value.to_string()}});
    let save = json!({"TableName": table, "Key": {key: {"S": "7"}}, "ConditionExpression": "version = :seen",
        "UpdateExpression": format!("SET {number} = :n, version = :next"), "ExpressionAttributeValues": values});
    db.engine().answer("UpdateItem", save.to_string().as_bytes()).0 == 200
}

/// Adds 10 to a row of theirs, beside their saves, with a lost answer. Returns the row after a delete.
async fn adopt<T: Record>(db: &Dynamo, names: (&str, &str, &str), add_10: &Edit<T>) -> Value {
    let (table, key, number) = names;
    db.create_table(table, key);
    db.put(table, &json!({key: {"S": "7"}, number: {"N": "1"}, "version": {"N": "4"}, "shelf": {"S": "A7"}}));
    let ours: Table<T> = Store::new(&db.client()).table(table);
    db.engine().take_counts();
    let lost = db.lose_answer().of("UpdateItem").once();
    ours.edit("7", add_10).await.expect("adopted and changed");
    assert_eq!((db.engine().take_counts(), lost.struck()), ((1, 2), 1));
    assert_eq!((db.number(table, "7", number), db.number(table, "7", "version")), (11, 5));
    assert_eq!(db.row(table, "7")["shelf"]["S"], "A7");
    assert!(!they_save(db, names, 4, 2), "they have not seen our change, and notice it");
    assert!(they_save(db, names, 5, 20), "they have read it");
    ours.edit("7", add_10).await.expect("changed");
    assert_eq!((db.number(table, "7", number), db.number(table, "7", "version")), (30, 7));
    ours.delete("7").await.expect("it is there");
    db.row(table, "7")
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    let tombstone = adopt(&db, ("Users", "userId", "points"), &User::FIELDS.points.add(10, ..)).await;
    assert_eq!((&tombstone["version"]["N"], &tombstone["points"]), (&json!("8"), &Value::Null));
    let gone = adopt(&db, ("Accounts", "id", "balance"), &Account::FIELDS.balance.add(10, ..)).await;
    assert_eq!(gone, Value::Null);
    println!("{}", db.log());
}

#[test]
fn a_row_of_another_program_is_changed_once_and_both_notice_each_other() {
    main();
}
