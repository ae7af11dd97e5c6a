//! Tables with remembered items: the cost of a warm change, and answers that never come from memory.

use super::accounts::{self, Account, TABLE, engine, with_accounts};
use crate::harness::engine::Engine;
use fencepost::testing::last_seen;
use fencepost::{Attempt, Edit, Error, Failure, Item, Key, Reads, Record, Store, Table, UpdateError};
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

#[tokio::test]
async fn nothing_is_kept_refused_or_missing_from_memory_alone() {
    let (engine, table, other, key) = with_account().await;
    table.get(&key).await.expect("an answer");
    other.update_with_retry(&key, plus(100)).await.expect("an account");
    engine.take_log();
    let kept = table.update_with_retry(&key, plus(0)).await.expect("an account");
    assert_eq!((kept.value.balance, engine.take_counts()), (150, (1, 0)), "it was read");
    other.update_with_retry(&key, plus(-150)).await.expect("an account");
    engine.take_log();
    let refused = table.update_with_retry(&key, plus(-151)).await;
    assert!(matches!(refused, Err(UpdateError::Refused("too little"))), "{refused:?}");
    assert_eq!(engine.take_counts(), (1, 0));
    other.delete(&key).await.expect("an account");
    engine.take_log();
    let gone = table.update_with_retry(&key, plus(0)).await;
    assert!(matches!(gone, Err(UpdateError::NotFound)), "{gone:?}");
    other.create(&key, &Account { balance: 9 }).await.expect("only a tombstone");
    engine.take_log();
    table.update_with_retry(&key, plus(-9)).await.expect("it is there again");
    assert_eq!((balance(&engine), engine.take_counts()), (0, (1, 1)), "the absence was not remembered");
}

#[tokio::test]
async fn a_decision_over_many_items_is_made_again_on_what_is_read_unless_it_writes() {
    let (engine, table, other, key) = with_account().await;
    let take = async |by: i64| {
        let mut reads = Reads::new();
        let account = reads.remembered("account", &table, &key);
        let taken = table.store().transact_with_retry(reads, |attempt| {
            let balance = attempt.get(account)?.map_or(0, |account| account.value.balance);
            if balance < by {
                return Err(Error::Refused(balance));
            }
            attempt.edit_blind(account, &Edit::add("balance", -by, 0..=1000))?;
            Ok(())
        });
        (taken.await, engine.take_counts())
    };
    assert!(matches!(take(10).await, (Ok(()), (1, 1))), "cold");
    assert!(matches!(take(10).await, (Ok(()), (0, 1))), "warm");
    let (refused, counts) = take(60).await;
    assert!(matches!(refused, Err(Error::Refused(30))), "{refused:?}");
    assert_eq!(counts, (1, 0), "read before it is refused");
    other.update_with_retry(&key, plus(70)).await.expect("an account");
    engine.take_log();
    let (taken, counts) = take(60).await;
    assert!(taken.is_ok() && counts == (1, 1), "{taken:?} {counts:?}");
    assert_eq!(balance(&engine), 40);
}

#[tokio::test]
async fn a_decision_that_commits_no_step_answers_from_memory_no_more_than_one_that_keeps() {
    let (engine, table, other, key) = with_account().await;
    table.get(&key).await.expect("an answer");
    other.update_with_retry(&key, plus(100)).await.expect("an account");
    engine.take_log();
    let mut reads = Reads::new();
    let account = reads.remembered("account", &table, &key);
    let seen = table.store().transact_with_retry(reads, |attempt| {
        Ok::<_, Error>(attempt.get(account)?.map(|account| account.value.balance))
    });
    assert_eq!((seen.await.expect("read"), engine.take_counts()), (Some(150), (1, 0)));
}

type Finding = fn(&mut Attempt, Item<Account>) -> Result<i64, Failure>;

fn seen(attempt: &mut Attempt, account: Item<Account>) -> Result<i64, Failure> {
    Ok(attempt.get(account)?.map_or(0, |account| account.value.balance))
}

/// Creates `n-1` with what a decision finds out about the remembered account. Another client may change or delete the
/// account before. Returns the finding, with the requests.
async fn noted(find: Finding, meanwhile: Option<i64>) -> (i64, (usize, usize)) {
    let (engine, table, other, key) = with_account().await;
    table.get(&key).await.expect("an answer");
    match meanwhile {
        Some(0) => drop(other.delete(&key).await.expect("an account")),
        Some(by) => drop(other.update_with_retry(&key, plus(by)).await.expect("an account")),
        None => {}
    }
    engine.take_log();
    let mut reads = Reads::new();
    let (account, note) = (reads.remembered("account", &table, &key), reads.later("note", &table, "n-1"));
    let noted = table.store().transact_with_retry(reads, |attempt| {
        let balance = find(attempt, account)?;
        attempt.put_if_absent(note, &Account { balance })?;
        Ok::<_, Error>(balance)
    });
    let told = noted.await.expect("a free key");
    assert_eq!(accounts::balance(&engine, "n-1"), told);
    (told, engine.take_counts())
}

/// An answer rests on every row that the decision has looked at, also on one that it does not write, or edits under other
/// conditions.
#[tokio::test(start_paused = true)]
async fn a_decision_that_writes_is_made_on_the_items_as_they_are_and_not_as_they_are_remembered() {
    const AS_IT_IS: (usize, usize) = (0, 1);
    const REFUSED: (usize, usize) = (0, 2);
    let version: Finding = |attempt, account| Ok(i64::from(attempt.version_after_put(account).get() > 2));
    let is_taken: Finding =
        |attempt, account| Ok(attempt.put_if_absent(account, &Account { balance: 1 }).is_err().into());
    let before: Finding = |attempt, account| {
        attempt.edit(account, &Edit::add("balance", 1, ..))?;
        seen(attempt, account)
    };
    let after: Finding = |attempt, account| {
        let balance = seen(attempt, account)?;
        attempt.edit(account, &Edit::add("balance", 1, ..))?;
        Ok(balance)
    };
    for (name, find, then, meanwhile, now) in [
        ("a look", seen as Finding, 50, 49, 99),
        ("the version of a put", version, 0, 1, 1),
        ("a refused put", is_taken, 1, 0, 0),
        ("a look after an edit", before, 50, 49, 99),
        ("a look before an edit", after, 50, 49, 99),
    ] {
        assert_eq!(noted(find, None).await, (then, AS_IT_IS), "{name}: it has not moved on");
        assert_eq!(noted(find, Some(meanwhile)).await, (now, REFUSED), "{name}");
    }
    let unseen: Finding = |attempt, account| attempt.edit(account, &Edit::add("balance", 1, ..)).map(|()| 7);
    let blind: Finding = |attempt, account| {
        seen(attempt, account)?;
        attempt.edit_blind(account, &Edit::add("balance", 1, ..)).map(|()| 7)
    };
    for (name, find) in [("nothing was looked at", unseen), ("the conditions of the edit suffice", blind)] {
        assert_eq!(noted(find, Some(49)).await, (7, AS_IT_IS), "{name}");
    }
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
