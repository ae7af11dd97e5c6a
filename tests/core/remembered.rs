//! Tables with remembered items: the cost of a warm change, and what is remembered.

use super::accounts::{self, Account, TABLE, engine, with_accounts};
use crate::harness::engine::Engine;
use fencepost::testing::last_seen;
use fencepost::{Edit, Error, Key, Reads, Record, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

fn plus(by: i64) -> impl Fn(&Account) -> Result<Option<Account>, &'static str> {
    move |account| match account.balance + by {
        _ if by == 0 => Ok(None),
        balance if balance < 0 => Err("too little"),
        balance => Ok(Some(Account { balance })),
    }
}

fn balance(engine: &Engine) -> i64 {
    accounts::balance(engine, "a-1")
}

/// An account with 50, a table with a memory, and one of another client without.
async fn with_account() -> (Engine, Table<Account>, Table<Account>, Key) {
    let engine = engine();
    let table = || Store::new(&engine.client()).table::<Account>(TABLE);
    let (remembering, other, key) = (table().remembering_items(), table(), Key::from("a-1"));
    with_accounts(&engine, &["a-1"]).await;
    (engine, remembering, other, key)
}

#[tokio::test]
async fn a_warm_change_of_a_remembered_item_costs_one_write() {
    let (engine, table, _, key) = with_account().await;
    for (by, counts) in [(1, (1, 1)), (1, (0, 1)), (-2, (0, 1))] {
        table.update_with_retry(&key, plus(by)).await.expect("an account");
        assert_eq!(engine.take_counts(), counts, "{by}");
    }
    assert_eq!((balance(&engine), last_seen(&table, &key).map(|seen| seen.value.balance)), (50, Some(50)));
}

#[tokio::test(start_paused = true)]
async fn a_change_on_an_item_that_has_moved_on_costs_a_refused_write_and_is_decided_again() {
    let (engine, table, other, key) = with_account().await;
    table.get(&key).await.expect("an answer");
    other.update_with_retry(&key, plus(100)).await.expect("an account");
    engine.take_log();
    table.update_with_retry(&key, plus(1)).await.expect("an account");
    assert_eq!((balance(&engine), engine.take_counts()), (151, (0, 2)));
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Large {
    text: String,
}

/// With the checks of what it has looked at, the transaction would have more than 4 MB.
#[tokio::test]
async fn remembered_items_whose_demands_do_not_fit_into_a_transaction_are_read_again() {
    let engine = engine();
    let table: Table<Large> = Store::new(&engine.client()).table(TABLE).remembering_items();
    let text = |bytes: usize| Large { text: "x".repeat(bytes) };
    let mut reads = Reads::new();
    let keys: Vec<_> = (0..20).map(|n| Key::from(format!("small-{n}"))).collect();
    for key in &keys {
        table.create(key, &text(16_000)).await.expect("a free key");
        table.get(key).await.expect("an answer");
    }
    let seen: Vec<_> = keys.iter().map(|key| reads.remembered("small", &table, key)).collect();
    let made: Vec<_> = (0..10).map(|n| reads.later("large", &table, format!("large-{n}"))).collect();
    engine.take_log();
    let decided = table.store().transact_with_retry(reads, |attempt| {
        seen.iter().try_for_each(|item| attempt.get(*item).map(drop))?;
        made.iter().try_for_each(|item| attempt.put_if_absent(*item, &text(400_000)).map(drop))?;
        Ok::<_, Error>(())
    });
    decided.await.expect("free keys");
    assert_eq!(engine.take_counts(), (1, 1));
}

/// Reads the account in a transaction without writes. Tells whether it is there.
async fn look(table: &Table<Account>, key: &Key) -> bool {
    let mut reads = Reads::new();
    let account = reads.item("account", table, key);
    let there = table.store().transact_with_retry(reads, |attempt| Ok::<_, Error>(attempt.get(account)?.is_some()));
    there.await.expect("read")
}

#[tokio::test]
async fn what_a_transaction_reads_is_remembered_by_a_table_that_remembers_and_forgotten_once_it_is_gone() {
    let (engine, remembering, other, key) = with_account().await;
    assert!(look(&remembering, &key).await && look(&other, &key).await);
    assert_eq!(last_seen(&remembering, &key).map(|seen| seen.value.balance), Some(50));
    engine.take_log();
    other.edit(&key, &Edit::add("balance", 1, 0..=100)).await.expect("within the bounds");
    assert_eq!(engine.take_counts(), (1, 1), "this table remembers no items, so it reads");
    engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"accountId": {"S": "a-1"}}}));
    assert!(!look(&remembering, &key).await);
    assert_eq!(last_seen(&remembering, &key), None, "it is gone");
}
