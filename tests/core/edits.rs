//! `Table::edit` beyond adds: values that are set and removed under conditions, alone and in transactions.

use super::add::{Shelf, TABLE, change_shelf, row, with_shelf};
use crate::harness::clients::client_that_notes_its_first_write;
use fencepost::testing::edit_or_update;
use fencepost::{Edit, Error, Failure, Key, NotEdited, Reads, Store, Table, UpdateError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;

fn word<T>(edited: &Result<T, UpdateError<NotEdited<Shelf>>>) -> &'static str {
    match edited {
        Ok(_) => "edited",
        Err(UpdateError::Refused(NotEdited::NotAsDemanded(_))) => "not as demanded",
        Err(UpdateError::Refused(NotEdited::Unchanged(_))) => "unchanged",
        Err(_) => "another error",
    }
}

/// The shelf has the stock 50, the status `high` and the counts `{sold: 0}`. It has no note.
#[tokio::test]
async fn values_are_set_and_removed_in_one_write_if_the_conditions_hold() {
    let sold = || Edit::set(["counts", "sold"], &1);
    let remove =
        |path: &[&str]| Edit::default().and_remove(path.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    for (edit, expected) in [
        (Edit::set("status", &"low"), "edited"),
        (Edit::set("status", &"high"), "edited"),
        (Edit::set("status", &"high").only_if_changed(), "unchanged"),
        (Edit::set("status", &"high").and_set("note", &1).only_if_changed(), "edited"),
        (Edit::set("note", &1).only_if_changed(), "edited"),
        (Edit::add("stock", 0, ..).and_set("status", &"high").only_if_changed(), "edited"),
        (sold(), "edited"),
        (Edit::set(["counts", "lost"], &1), "edited"),
        (Edit::set(["note", "text"], &1), "not as demanded"),
        (Edit::set(["status", "text"], &1), "not as demanded"),
        (remove(&["note"]), "edited"),
        (remove(&["note"]).only_if_changed(), "unchanged"),
        (remove(&["counts", "sold"]).only_if_changed(), "edited"),
        (remove(&["note", "text"]), "not as demanded"),
        (sold().only_with("note"), "not as demanded"),
        (sold().only_with(["counts", "sold"]), "edited"),
        (sold().only_without(["counts", "sold"]), "not as demanded"),
        (sold().only_if(["counts", "sold"], &0), "edited"),
        (sold().only_if("counts", &BTreeMap::from([("sold", 1)])), "not as demanded"),
        (sold().only_if_at_most("status", &"high"), "edited"),
        (sold().only_if_at_most("status", &"hig"), "not as demanded"),
        (sold().only_if_at_most("stock", &50), "edited"),
        (sold().only_if_at_most("stock", &9), "not as demanded"),
        (sold().only_if_at_most("note", &9), "edited"),
        (sold().only_if_at_most("status", &9), "not as demanded"),
    ] {
        let (engine, key, at) = with_shelf().await;
        let before = row(&engine);
        let edited = Store::new(&engine.client()).table(TABLE).edit(&key, &edit.clone().seen(at)).await;
        assert_eq!((word(&edited), engine.take_counts()), (expected, (0, 1)), "{edit:?}");
        let (version, is_same) = (row(&engine)["_version"]["N"].clone(), row(&engine) == before);
        assert_eq!((version, is_same), (json!(if expected == "edited" { "2" } else { "1" }), expected != "edited"));
        // A client that has read the item comes to the same. Only DynamoDB compares numbers.
        if expected != "edited" {
            let cold = Store::new(&engine.client()).table::<Shelf>(TABLE).edit(&key, &edit).await;
            let writes = usize::from(format!("{edit:?}").contains("([\"stock\"], AtMost"));
            assert_eq!((word(&cold), engine.take_counts()), (expected, (1, writes)), "{edit:?}");
        }
    }
}

#[tokio::test]
async fn an_edit_that_makes_the_item_too_large_is_rejected_and_nothing_is_written() {
    let (engine, key, at) = with_shelf().await;
    let before = row(&engine);
    let edit = Edit::set("note", &"x".repeat(410 * 1024)).seen(at);
    let rejected = Store::new(&engine.client()).table::<Shelf>(TABLE).edit(&key, &edit).await;
    assert!(matches!(rejected, Err(UpdateError::Failed(Failure::Rejected { .. }))), "{rejected:?}");
    assert_eq!(row(&engine), before);
}

/// `DynamoDB` rejects the edit, because the item would be too large. The network delivers it once more when there is room.
/// The change of the same call was decided on the row before it, and may not be made beside it.
#[tokio::test]
async fn a_change_after_a_rejected_edit_gives_way_to_a_copy_of_the_edit_that_lands_before_it() {
    let (engine, key, at) = with_shelf().await;
    let note = |bytes: usize| json!({":n": {"S": "x".repeat(bytes)}});
    change_shelf(&engine, "SET note = :n", &note(390 * 1024));
    let (client, under_way) = client_that_notes_its_first_write(&engine);
    let decide = |shelf: &Shelf| {
        change_shelf(&engine, "SET note = :n", &note(1));
        let copy = under_way.lock().expect("no panic");
        assert_eq!(engine.answer("UpdateItem", &copy).0, 200, "it is applied now");
        let mut shelf = shelf.clone();
        shelf.stock = 7;
        Ok::<_, Infallible>(Some(shelf))
    };
    let table: Table<Shelf> = Store::new(&client).table(TABLE);
    let edit = Edit::set("status", &"x".repeat(20 * 1024)).seen(at);
    let changed = edit_or_update(&table, &key, &edit, decide).await.expect("the edit was applied");
    assert_eq!((changed.value.stock, changed.version().get()), (50, 2), "told is what was stored");
    assert_eq!((&row(&engine)["stock"]["N"], &row(&engine)["_version"]["N"]), (&json!("50"), &json!("2")));
}

/// In a transaction, an edit of a known item is refused by its conditions as an add is by its bounds.
#[tokio::test]
async fn a_transaction_edits_under_conditions() {
    for (demanded, expected) in [("high", json!("sold out")), ("low", Value::Null)] {
        let (engine, _, _) = with_shelf().await;
        let store = Store::new(&engine.client());
        let mut reads = Reads::new();
        let shelf = reads.item("shelf", &store.table::<Shelf>(TABLE), Key::from("s-1"));
        let edited = store.transact_with_retry(reads, |attempt| {
            attempt.edit(shelf, &Edit::set("note", &"sold out").only_if("status", &demanded))?;
            Ok::<_, Error<Infallible>>(())
        });
        let edited = edited.await;
        assert_eq!(edited.is_ok(), !expected.is_null(), "{edited:?}");
        assert_eq!(row(&engine)["note"]["S"], expected);
    }
}
