//! The cost of each operation, counted at the engine.

use super::accounts::{Account, TABLE, call, chance, engine, rival};
use crate::harness::engine::Engine;
use fencepost::{Call, Error, Exists, Key, Store, Table, Tally, VersionError, Versioned};
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

/// The decision on the row that the ticket shows is one more, so the third rival comes before the ticket.
#[tokio::test(start_paused = true)]
async fn each_conflict_costs_a_write_a_look_costs_a_read_and_the_second_conflict_costs_a_ticket() {
    for (rivals, goes_at_once, counts, attempts) in
        [(1, true, (1, 2), 2), (1, false, (2, 2), 2), (2, true, (1, 4), 3), (3, true, (1, 4), 3), (4, true, (1, 5), 4)]
    {
        let (engine, _, key, _) = with_account().await;
        let table: Table<Account> = Store::new(&engine.client()).with_rng(chance(goes_at_once)).table(TABLE);
        let call = call();
        let made = Cell::new(0);
        let decide = |account: &Account| {
            if made.get() < rivals {
                rival(&engine, "a-1");
            }
            made.set(made.get() + 1);
            add(100)(account)
        };
        let updated = table.in_call(&call).update_with_retry(&key, decide).await.expect("it wins in the end");
        assert_eq!(updated.value.balance, 150 + rivals, "the decision was made again on the current item");
        assert_eq!((engine.take_counts(), call.tally().attempts), (counts, attempts), "{rivals}, {goes_at_once}");
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
