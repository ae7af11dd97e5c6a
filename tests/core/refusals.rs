//! A transaction after its refusal: burns, reads and the next attempt. One row remembers it, and other steps may be bare
//! adds.

use super::accounts;
use super::accounts::{Account, TABLE, chance, rival, set_balance};
use crate::harness::clients::{client_whose, client_whose_first_write, lost, step_in_conflict};
use crate::harness::engine::{Engine, is_read};
use crate::harness::states::set;
use fencepost::{Error, Reads, Record, Settings, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An engine with the accounts `a-1` and `a-2` of 50. No test uses the client that made them.
async fn with_accounts() -> Engine {
    let engine = accounts::engine();
    accounts::with_accounts(&engine, &["a-1", "a-2"]).await;
    engine
}

fn balances(engine: &Engine) -> [i64; 2] {
    ["a-1", "a-2"].map(|id| accounts::balance(engine, id))
}

fn operations(engine: &Engine) -> Vec<String> {
    engine.take_log().into_iter().map(|asked| asked.operation).collect()
}

/// The first write is lost, and the refusal tells only of another transaction at the row. The burn shows the row.
#[tokio::test(start_paused = true)]
async fn a_row_that_a_burn_has_shown_is_not_read_again() {
    let engine = with_accounts().await;
    let client = client_whose(&engine, |engine, writes, operation, body| match writes {
        0 if !is_read(operation) => {
            set_balance(engine, "a-2", 5);
            lost()
        }
        1 if !is_read(operation) => {
            let (status, answer) = engine.answer(operation, body);
            (status, step_in_conflict(&answer, 0))
        }
        _ => engine.answer(operation, body),
    });
    let store = Store::new(&client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let [to, from] = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    // It moves the rest of `a-2`, but 30 at most, and adds to `a-2` without a demand on its version.
    let moved = store.transact_with_retry(reads, |attempt| {
        let [there, left] = [attempt.get(to)?, attempt.get(from)?].map(|one| one.map_or(0, |one| one.value.balance));
        let amount = left.min(30);
        attempt.update_at(to, &Account { balance: there + amount })?;
        attempt.edit(from, &Account::FIELDS.balance.add(-amount, 0..=1000))?;
        Ok::<_, Error>(amount)
    });
    assert_eq!((moved.await.expect("there are 5"), balances(&engine)), (5, [55, 0]));
    let expected = ["BatchGetItem", "TransactWriteItems", "UpdateItem", "TransactWriteItems"];
    assert_eq!(operations(&engine), expected);
}

/// The same accounts in a table where other programs write as they like.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "accountId", settings = Settings::open_to_any())]
struct Open {
    balance: i64,
}

/// Doubles both balances. `a-1` has so many more values. Before the first attempt arrives, another client raises the balance of
/// `changed`. Returns the requests.
async fn double_both<T: Record>(changed: &'static str, values: usize, double: fn(&T) -> T) -> Vec<String> {
    let engine = with_accounts().await;
    set(&engine, TABLE, "a-1", &[("more", json!({"L": vec![json!({"NULL": true}); values]}))]);
    let client = client_whose_first_write(&engine, move |engine, operation, body| {
        rival(engine, changed);
        engine.take_log();
        engine.answer(operation, body)
    });
    let store = Store::new(&client).with_rng(chance(true));
    let accounts: Table<T> = store.table(TABLE);
    let mut reads = Reads::new();
    let both = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let doubled = store.transact_with_retry(reads, |attempt| {
        for account in both {
            let doubled = double(&attempt.get(account)?.expect("an account").value);
            attempt.update_at(account, &doubled)?;
        }
        Ok::<_, Error>(())
    });
    doubled.await.expect("decided again");
    assert_eq!(balances(&engine), if changed == "a-1" { [102, 100] } else { [100, 102] });
    operations(&engine)
}

/// Otherwise, the row from the read and the row from the refusal would be in memory together.
#[tokio::test(start_paused = true)]
async fn a_row_that_takes_much_memory_is_read_again_if_another_step_was_refused() {
    let double = |account: &Account| Account { balance: account.balance * 2 };
    let (twice, between) = (["TransactWriteItems"; 2], ["TransactWriteItems", "BatchGetItem", "TransactWriteItems"]);
    assert_eq!(double_both("a-1", 150_000, double).await, twice, "the refusal shows it");
    assert_eq!(double_both("a-2", 150_000, double).await, between);
    assert_eq!(double_both("a-2", 50_000, double).await, twice, "it takes 3 MB");
    let double = |account: &Open| Open { balance: account.balance * 2 };
    assert_eq!(double_both("a-2", 150_000, double).await, twice, "a burn would need its values");
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_only_what_another_transaction_is_changing_is_read_again() {
    let engine = with_accounts().await;
    let client = client_whose_first_write(&engine, |engine, operation, body| {
        for id in ["a-1", "a-2"] {
            rival(engine, id);
        }
        let (status, answer) = engine.answer(operation, body);
        (status, step_in_conflict(&answer, 1))
    });
    let store = Store::new(&client).with_rng(chance(true));
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let items = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let taken = store.transact_with_retry(reads, |attempt| {
        for item in items {
            let balance = attempt.get(item)?.map_or(0, |account| account.value.balance);
            attempt.update_at(item, &Account { balance: balance - 2 })?;
        }
        Ok::<_, Error>(())
    });
    taken.await.expect("decided again");
    let asked = engine.take_log();
    let operations: Vec<_> = asked.iter().map(|asked| asked.operation.as_str()).collect();
    assert_eq!(operations, ["BatchGetItem", "TransactWriteItems", "BatchGetItem", "TransactWriteItems"]);
    let again = &asked[2].body["RequestItems"][TABLE]["Keys"];
    assert_eq!(*again, json!([{"accountId": {"S": "a-2"}}]));
    assert_eq!(balances(&engine), [49, 49]);
}
