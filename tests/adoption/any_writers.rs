//! Tables with writers that ignore versions: each of our writes demands every value, and has a token.

use super::world::{
    Account, Alone, Anybody, Setup, Shared, TABLE, account, accounts, adopted, call, deposit, foreign, get, key,
    number, put, remove, row, set, update, with_foreign,
};
use crate::harness::clients::{Reply, Way, client_that, client_whose, lost};
use crate::harness::engine::{Asked, Engine, store};
use fencepost::{Bounds, Edit, Error, Failure, NotEdited, Number, Reads, Store, Table, UpdateError};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

fn add(by: i64) -> Edit {
    Edit::add("balance", by, 0..=1000)
}

/// The writes of a log, each of which must be a transaction of one step with a token. Gives the steps.
fn steps(log: &[Asked]) -> Vec<Value> {
    let writes = log.iter().filter(|asked| !asked.operation.contains("Get"));
    let mut tokens = BTreeSet::new();
    let step = |asked: &Asked| {
        assert_eq!(asked.operation, "TransactWriteItems");
        let token = asked.body["ClientRequestToken"].as_str().expect("a token").to_owned();
        assert!((1..=36).contains(&token.len()) && tokens.insert(token), "a new token for each decision");
        let steps = asked.body["TransactItems"].as_array().expect("steps");
        assert_eq!(steps.len(), 1);
        steps[0].as_object().expect("a step").values().next().expect("one action").clone()
    };
    writes.map(step).collect()
}

#[tokio::test]
async fn every_write_is_a_transaction_of_one_step_that_demands_each_declared_value() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Anybody>(&engine);
    let (mut expected, mut asked) = (Vec::new(), Vec::new());
    let mut costs = |reads: usize, name: &str| {
        let log = engine.take_log();
        let reading = log.iter().filter(|asked| asked.operation == "GetItem").count();
        expected.push((name.to_owned(), (reads, 1)));
        asked.push((name.to_owned(), (reading, log.len() - reading)));
        let step = steps(&log).remove(0);
        (
            step["ConditionExpression"].as_str().expect("a condition").to_owned(),
            step["ExpressionAttributeValues"].clone(),
        )
    };
    update(&table, 7).await.expect("an account");
    let (condition, values) = costs(1, "an adopting update");
    assert!(condition.contains("#d0 = :d0 AND attribute_not_exists(#d1)"), "{condition}");
    assert_eq!(values[":d0"], number(50));
    let at = update(&table, 7).await.expect("an account").at;
    assert_eq!(costs(1, "an update").1[":d0"], number(57));
    table.update_at_version(&key(), at, deposit(1)).await.expect("that version");
    assert_eq!(costs(1, "an update at a version").1[":d0"], number(64));
    let added = table.edit(&key(), &add(5)).await.expect("within the bounds");
    assert_eq!(added.item.expect("it was read again").value, account(70));
    assert_eq!(costs(2, "an add, which a transaction does not show").1[":d0"], number(65));
    table.delete_at_version(&key(), added.at).await.expect("that version");
    assert_eq!(costs(1, "a delete at a version").1[":d0"], number(70));
    remove(&engine);
    table.create(&key(), &account(1)).await.expect("a free key");
    costs(0, "a create");
    table.delete(&key()).await.expect("an account");
    costs(1, "a delete");
    assert_eq!(asked, expected);
}

/// An account is read at version 1. Another program deletes it and makes it again, at version 1. Then the write arrives.
async fn deposited_beside_another_create<S: Setup>() -> (i64, u32) {
    let engine = with_foreign(Some(1));
    let decided = Cell::new(0);
    let decide = |account: &Account<S>| {
        if decided.replace(decided.get() + 1) == 0 {
            remove(&engine);
            put(&engine, &foreign(80, Some(1)));
        }
        deposit(7)(account)
    };
    accounts::<S>(&engine).update_with_retry(&key(), decide).await.expect("an account");
    (row(&engine)["balance"]["N"].as_str().and_then(|balance| balance.parse().ok()).expect("a number"), decided.get())
}

#[tokio::test]
async fn a_row_that_was_deleted_and_created_again_at_its_version_refuses_a_decision_on_the_old_one() {
    assert_eq!(deposited_beside_another_create::<Anybody>().await, (87, 2), "decided again");
    // With any other setting, the deposit replaces a value unknown to its caller.
    assert_eq!(deposited_beside_another_create::<Alone>().await, (57, 1));
    assert_eq!(deposited_beside_another_create::<Shared>().await, (57, 1));
}

/// A program writes a row of ours and does not raise the version.
async fn deposited_beside_a_write_without_version<S: Setup>(attribute: &'static str, value: Value) -> (Value, u32) {
    let engine = with_foreign(Some(1));
    let table = accounts::<S>(&engine);
    update(&table, 0).await.expect("an account");
    let decided = Cell::new(0);
    let decide = |account: &Account<S>| {
        if decided.replace(decided.get() + 1) == 0 {
            set(&engine, &[(attribute, value.clone())]);
        }
        let note = account.note.as_ref().map(|note| format!("{note}, seen"));
        Ok::<_, Infallible>(Some(Account { note, balance: account.balance + 7, ..account.clone() }))
    };
    table.update_with_retry(&key(), decide).await.expect("an account");
    (json!([row(&engine)["balance"]["N"], row(&engine)["note"]["S"]]), decided.get())
}

#[tokio::test]
async fn a_row_of_ours_refuses_a_change_after_a_write_that_raised_no_version() {
    let text = || json!({"S": "theirs"});
    assert_eq!(
        deposited_beside_a_write_without_version::<Anybody>("balance", number(80)).await,
        (json!(["87", null]), 2)
    );
    assert_eq!(
        deposited_beside_a_write_without_version::<Anybody>("note", text()).await,
        (json!(["57", "theirs, seen"]), 2)
    );
    assert_eq!(
        deposited_beside_a_write_without_version::<Shared>("balance", number(80)).await,
        (json!(["57", null]), 1)
    );
    let undeclared = deposited_beside_a_write_without_version::<Anybody>("stranger", text()).await;
    assert_eq!(undeclared, (json!(["57", null]), 1), "an attribute that no Record declares is nobody's business");
}

/// A deposit of 7 is applied to a foreign account of 50. Then another program restores the old row. A second copy of
/// the deposit arrives.
async fn copied(forgets_tokens: bool) -> Value {
    let engine = with_foreign(Some(1));
    let sent = Arc::<Mutex<Vec<u8>>>::default();
    let noted = sent.clone();
    let client = client_whose(&engine, move |engine, _, operation, body| {
        if operation != "GetItem" {
            *noted.lock().expect("no panic") = body.to_vec();
        }
        engine.answer(operation, body)
    });
    update(&Store::new(&client).table::<Account<Anybody>>(TABLE), 7).await.expect("an account");
    assert_eq!(row(&engine), adopted(&engine, Some(1), foreign(57, None)));
    put(&engine, &foreign(50, Some(1)));
    if forgets_tokens {
        engine.forget_tokens();
    }
    let (status, answer) = engine.answer("TransactWriteItems", &sent.lock().expect("no panic"));
    assert_eq!(status, 200, "{answer}");
    row(&engine)
}

#[tokio::test]
async fn a_late_copy_of_an_applied_write_is_not_applied_again_although_all_values_have_come_back() {
    assert_eq!(copied(false).await, foreign(50, Some(1)));
    // The token is needed: every condition of the copy holds.
    assert_eq!(copied(true).await["balance"], number(57));
}

/// The same with the client's own resend: it learns of its applied change, and does not repeat it.
#[tokio::test(start_paused = true)]
async fn a_resend_after_all_values_have_come_back_says_applied_and_applies_nothing() {
    let engine = with_foreign(Some(1));
    let client = client_whose(&engine, |engine, writes, operation, body| {
        let answer = engine.answer(operation, body);
        if writes > 0 || operation == "GetItem" {
            return answer;
        }
        put(engine, &foreign(50, Some(1)));
        lost()
    });
    let updated = update(&Store::new(&client).table::<Account<Anybody>>(TABLE), 7).await.expect("it was applied");
    assert_eq!((updated.value.balance, updated.at.version.get()), (57, 2));
    assert_eq!(row(&engine), foreign(50, Some(1)));
}

/// Another program sets a row of ours back to a lower version.
fn lower(engine: &Engine, balance: i64) {
    set(engine, &[("balance", number(balance)), ("version", number(1))]);
}

/// In such a table, a lower version proves nothing. A change that meets one is decided again.
#[tokio::test(start_paused = true)]
async fn a_version_that_falls_is_a_conflict_and_no_corruption() {
    let adopted = || async {
        let engine = with_foreign(Some(7));
        update(&accounts::<Anybody>(&engine), 0).await.expect("an account");
        engine
    };
    let lowered_once = |engine: &Engine| {
        client_whose(engine, |engine, writes, operation, body| {
            if writes == 0 && operation == "TransactWriteItems" {
                lower(engine, 80);
            }
            engine.answer(operation, body)
        })
    };
    let engine = adopted().await;
    let table: Table<Account<Anybody>> = Store::new(&lowered_once(&engine)).table(TABLE);
    let updated = update(&table, 7).await.expect("decided again");
    assert_eq!((updated.value.balance, updated.at.version.get()), (87, 2));

    let engine = adopted().await;
    let table: Table<Account<Anybody>> = Store::new(&lowered_once(&engine)).table(TABLE);
    let added = table.edit(&key(), &add(7)).await.expect("within the bounds");
    assert_eq!((added.item.expect("it was read").value.balance, added.at.version.get()), (87, 2));

    let engine = adopted().await;
    let store = Store::new(&lowered_once(&engine));
    let mut reads = Reads::new();
    let item = reads.item("account", &store.table::<Account<Anybody>>(TABLE), key());
    let done = store.transact_with_retry(reads, |attempt| {
        let Some(current) = attempt.get(item)? else { return Err(Error::Refused("it is there")) };
        attempt.update_at(item, &account(current.value.balance + 7))?;
        Ok(())
    });
    done.await.expect("decided again");
    assert_eq!(row(&engine)["balance"], number(87));
}

/// No tombstone stays: another program could make it look alive, or a live row look deleted.
#[tokio::test(start_paused = true)]
async fn a_deleted_row_that_another_program_makes_again_takes_every_change() {
    let alive = || async {
        let engine = with_foreign(Some(7));
        let table = accounts::<Anybody>(&engine);
        table.delete(&key()).await.expect("an account");
        assert!(row(&engine).is_null(), "it is removed");
        lower(&engine, 30);
        (engine, table)
    };
    let (_, table) = alive().await;
    assert_eq!(get(&table).await.expect("alive again").value, account(30));
    assert_eq!(update(&table, 5).await.expect("an account").value, account(35));
    let (_, table) = alive().await;
    let added = table.edit(&key(), &add(5)).await.expect("within the bounds");
    assert_eq!(added.item.expect("it was read").value, account(35));
    let (engine, table) = alive().await;
    table.delete(&key()).await.expect("an account");
    assert!(row(&engine).is_null(), "it is removed");
}

/// A mark of a later version would bury the row when its version rises to it.
#[tokio::test(start_paused = true)]
async fn a_row_with_the_mark_of_a_later_version_stays_alive_while_its_version_rises() {
    let marked = |mut row: Value| {
        row["_buried"] = number(8);
        row
    };
    for is_add in [false, true] {
        let engine = with_foreign(Some(7));
        let table = accounts::<Anybody>(&engine);
        // A row of ours at a version that fell, then a row of another program.
        table.delete(&key()).await.expect("an account");
        lower(&engine, 50);
        set(&engine, &[("version", number(7))]);
        for row in [None, Some(marked(foreign(50, Some(7))))] {
            if let Some(row) = row {
                put(&engine, &row);
            }
            if is_add {
                table.edit(&key(), &add(1)).await.map(drop).expect("within the bounds");
            } else {
                update(&table, 1).await.map(drop).expect("an account");
            }
            let now = get(&table).await.expect("alive");
            assert_eq!((now.value, now.at.version.get()), (account(51), 8));
            assert!(super::world::row(&engine)["_buried"].is_null());
        }
    }
}

/// An add in such a table has no window. Adds of one client conflict. Each starts from a value that it has read.
#[tokio::test(start_paused = true)]
async fn adds_at_once_are_each_applied_once_and_each_demands_values_that_were_read() {
    let engine = with_foreign(Some(7));
    let table: Table<Account<Anybody>> = Store::new(&client_that(&engine, |_| Way::Answered(10))).table(TABLE);
    let adds = (0..8).map(|_| {
        let table = table.clone();
        async move {
            table.edit(&key(), &add(1)).await.map(drop).map_err(|error: UpdateError<NotEdited<_>>| error.to_string())
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    adds.for_each(|add| drop(tasks.spawn(add)));
    let done = tasks.join_all().await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!((row(&engine)["balance"].clone(), row(&engine)["version"].clone()), (number(58), number(15)));
    let log = engine.take_log();
    let without = log.iter().filter(|asked| asked.operation == "TransactWriteItems");
    let values = |asked: &Asked| asked.body["TransactItems"][0]["Update"]["ExpressionAttributeValues"][":d0"].clone();
    let without = without.filter(|asked| values(asked).is_null()).count();
    assert_eq!(without, 0, "an account without a balance was never seen");
}

/// Only DynamoDB can compare a whole number with bounds of halves. The values show which of both refused.
#[tokio::test]
async fn an_add_that_is_refused_for_other_values_starts_from_them_and_one_out_of_range_does_not() {
    for (moves_to, result) in [(Some(60), Some(61)), (None, None)] {
        let engine = with_foreign(Some(7));
        update(&accounts::<Anybody>(&engine), 7).await.expect("an account, which is adopted");
        let client = client_whose(&engine, move |engine, writes, operation, body| {
            if let (Some(balance), 0, "TransactWriteItems") = (moves_to, writes, operation) {
                set(engine, &[("balance", number(balance))]);
            }
            engine.answer(operation, body)
        });
        let table: Table<Account<Anybody>> = Store::new(&client).table(TABLE);
        let [low, high] = ["58.5", "99.5"].map(|bound| Number::parse(bound).expect("a number"));
        let added = table.edit(&key(), &Edit::add("balance", 1, Bounds::Before(low, high))).await;
        match added {
            Ok(added) => assert_eq!(added.item.map(|item| item.value), result.map(account)),
            Err(UpdateError::Refused(NotEdited::OutOfRange(current))) => {
                assert_eq!((current.value, result), (account(57), None));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// The transaction of several steps demands the values of each.
#[tokio::test]
async fn the_steps_of_a_transaction_demand_values_too() {
    let engine = with_foreign(Some(1));
    let store = Store::new(&engine.client());
    let mut reads = Reads::new();
    let item = reads.item("account", &store.table::<Account<Anybody>>(TABLE), key());
    let (call, decided) = (call(), Cell::new(0));
    let store = store.in_call(&call);
    let done = store.transact_with_retry(reads, |attempt| {
        let Some(current) = attempt.get(item)? else { return Err(Error::Refused("it is there")) };
        if decided.replace(decided.get() + 1) == 0 {
            remove(&engine);
            put(&engine, &foreign(80, Some(1)));
        }
        attempt.update_at(item, &account(current.value.balance + 7))?;
        Ok(())
    });
    done.await.expect("decided again");
    assert_eq!((row(&engine)["balance"].clone(), decided.get()), (number(87), 2));
}

/// A missing row refuses a write, even a write by values.
#[tokio::test]
async fn a_change_of_a_row_that_is_gone_finds_nothing_and_makes_nothing() {
    let engine = with_foreign(None);
    let decide = |account: &Account<Anybody>| {
        remove(&engine);
        deposit(7)(account)
    };
    let updated = accounts::<Anybody>(&engine).update_with_retry(&key(), decide).await;
    assert!(matches!(updated, Err(UpdateError::NotFound)) && row(&engine).is_null(), "{updated:?}");
}

/// The lead of the client's clock: almost the four minutes assumed beside such writers.
const AHEAD: Duration = Duration::from_secs(239);
/// For how long no answer gets through.
const SILENCE: Duration = Duration::from_secs(70);
/// For how long after its date a request is accepted.
const LIFE: Duration = Duration::from_mins(5);

/// For a while, no answer gets through. If the same deposit is sent again later, this send is answered. Ten minutes
/// after the first send, its token is forgotten. Another program removes the account and makes it again at version 1.
/// Then all copies arrive that are still accepted.
#[tokio::test(start_paused = true)]
async fn no_copy_of_an_applied_change_is_applied_to_a_row_that_came_back_after_its_token_was_forgotten() {
    let (engine, began) = (with_foreign(Some(1)), Instant::now());
    let sends = Arc::<Mutex<Vec<(Instant, Vec<u8>)>>>::default();
    let noted = sends.clone();
    let client = client_whose(&engine, move |engine, _, operation, body| {
        if operation == "GetItem" {
            return Reply::from(engine.answer(operation, body));
        }
        assert_eq!(operation, "TransactWriteItems");
        noted.lock().expect("no panic").push((Instant::now(), body.to_vec()));
        let answer = engine.answer(operation, body);
        if began.elapsed() < SILENCE { Reply::Never } else { answer.into() }
    });
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + AHEAD + began.elapsed();
    let table: Table<Account<Anybody>> =
        store(&client, now, || fastrand::u64(..)).with_time_limit(Duration::from_mins(3)).table(TABLE);
    let told = table.update_with_retry(&key(), deposit(7)).await;
    let is_unknown = matches!(told, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. })));
    assert!(told.is_ok() || is_unknown, "{told:?}");
    assert_eq!(row(&engine)["balance"], number(57), "it was applied");

    sleep_until(began + Duration::from_mins(10) + Duration::from_secs(1)).await;
    remove(&engine);
    put(&engine, &foreign(50, Some(1)));
    sleep_until(began + Duration::from_mins(10) + Duration::from_secs(2)).await;
    for (sent, body) in sends.lock().expect("no panic").iter() {
        if sent.elapsed() <= AHEAD + LIFE {
            engine.answer("TransactWriteItems", body);
        }
    }
    assert_eq!(row(&engine), foreign(50, Some(1)), "told {told:?}, and applied again");
}
