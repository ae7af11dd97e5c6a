//! The tombstones of each kind of delete, their readers, and their treatment by other programs.

use super::world::{
    Account, Alone, KEY, Kept, Removed, Setup, Shared, SharedRemoved, Swept, TABLE, account, accounts,
    client_that_loses_the_first, deposit, engine, foreign_save, foreign_update, get, key, number, row, set, update,
};
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::Engine;
use fencepost::{Edit, Error, Exists, Failure, ItemVersion, NotEdited, Store, Table, UpdateError, VersionError};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// An account of ours at version 1, with an attribute of another program.
async fn with_account<S: Setup>() -> (Engine, Table<Account<S>>, ItemVersion) {
    let engine = engine();
    let table = accounts::<S>(&engine);
    let created = table.create(&key(), &account(50)).await.expect("a free key");
    set(&engine, &[("stranger", json!({"S": "kept"}))]);
    engine.take_log();
    (engine, table, created.at)
}

/// The same account, deleted at version 2.
async fn with_tombstone<S: Setup>() -> (Engine, Table<Account<S>>) {
    let (engine, table, at) = with_account::<S>().await;
    let deleted = table.delete_at_version(&key(), at).await.expect("that version");
    assert_eq!((deleted.get(), engine.take_counts()), (2, (0, 1)), "one write");
    (engine, table)
}

/// Deletes an account. Gives the names of the remaining attributes with the mark of the row.
async fn left<S: Setup>() -> (Vec<String>, Value) {
    let (engine, table) = with_tombstone::<S>().await;
    assert_eq!(get(&table).await, None, "we see no item");
    let deleted = table.delete(&key()).await.expect_err("it is gone");
    assert!(matches!(deleted, UpdateError::NotFound));
    let left = row(&engine);
    assert_eq!(left["version"], number(2), "another program sees the version");
    let mut names: Vec<_> = left.as_object().expect("a row").keys().cloned().collect();
    names.sort_unstable();
    (names, left["_buried"].clone())
}

#[tokio::test]
async fn a_tombstone_has_its_version_as_a_mark_unless_ttl_removes_it_and_a_time_unless_it_is_kept() {
    let rest = [KEY, "stranger", "version"];
    let names = |ours: &[&'static str]| [ours, &rest].concat();
    assert_eq!(left::<Alone>().await, (strings(&names(&["_incarnation", "_purgeAt", "_writes"])), Value::Null));
    let marked = names(&["_buried", "_incarnation", "_purgeAt", "_writes"]);
    assert_eq!(left::<Swept>().await, (strings(&marked), number(2)));
    assert_eq!(left::<Shared>().await, (strings(&marked), number(2)));
    assert_eq!(left::<Kept>().await, (strings(&names(&["_buried", "_incarnation", "_writes"])), number(2)));
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

async fn is_guessed<S: Setup>() {
    let (engine, table, at) = with_account::<S>().await;
    let version = table.delete_at_version(&key(), at).await.expect("that version");
    let before = row(&engine);
    let guessed = ItemVersion { version, ..at };
    let refused = table.delete_at_version(&key(), guessed).await.expect_err("nothing is there");
    assert!(matches!(refused, VersionError::NotFound), "{refused:?}");
    assert_eq!(row(&engine), before);
}

#[tokio::test]
async fn a_tombstone_is_not_deleted_again_by_guessing_its_version_however_it_is_marked() {
    is_guessed::<Shared>().await;
    is_guessed::<Kept>().await;
}

async fn create_goes_on<S: Setup>() {
    let (engine, table) = with_tombstone::<S>().await;
    let anew = table.create(&key(), &account(7)).await.expect("only a tombstone");
    assert_eq!((anew.at.version.get(), engine.take_counts()), (3, (0, 2)));
    let row = row(&engine);
    assert!(row["_buried"].is_null() && row["_purgeAt"].is_null() && row["stranger"].is_null(), "{row}");
    assert_eq!((get(&table).await, row["balance"].clone()), (Some(anew), number(7)));
}

#[tokio::test]
async fn a_create_on_a_tombstone_goes_on_with_its_version_however_it_is_marked() {
    create_goes_on::<Alone>().await;
    create_goes_on::<Shared>().await;
    create_goes_on::<Kept>().await;
}

/// A table with an earlier setting for deletes has tombstones with a time alone.
#[tokio::test]
async fn a_tombstone_of_an_earlier_setting_has_only_a_time_and_is_believed() {
    let (engine, table, _) = with_account::<Shared>().await;
    set(&engine, &[("_purgeAt", number(1_800_000_000)), ("version", number(2))]);
    assert_eq!(get(&table).await, None);
    let added = table.edit(&key(), &Edit::add("balance", 1, 0..=100)).await.expect_err("a tombstone");
    assert!(matches!(added, UpdateError::NotFound));
    table.create(&key(), &account(7)).await.expect("only a tombstone");
    assert!(row(&engine)["_purgeAt"].is_null());
}

/// Another program writes the tombstone, and then we change it.
async fn is_alive_again<S: Setup>() {
    for dead_mark in ["update", "add", "delete", "create"] {
        let (engine, table) = with_tombstone::<S>().await;
        foreign_update(&engine, 30);
        let current = get(&table).await.expect("alive again");
        assert_eq!((current.value, current.at.version.get()), (account(30), 3));
        engine.take_log();
        let marks = |engine: &Engine| [row(engine)["_buried"].clone(), row(engine)["version"].clone()];
        match dead_mark {
            "update" => {
                assert_eq!(update(&table, 5).await.expect("an account").value.balance, 35);
                assert_eq!((engine.take_counts(), marks(&engine)), ((1, 1), [Value::Null, number(4)]));
            }
            "add" => {
                table.edit(&key(), &Edit::add("balance", 5, 0..=100)).await.expect("within the bounds");
                assert_eq!((engine.take_counts(), marks(&engine)), ((1, 1), [number(2), number(4)]), "an old mark");
                assert_eq!(get(&table).await.expect("alive").value, account(35));
            }
            "delete" => {
                table.delete(&key()).await.expect("an account");
                assert_eq!((engine.take_counts(), marks(&engine)), ((1, 1), [number(4), number(4)]));
                assert_eq!(get(&table).await, None);
            }
            _ => {
                let exists = table.create(&key(), &account(1)).await.expect_err("a taken key");
                assert!(matches!(exists, Error::Refused(Exists(now)) if now.value == account(30)));
                assert_eq!(engine.take_counts(), (0, 1));
            }
        }
    }
}

#[tokio::test]
async fn a_tombstone_that_another_program_updates_is_alive_again_and_every_change_of_ours_works() {
    is_alive_again::<Shared>().await;
    is_alive_again::<Kept>().await;
}

#[tokio::test]
async fn a_tombstone_that_another_program_saves_is_a_row_of_that_program() {
    let (engine, table) = with_tombstone::<Shared>().await;
    foreign_save(&engine, 30);
    let current = get(&table).await.expect("alive again");
    assert!(current.at.incarnation.is_foreign() && current.value == account(30));
    assert_eq!(update(&table, 5).await.expect("an account").at.version.get(), 4);
}

/// The tombstone is updated between the read of a create and its write.
#[tokio::test]
async fn a_create_that_saw_a_tombstone_is_refused_by_an_update_of_another_program() {
    let (engine, _) = with_tombstone::<Shared>().await;
    let client = client_whose(&engine, |engine, writes, operation, body| {
        if writes == 1 {
            foreign_update(engine, 30);
        }
        engine.answer(operation, body)
    });
    let table: Table<Account<Shared>> = Store::new(&client).table(TABLE);
    let exists = table.create(&key(), &account(1)).await.expect_err("it is alive again");
    assert!(matches!(exists, Error::Refused(Exists(now)) if now.value == account(30)));
    assert_eq!((engine.take_counts(), row(&engine)["balance"].clone()), ((0, 2), number(30)));
}

#[tokio::test]
async fn a_version_checked_create_of_another_program_is_refused_by_a_tombstone() {
    let (engine, _) = with_tombstone::<Shared>().await;
    let put = json!({
        "TableName": TABLE,
        "Item": {KEY: {"S": "a-1"}, "balance": number(1), "version": number(1)},
        "ConditionExpression": "attribute_not_exists(#v)",
        "ExpressionAttributeNames": {"#v": "version"},
    });
    let (status, answer) = engine.answer("PutItem", put.to_string().as_bytes());
    assert!(status == 400 && answer.contains("ConditionalCheckFailed"), "{answer}");
}

/// Changes between the sends of an add: `writes` says how many sends came before.
async fn lost_add(
    happens: impl Fn(&Engine, usize) + Send + Sync + 'static,
) -> (Engine, Table<Account<Shared>>, Result<(), UpdateError<NotEdited<Account<Shared>>>>) {
    let (engine, table, at) = with_account::<Shared>().await;
    let client = client_whose(&engine, move |engine, writes, operation, body| {
        happens(engine, writes);
        if writes == 0 { lost() } else { engine.answer(operation, body) }
    });
    let add = Edit::add("balance", 7, 0..=100).seen(at);
    let added = Store::new(&client).table::<Account<Shared>>(TABLE).edit(&key(), &add).await;
    (engine, table, added.map(drop))
}

/// Our own delete, as another client sends it.
fn bury(engine: &Engine) {
    let version = row(engine)["version"]["N"].as_str().and_then(|version| version.parse::<u64>().ok()).expect("one");
    set(
        engine,
        &[("version", number(version + 1)), ("_buried", number(version + 1)), ("_purgeAt", number(2_000_000_000))],
    );
    engine.raw(
        "UpdateItem",
        &json!({"TableName": TABLE, "Key": {KEY: {"S": "a-1"}}, "UpdateExpression": "REMOVE balance"}),
    );
}

/// The burn raises the version, which is the mark of a tombstone. Without care, it would bring the row back to life.
#[tokio::test(start_paused = true)]
async fn a_burn_of_an_add_whose_row_became_a_tombstone_keeps_it_one() {
    let (engine, table, added) = lost_add(|engine, writes| {
        if writes == 0 {
            bury(engine);
        }
    })
    .await;
    assert!(matches!(added, Err(UpdateError::NotFound)), "{added:?}");
    let left = row(&engine);
    let burned = left["_writes"]["M"].as_object().expect("a memory").values().any(|trace| *trace == number(-2));
    assert!(burned && left["_buried"] == number(3) && left["version"] == number(3), "{left}");
    assert_eq!(get(&table).await, None);
    foreign_update(&engine, 30);
    assert!(get(&table).await.is_some(), "and another program can still write it");
}

/// A burn demands the same tombstone, or the same absence of a row.
#[tokio::test(start_paused = true)]
async fn a_burn_is_refused_by_a_row_that_was_deleted_or_came_back_since_it_was_seen() {
    // The row refuses the resend as a tombstone, and is alive when the burn arrives.
    let (engine, table, added) = lost_add(|engine, writes| match writes {
        0 => bury(engine),
        2 => foreign_update(engine, 30),
        _ => {}
    })
    .await;
    assert!(matches!(added, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. }))), "{added:?}");
    assert!(get(&table).await.is_some() && row(&engine)["_buried"] == number(2));
    // The row refuses the resend by its bounds, and is a tombstone when the burn arrives.
    let (engine, table, added) = lost_add(|engine, writes| match writes {
        0 => foreign_update(engine, 500),
        2 => bury(engine),
        _ => {}
    })
    .await;
    assert!(matches!(added, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. }))), "{added:?}");
    assert!(get(&table).await.is_none() && row(&engine)["_buried"] == row(&engine)["version"]);
}

#[tokio::test]
async fn a_physical_delete_is_one_request_on_version_and_incarnation() {
    let (engine, table, at) = with_account::<SharedRemoved>().await;
    let incarnation = row(&engine)["_incarnation"].clone();
    let wrong = ItemVersion { version: at.version.next(), ..at };
    let refused = table.delete_at_version(&key(), wrong).await.expect_err("another version");
    assert!(matches!(refused, VersionError::Conflict(now) if now.at == at));
    table.delete_at_version(&key(), at).await.expect("that version");
    let asked = engine.take_log();
    assert_eq!((asked.len(), asked[1].operation.as_str(), row(&engine)), (2, "DeleteItem", Value::Null));
    let values = &asked[1].body["ExpressionAttributeValues"];
    assert!(values[":at"] == number(1) && values[":incarnation"] == incarnation, "{values}");

    let anew = table.create(&key(), &account(7)).await.expect("a free key");
    assert_eq!((anew.at.version.get(), engine.take_counts()), (1, (0, 1)), "versions begin again");
    assert_ne!(anew.at.incarnation, at.incarnation);
    // A late copy of the first delete finds another row at the same version.
    let (status, answer) = engine.answer("DeleteItem", asked[1].body.to_string().as_bytes());
    assert!(status == 400 && answer.contains("ConditionalCheckFailed"), "{answer}");
    assert!(matches!(table.delete_at_version(&key(), at).await, Err(VersionError::Conflict(_))));
    engine.take_log();
    table.delete(&key()).await.expect("an account");
    assert_eq!(engine.take_counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_physical_delete_whose_answer_was_lost_is_unknown_if_it_was_applied_and_is_made_if_it_was_not() {
    for applied in [true, false] {
        let (engine, _, at) = with_account::<Removed>().await;
        let client = client_that_loses_the_first(&engine, applied, |_| {});
        let table: Table<Account<Removed>> = Store::new(&client).table(TABLE);
        let deleted = table.delete_at_version(&key(), at).await;
        let is_unknown = matches!(&deleted, Err(VersionError::Failed(Failure::OutcomeUnknown { .. })));
        assert_eq!((is_unknown, deleted.is_ok(), row(&engine)), (applied, !applied, Value::Null), "{deleted:?}");
    }
}

/// The row is removed between a read and its write, or before the resend of a lost write.
#[tokio::test(start_paused = true)]
async fn no_change_brings_a_removed_row_back() {
    let (engine, table, _) = with_account::<Removed>().await;
    let decide = |account: &Account<Removed>| {
        super::world::remove(&engine);
        deposit(1)(account)
    };
    let updated = table.update_with_retry(&key(), decide).await.expect_err("it is gone");
    assert!(matches!(updated, UpdateError::NotFound) && row(&engine).is_null(), "{updated:?}");

    for applied in [true, false] {
        let (engine, _, at) = with_account::<Removed>().await;
        let client = client_that_loses_the_first(&engine, applied, super::world::remove);
        let table: Table<Account<Removed>> = Store::new(&client).table(TABLE);
        let updated = table.update_at_version(&key(), at, deposit(1)).await.map(drop);
        assert!(updated.is_err_and(|error| error.to_string().starts_with("outcome unknown")) && row(&engine).is_null());
    }
}

/// Copies of changes of a removed row arrive, when the key is free and when another row has it, at the same version.
#[tokio::test]
async fn a_late_copy_of_a_change_of_a_removed_row_is_refused_also_by_the_row_that_took_its_key() {
    let (engine, table, _) = with_account::<Removed>().await;
    let sent = Arc::<Mutex<Vec<(String, Vec<u8>)>>>::default();
    let noted = sent.clone();
    let client = client_whose(&engine, move |engine, _, operation, body| {
        if operation == "UpdateItem" {
            noted.lock().expect("no panic").push((operation.to_owned(), body.to_vec()));
        }
        engine.answer(operation, body)
    });
    let other: Table<Account<Removed>> = Store::new(&client).table(TABLE);
    update(&other, 1).await.expect("an account");
    other.edit(&key(), &Edit::add("balance", 1, 0..=100)).await.expect("within the bounds");
    table.delete(&key()).await.expect("an account");
    let sent = sent.lock().expect("no panic").clone();
    assert_eq!(sent.len(), 2);
    for version in 0..=3 {
        match version {
            0 => {}
            1 => drop(table.create(&key(), &account(7)).await.expect("a free key")),
            _ => drop(update(&table, 0).await.expect("an account")),
        }
        let before = row(&engine);
        for (operation, body) in &sent {
            let (status, answer) = engine.answer(operation, body);
            assert!(status == 400 && answer.contains("ConditionalCheckFailed"), "at {version}: {answer}");
        }
        assert_eq!(row(&engine), before);
    }
}
