//! Tombstones that other programs treat in their way, and deletes that leave none.

use super::world::{
    Account, Kept, Setup, Shared, SharedRemoved, account, accounts, balance, engine, foreign_save, foreign_update, get,
    key, number, row, set, update,
};
use crate::harness::engine::Engine;
use fencepost::{Error, Exists, ItemVersion, Table, VersionError};
use serde_json::{Value, json};

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
                table.edit(&key(), &balance().add(5, 0..=100)).await.expect("within the bounds");
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
