//! Transactions: the first attempt is refused and lands while the next one is on its way.

use super::{
    NOTES, Note, Told, account, assert_told_is_stored, before_the_second, both, both_with_the_note, by_transaction,
    deposit, fill, forget, left, note, one, poorer_for_a_while, stock, take_or_halve, with_accounts, with_shelf,
};
use crate::core::accounts::{self, Account, TABLE};
use crate::harness::clients::{client_whose, client_whose_first_write, step_in_conflict};
use crate::harness::engine::{Engine, is_read, number};
use crate::harness::late::{Moments, Rival, naming_last};
use aws_sdk_dynamodb::Client;
use fencepost::{Edit, Error, Failure, Reads, Record, Settings, Store, Table, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Mutex;

/// Takes all of `a-1`, but 30 at most, and leaves a note of it.
async fn take_with_note(client: &Client) -> Told<i64> {
    let store = Store::new(client);
    let mut reads = Reads::new();
    let note = reads.later("note", &store.table::<Note>(NOTES), "n-1");
    let account = reads.item("account", &store.table::<Account>(TABLE), "a-1");
    let taken = store.transact_with_retry(reads, |attempt| {
        if attempt.get(note)?.is_some() {
            return Err(Error::Refused(()));
        }
        let amount = attempt.get(account)?.map_or(0, |account| account.value.balance).min(30);
        attempt.put_if_absent(note, &Note { amount })?;
        attempt.edit(account, &Edit::add("balance", -amount, 0..=1000))?;
        Ok(amount)
    });
    by_transaction(taken.await)
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_creates_and_adds_is_answered_by_the_attempt_that_was_committed() {
    let rows = |engine: &Engine| vec![note(engine, "n-1"), account(engine, "a-1")];
    let answer = |before: &[Value], after: &[Value]| {
        let amount = number(&after[0], "amount");
        assert_eq!(number(&before[1], "balance") - number(&after[1], "balance"), amount);
        amount
    };
    assert_told_is_stored(Moments::all(), with_accounts, poorer_for_a_while(), rows, take_with_note, answer).await;
}

/// Moves all of `a-1`, but 30 at most, to `a-2`. The first add remembers.
async fn take_by_adds(client: &Client) -> Told<i64> {
    move_unless_above(i64::MAX, client).await
}

/// The same, and `a-2` refuses more when it is full.
async fn move_unless_full(client: &Client) -> Told<i64> {
    move_unless_above(900, client).await
}

async fn move_unless_above(most: i64, client: &Client) -> Told<i64> {
    let store = Store::new(client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let [from, to] = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let taken = store.transact_with_retry(reads, |attempt| {
        if attempt.get(to)?.is_none_or(|account| account.value.balance > most) {
            return Err(Error::Refused(()));
        }
        let amount = balance(attempt.get(from)?).min(30);
        attempt.edit(from, &Edit::add("balance", -amount, 0..=1000))?;
        attempt.edit(to, &Edit::add("balance", amount, 0..=1000))?;
        Ok(amount)
    });
    by_transaction(taken.await)
}

#[tokio::test(start_paused = true)]
async fn a_transaction_of_adds_is_answered_by_the_attempt_that_was_committed() {
    assert_told_is_stored(Moments::all(), with_accounts, poorer_for_a_while(), both, take_by_adds, moved).await;
}

/// The amount moved from the first account to the second.
fn moved(before: &[Value], after: &[Value]) -> i64 {
    let moved = |of: usize| number(&after[of], "balance") - number(&before[of], "balance");
    assert_eq!(moved(0), -moved(1));
    moved(1)
}

/// Takes 30 from `a-1` with the note `n-1`, or if `a-1` has less, from `a-2` with the note `n-2`.
async fn take_from_either<N: Record>(note_of_30: &N, client: &Client) -> Told<&'static str> {
    let store = Store::new(client);
    let (accounts, notes): (Table<Account>, Table<N>) = (store.table(TABLE), store.table(NOTES));
    let mut reads = Reads::new();
    let [one, two] = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let [by_one, by_two] = ["n-1", "n-2"].map(|id| reads.later(id, &notes, id));
    let taken = store.transact_with_retry(reads, |attempt| {
        let has_enough = attempt.get(one)?.is_some_and(|account| account.value.balance >= 30);
        let (account, note, name) = if has_enough { (one, by_one, "n-1") } else { (two, by_two, "n-2") };
        if attempt.get(note)?.is_some() {
            return Err(Error::Refused(()));
        }
        attempt.put_if_absent(note, note_of_30)?;
        attempt.edit(account, &Edit::add("balance", -30, 0..=1000))?;
        Ok(name)
    });
    by_transaction(taken.await)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_rows_the_next_one_leaves_alone_is_not_applied_beside_it() {
    let rows = |engine: &Engine| {
        let accounts = ["a-1", "a-2"].map(|id| account(engine, id));
        accounts.into_iter().chain(["n-1", "n-2"].map(|id| note(engine, id))).collect()
    };
    let answer = |_: &[Value], after: &[Value]| if after[2]["amount"].is_object() { "n-1" } else { "n-2" };
    let take = async |client: &Client| take_from_either(&Note { amount: 30 }, client).await;
    let known = assert_told_is_stored(Moments::all(), with_accounts, poorer_for_a_while(), rows, take, answer).await;
    assert_eq!(known, Moments::all().count(), "the burn of the first attempt proves what became of it");
}

/// A burn would be a tombstone, and another program may remove it before the copy arrives.
#[tokio::test(start_paused = true)]
async fn a_create_beside_other_programs_is_not_burned_and_no_attempt_follows_it() {
    let engine = with_accounts().await;
    // The first transaction is refused: a-1 has too little by then.
    let client = client_whose_first_write(&engine, |engine, operation, body| {
        deposit(engine, -30);
        engine.answer(operation, body)
    });
    let told = take_from_either(&Loose { amount: 30 }, &client).await;
    assert!(matches!(told, Told::Unknown), "the refused attempt may still create n-1");
    assert_eq!(["n-1", "n-2"].map(|id| note(&engine, id)), [Value::Null, Value::Null], "nothing is written");
}

/// An answer that changes nothing is like an answer without a step: there is no second change beside a copy of the first.
#[tokio::test(start_paused = true)]
async fn a_check_may_follow_a_refused_create_that_cannot_be_burned() {
    let engine = with_a_loose_note().await;
    let store = Store::new(&engine.client());
    let mut reads = Reads::new();
    let note = reads.later("note", &store.table::<Loose>(NOTES), "n-1");
    engine.take_log();
    let told = store.transact_with_retry(reads, |attempt| {
        let Some(there) = attempt.get(note)? else {
            attempt.put_if_absent(note, &Loose { amount: 7 })?;
            return Ok::<_, Error>(7);
        };
        attempt.check(note)?;
        Ok(there.value.amount)
    });
    assert_eq!(told.await.expect("no fault"), 30);
    assert_eq!(engine.take_log().len(), 2, "the refused create and the check");
}

/// The check is refused, and the next decision creates another note: a copy of the first create may be applied beside it.
#[tokio::test(start_paused = true)]
async fn a_refused_create_without_a_burn_stays_open_after_a_check() {
    let engine = with_a_loose_note().await;
    let client = client_whose(&engine, |engine, write, operation, body| {
        if write == 1 && !is_read(operation) {
            let values = json!({":one": {"N": "1"}});
            accounts::change(engine, NOTES, &json!({"noteId": {"S": "n-1"}}), "ADD amount :one", &values);
        }
        engine.answer(operation, body)
    });
    let store = Store::new(&client);
    let (notes, mut reads): (Table<Loose>, _) = (store.table(NOTES), Reads::new());
    let [note, other] = ["n-1", "n-2"].map(|id| reads.later(id, &notes, id));
    let told = store.transact_with_retry(reads, |attempt| {
        match attempt.get(note)?.map(|there| there.value.amount) {
            None => drop(attempt.put_if_absent(note, &Loose { amount: 7 })?),
            Some(30) => attempt.check(note)?,
            Some(_) => drop(attempt.put_if_absent(other, &Loose { amount: 7 })?),
        }
        Ok::<_, Error>(())
    });
    let told = told.await;
    assert!(matches!(told, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{told:?}");
}

/// A note in a table where other programs write as they like, and where a delete removes the row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId", settings = Settings::open_to_any())]
struct Loose {
    amount: i64,
}

async fn with_a_loose_note() -> Engine {
    let engine = with_accounts().await;
    let notes: Table<Loose> = Store::new(&engine.client()).table(NOTES);
    notes.create("n-1", &Loose { amount: 30 }).await.expect("a free key");
    engine
}

/// Takes 30 from `a-1` if it has them, otherwise from `a-2`, and redeems the note: it is removed, or set to 0 if `a-1`
/// pays and `keeps` is true. Refuses without a note.
async fn redeem(keeps: bool, client: &Client) -> Told<&'static str> {
    let store = Store::new(client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let [one, two] = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let note = reads.item("note", &store.table::<Loose>(NOTES), "n-1");
    let redeemed = store.transact_with_retry(reads, |attempt| {
        if attempt.get(note)?.is_none() {
            return Err(Error::Refused(()));
        }
        let has_enough = attempt.get(one)?.is_some_and(|account| account.value.balance >= 30);
        let (account, name) = if has_enough { (one, "a-1") } else { (two, "a-2") };
        if has_enough && keeps {
            attempt.update_at(note, &Loose { amount: 0 })?;
        } else {
            attempt.delete_at(note)?;
        }
        attempt.edit(account, &Edit::add("balance", -30, 0..=1000))?;
        Ok(name)
    });
    by_transaction(redeemed.await)
}

fn account_that_paid(before: &[Value], after: &[Value]) -> &'static str {
    if number(&before[0], "balance") == number(&after[0], "balance") { "a-2" } else { "a-1" }
}

/// The row removed by the first attempt leaves no trace.
#[tokio::test(start_paused = true)]
async fn a_row_that_an_open_attempt_may_have_removed_itself_does_not_deny_it() {
    let redeem = async |client: &Client| redeem(false, client).await;
    assert_told_is_stored(
        Moments::all(),
        with_a_loose_note,
        poorer_for_a_while(),
        both_with_the_note,
        redeem,
        account_that_paid,
    )
    .await;
}

/// Another program sets the note back as it was, but keeps the memory.
#[tokio::test(start_paused = true)]
async fn a_removal_demands_that_the_row_does_not_remember_an_open_attempt() {
    let set_back = |engine: &Engine| {
        let request = json!({"TableName": NOTES, "Key": {"noteId": {"S": "n-1"}},
            "UpdateExpression": "SET amount = :a, #v = :v", "ConditionExpression": "amount = :zero", "ExpressionAttributeNames": {"#v": "_version"},
            "ExpressionAttributeValues": {":a": {"N": "30"}, ":v": {"N": "1"}, ":zero": {"N": "0"}}});
        engine.answer("UpdateItem", request.to_string().as_bytes());
    };
    let rival = Rival { after: set_back, ..poorer_for_a_while() };
    let redeem = async |client: &Client| redeem(true, client).await;
    assert_told_is_stored(Moments::all(), with_a_loose_note, rival, both, redeem, account_that_paid).await;
}

fn balance(account: Option<Versioned<Account>>) -> i64 {
    account.map_or(0, |account| account.value.balance)
}

/// Moves 30 from `a-1` to `a-2`, which holds 100 at most. If it has no room, promises the 30 by a note.
async fn move_or_promise(client: &Client) -> Told<&'static str> {
    let store = Store::new(client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let [from, to] = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let note = reads.later("note", &store.table::<Note>(NOTES), "n-1");
    let moved = store.transact_with_retry(reads, |attempt| {
        let (left, there) = (balance(attempt.get(from)?), balance(attempt.get(to)?));
        if there + 30 > 100 {
            attempt.put_if_absent(note, &Note { amount: 30 })?;
            return Ok("promised");
        }
        attempt.update_at(from, &Account { balance: left - 30 })?;
        attempt.edit(to, &Edit::add("balance", 30, 0..=100))?;
        Ok("moved")
    });
    by_transaction(moved.await)
}

/// The burn of the first attempt finds a row that has forgotten its outcome.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_its_row_may_have_forgotten_is_not_followed_by_one_that_leaves_that_row_alone() {
    let answer = |_: &[Value], after: &[Value]| if after[2]["amount"].is_object() { "promised" } else { "moved" };
    let rival = Rival { after: forget, ..Rival::of(|engine| fill(engine, 40), |engine| fill(engine, -40)) };
    assert_told_is_stored(Moments::all(), with_accounts, rival, both_with_the_note, move_or_promise, answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_transaction_of_adds_that_its_row_may_have_forgotten_is_not_followed_by_another() {
    let rival = Rival { after: forget, ..poorer_for_a_while() };
    assert_told_is_stored(before_the_second(), with_accounts, rival, both, take_by_adds, moved).await;
}

/// The first account remembers. The cancellation of the second attempt names only the other one, which is full.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_committed_is_found_although_the_cancellation_of_the_next_one_does_not_show_its_row() {
    let rival = Rival { after: |engine| fill(engine, 920), names_last: true, ..poorer_for_a_while() };
    assert_told_is_stored(before_the_second(), with_accounts, rival, both, move_unless_full, moved).await;
}

/// Moves as much from `a-1` to `a-2` as these have and can take, but 30 at most, and leaves a note of it.
async fn move_with_note(client: &Client) -> Told<i64> {
    let store = Store::new(client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let [from, to] = ["a-1", "a-2"].map(|id| reads.item(id, &accounts, id));
    let note = reads.later("note", &store.table::<Note>(NOTES), "n-1");
    let moved = store.transact_with_retry(reads, |attempt| {
        let (left, there) = (balance(attempt.get(from)?), balance(attempt.get(to)?));
        let amount = (100 - there).min(30);
        attempt.update_at(from, &Account { balance: left - amount })?;
        attempt.put_if_absent(note, &Note { amount })?;
        attempt.edit(to, &Edit::add("balance", amount, 0..=100))?;
        Ok(amount)
    });
    by_transaction(moved.await)
}

/// The cancellation of the second attempt shows neither the decisive account nor the note, which is damaged. Both are
/// read.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_committed_is_told_although_a_row_that_is_read_with_its_own_is_corrupt() {
    let engine = with_accounts().await;
    let first = Mutex::new(Vec::new());
    let client = client_whose(&engine, move |engine, writes, operation, body| match writes {
        _ if is_read(operation) => engine.answer(operation, body),
        0 => {
            *first.lock().expect("no panic") = body.to_vec();
            fill(engine, 40);
            engine.answer(operation, body)
        }
        1 => {
            fill(engine, -40);
            let (status, answer) = engine.answer("TransactWriteItems", &first.lock().expect("no panic"));
            assert_eq!(status, 200, "{answer}");
            fill(engine, 15);
            let damaged = json!({"TableName": NOTES, "Key": {"noteId": {"S": "n-1"}},
                "UpdateExpression": "SET #v = :text", "ExpressionAttributeNames": {"#v": "_version"},
                "ExpressionAttributeValues": {":text": {"S": "damaged"}}});
            engine.raw("UpdateItem", &damaged);
            let (status, answer) = engine.answer(operation, body);
            (status, step_in_conflict(&naming_last(&answer), 1))
        }
        _ => panic!("nothing is left to write"),
    });
    assert!(matches!(move_with_note(&client).await, Told::Applied(30)));
}

/// After the second copy, everything is throttled until the deadline: no row proves the copy.
#[tokio::test(start_paused = true)]
async fn a_change_that_ends_without_an_answer_while_an_earlier_attempt_may_have_been_applied_is_unknown() {
    let throttling = |rival| Rival { throttles: true, ..rival };
    let rival = throttling(Rival::of(|engine| stock(engine, -20), |engine| stock(engine, 40)));
    assert_told_is_stored(before_the_second(), with_shelf, rival, one, take_or_halve, left).await;
    let rival = throttling(poorer_for_a_while());
    assert_told_is_stored(before_the_second(), with_accounts, rival, both, take_by_adds, moved).await;
}
