//! The cost of each operation, counted at the engine.

use super::accounts::{Account, TABLE, call, change, engine, rival};
use crate::harness::engine::Engine;
use fencepost::{Call, Error, Exists, ItemVersion, Key, Store, Table, Tally, UpdateError, VersionError, Versioned};
use serde_json::json;
use std::cell::Cell;
use std::convert::Infallible;

fn add(amount: i64) -> impl Fn(&Account) -> Result<Option<Account>, Infallible> {
    move |account| Ok(Some(Account { balance: account.balance + amount }))
}

async fn with_account() -> (Engine, Table<Account>, Key, Versioned<Account>) {
    let engine = engine();
    let table = Store::new(&engine.client()).table(TABLE);
    let key = Key::from("a-1");
    let created = table.create(&key, &Account { balance: 50 }).await.expect("a free key");
    assert_eq!(engine.take_counts(), (0, 1), "a create is one write");
    (engine, table, key, created)
}

/// Attempts, conflicts and lost answers so far.
fn tally(call: &Call) -> (u32, u32, u32) {
    let Tally { attempts, conflicts, lost_answers, .. } = call.tally();
    (attempts, conflicts, lost_answers)
}

#[tokio::test]
async fn a_create_costs_one_write_and_two_on_a_tombstone() {
    let (engine, table, key, created) = with_account().await;
    table.delete_at_version(&key, created.at).await.expect("the current version");
    assert_eq!(engine.take_counts(), (0, 1), "a delete at a known version is one write");
    let anew = table.create(&key, &Account { balance: 1 }).await.expect("only a tombstone is there");
    assert_eq!(engine.take_counts(), (0, 2));
    assert_eq!(anew.version().get(), 3, "the version goes on");
    assert_eq!(anew.at.incarnation, created.at.incarnation, "so the judge stays exact across delete and re-create");
    let call = call();
    let exists = table.in_call(&call).create(&key, &Account { balance: 2 }).await.expect_err("a taken key");
    assert_eq!(tally(&call), (1, 0, 0), "a taken key is no lost race");
    assert!(matches!(exists, Error::Refused(Exists(current)) if current.value.balance == 1));
    assert_eq!(engine.take_counts(), (0, 1));
}

#[tokio::test]
async fn an_uncontended_update_costs_one_read_and_one_write() {
    let (engine, table, key, _) = with_account().await;
    let call = call();
    let updated = table.in_call(&call).update_with_retry(&key, add(1)).await.expect("a live item");
    assert_eq!((updated.value.balance, updated.version().get()), (51, 2));
    assert_eq!(engine.take_counts(), (1, 1));
    assert_eq!(tally(&call), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn each_conflict_costs_one_more_write_and_the_first_one_a_ticket_and_no_read() {
    for conflicts in 1..=5 {
        let (engine, table, key, _) = with_account().await;
        let call = call();
        let made = Cell::new(0);
        let decide = |account: &Account| {
            if made.get() < conflicts {
                rival(&engine, "a-1");
            }
            made.set(made.get() + 1);
            add(100)(account)
        };
        let updated = table.in_call(&call).update_with_retry(&key, decide).await.expect("it wins in the end");
        assert_eq!(updated.value.balance, 150 + conflicts, "the decision was made again on the current item");
        let attempts = usize::try_from(conflicts).expect("small") + 1;
        assert_eq!(engine.take_counts(), (1, attempts + 1));
        assert_eq!(usize::try_from(call.tally().attempts), Ok(attempts));
    }
}

#[tokio::test]
async fn a_change_at_a_version_costs_one_read_and_one_write_and_no_write_when_stale() {
    let (engine, table, key, created) = with_account().await;
    let updated = table.update_at_version(&key, created.at, add(1)).await.expect("the current version");
    assert_eq!(engine.take_counts(), (1, 1));
    let stale = table.update_at_version(&key, created.at, add(1)).await.expect_err("an old version");
    assert!(matches!(stale, VersionError::Conflict(current) if current.at == updated.at));
    assert_eq!(engine.take_counts(), (1, 0));
    let deleted = table.delete_at_version(&key, created.at).await.expect_err("an old version");
    assert!(matches!(deleted, VersionError::Conflict(current) if *current == updated));
    assert_eq!(engine.take_counts(), (0, 1));
}

#[tokio::test]
async fn a_race_lost_at_a_version_is_the_clients_answer_and_not_decided_again() {
    let (engine, table, key, created) = with_account().await;
    let decide = |account: &Account| {
        rival(&engine, "a-1");
        add(100)(account)
    };
    let lost = table.update_at_version(&key, created.at, decide).await.expect_err("a rival came first");
    assert!(matches!(lost, VersionError::Conflict(current) if current.value.balance == 51));
    assert_eq!(engine.take_counts(), (1, 1));
}

#[tokio::test]
async fn keeping_and_refusing_cost_no_write() {
    let (engine, table, key, created) = with_account().await;
    let kept = table.update_with_retry(&key, |_| Ok::<Option<_>, ()>(None)).await.expect("a live item");
    assert_eq!(kept, created);
    assert_eq!(engine.take_counts(), (1, 0));
    let refused = table.update_with_retry(&key, |_| Err("no")).await.expect_err("a refusal");
    assert!(matches!(refused, UpdateError::Refused("no")));
    assert_eq!(engine.take_counts(), (1, 0));
}

#[tokio::test]
async fn what_a_deleted_item_held_is_gone_and_does_not_come_back() {
    let (engine, table, key, created) = with_account().await;
    let stranger = json!({":s": {"S": "unknown to Account"}});
    change(&engine, TABLE, &json!({"accountId": {"S": "a-1"}}), "SET stranger = :s", &stranger);
    let updated = table.update_at_version(&key, created.at, add(1)).await.expect("the current version");
    assert_eq!(engine.row(TABLE, "accountId", "a-1")["stranger"]["S"], "unknown to Account", "updates keep it");
    table.delete_at_version(&key, updated.at).await.expect("the current version");
    assert!(engine.row(TABLE, "accountId", "a-1")["balance"].is_null());
    assert_eq!(table.get(&key).await.expect("an answer"), None);
    table.create(&key, &Account { balance: 7 }).await.expect("only a tombstone is there");
    let row = engine.row(TABLE, "accountId", "a-1");
    assert!(row["stranger"].is_null() && row["_purgeAt"].is_null(), "{row}");
}

/// The reason for incarnations: TTL purged the row, another client made it again, and it reached the version number
/// that an old reader holds.
#[tokio::test]
async fn an_old_version_of_a_purged_row_is_stale_although_the_number_is_the_same() {
    let (engine, table, key, old) = with_account().await;
    let purge = json!({"TableName": TABLE, "Key": {"accountId": {"S": "a-1"}}});
    engine.raw("DeleteItem", &purge);
    let anew = table.create(&key, &Account { balance: 9 }).await.expect("a free key");
    assert_eq!(anew.version(), old.version());
    let stale = table.update_at_version(&key, old.at, add(1)).await.expect_err("another row");
    assert!(matches!(stale, VersionError::Conflict(current) if *current == anew));
    let stale = table.delete_at_version(&key, old.at).await.expect_err("another row");
    assert!(matches!(stale, VersionError::Conflict(current) if *current == anew));
}

/// The same between a read and its write: only the condition on the incarnation stands in the way.
#[tokio::test]
async fn a_write_on_a_row_that_was_purged_and_made_anew_after_the_read_is_refused() {
    let (engine, table, key, old) = with_account().await;
    let decided = Cell::new(0);
    let purge = json!({"TableName": TABLE, "Key": {"accountId": {"S": "a-1"}}});
    let mut anew = engine.row(TABLE, "accountId", "a-1");
    anew["_incarnation"] = json!({"B": "AAAAAAAAAAA="});
    anew["balance"] = json!({"N": "7"});
    let decide = |account: &Account| {
        if decided.replace(decided.get() + 1) == 0 {
            engine.raw("DeleteItem", &purge);
            engine.raw("PutItem", &json!({"TableName": TABLE, "Item": anew}));
        }
        add(1)(account)
    };
    let updated = table.update_with_retry(&key, decide).await.expect("a live item");
    assert_eq!((updated.value.balance, decided.get()), (8, 2), "it was decided again on the new row");
    assert_ne!(updated.at.incarnation, old.at.incarnation);
}

#[tokio::test]
async fn a_tombstone_cannot_be_deleted_again_by_guessing_its_version() {
    let (engine, table, key, created) = with_account().await;
    let version = table.delete_at_version(&key, created.at).await.expect("the current version");
    let before = engine.row(TABLE, "accountId", "a-1");
    let guessed = ItemVersion { version, ..created.at };
    let refused = table.delete_at_version(&key, guessed).await.expect_err("nothing is there");
    assert!(matches!(refused, VersionError::NotFound));
    assert_eq!(engine.row(TABLE, "accountId", "a-1"), before);
}

#[tokio::test]
async fn a_version_that_never_was_is_a_conflict_and_no_corruption() {
    let (_, table, key, created) = with_account().await;
    let future = ItemVersion { version: fencepost::Version::new(999).expect("small"), ..created.at };
    let deleted = table.delete_at_version(&key, future).await.expect_err("not its version");
    assert!(matches!(deleted, VersionError::Conflict(current) if *current == created));
    let updated = table.update_at_version(&key, future, add(1)).await.expect_err("not its version");
    assert!(matches!(updated, VersionError::Conflict(current) if *current == created));
}
