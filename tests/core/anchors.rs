//! Transactions in which one row remembers and the other steps are bare adds.

use super::accounts::{Account, TABLE, balance, change, engine, set_balance, with_accounts};
use crate::harness::clients::{client_whose, client_whose_first_write, lost};
use crate::harness::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use fencepost::{Edit, Error, Failure, Reads, Record, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const NOTES: &str = "Notes";

/// A note beside accounts. Its create is the anchor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    text: String,
}

/// An engine with an account of 50.
async fn with_account() -> Engine {
    let engine = Engine::with_tables(&[(TABLE, Account::PARTITION_KEY), (NOTES, Note::PARTITION_KEY)]);
    with_accounts(&engine, &["a-1"]).await;
    engine
}

/// Takes from the account and leaves a note, once. Refuses if the account has less.
async fn take(client: &Client, by: i64) -> Result<(), Error<i64>> {
    let store = Store::new(client);
    let mut reads = Reads::new();
    let note = reads.later("note", &store.table::<Note>(NOTES), "n-1");
    let account = reads.later("account", &store.table::<Account>(TABLE), "a-1");
    let taken = store.transact_with_retry(reads, |attempt| {
        if attempt.get(note)?.is_some() {
            return Ok(());
        }
        match attempt.get(account)? {
            Some(account) if account.value.balance < by => return Err(Error::Refused(account.value.balance)),
            _ => {}
        }
        attempt.put_if_absent(note, &Note { text: "taken".to_owned() })?;
        attempt.edit(account, &Edit::add("balance", -by, 0..=100))?;
        Ok(())
    });
    taken.await
}

fn state(engine: &Engine) -> (i64, bool) {
    (balance(engine, "a-1"), engine.row(NOTES, "noteId", "n-1")["text"].is_object())
}

#[tokio::test]
async fn a_bare_add_beside_an_anchor_demands_no_version_and_leaves_no_id() {
    let engine = with_account().await;
    let before = engine.row(TABLE, "accountId", "a-1");
    take(&engine.client(), 20).await.expect("there is enough");
    assert_eq!((state(&engine), engine.take_counts()), ((30, true), (0, 1)));
    let after = engine.row(TABLE, "accountId", "a-1");
    assert_eq!((&after["_version"]["N"], &after["_writes"]), (&json!("2"), &before["_writes"]));
}

#[tokio::test]
async fn a_bare_add_that_is_refused_says_why_and_nothing_is_written() {
    let engine = with_account().await;
    let refused = take(&engine.client(), 51).await;
    assert!(matches!(refused, Err(Error::Refused(50))), "{refused:?}");
    assert_eq!((state(&engine), engine.take_counts()), ((50, false), (0, 1)));
}

/// Takes 30 although the answer to the first send is lost and its token forgotten. Before the second send the account
/// changes by `meanwhile`.
async fn lost_once(applied: bool, meanwhile: i64) -> (Engine, Result<(), Error<i64>>, Vec<u8>) {
    let engine = with_account().await;
    let first = Arc::<Mutex<Vec<u8>>>::default();
    let noted = first.clone();
    let client = client_whose_first_write(&engine, move |engine, operation, body| {
        *noted.lock().expect("no panic") = body.to_vec();
        if applied {
            engine.answer(operation, body);
        }
        engine.forget_tokens();
        let values = json!({":by": {"N": meanwhile.to_string()}, ":one": {"N": "1"}});
        let key = json!({"accountId": {"S": "a-1"}});
        change(engine, TABLE, &key, "SET balance = balance + :by, #v = #v + :one", &values);
        lost()
    });
    let taken = take(&client, 30).await;
    let first = first.lock().expect("no panic").clone();
    (engine, taken, first)
}

#[tokio::test(start_paused = true)]
async fn a_lost_transaction_is_judged_by_its_anchor() {
    for (applied, meanwhile, left) in [(true, 0, 20), (true, 40, 60), (true, -20, 0), (false, 0, 20), (false, 40, 60)] {
        let (engine, taken, _) = lost_once(applied, meanwhile).await;
        assert!(taken.is_ok(), "{applied} {meanwhile}: {taken:?}");
        assert_eq!(state(&engine), (left, true), "{applied} {meanwhile}");
    }
}

/// The refusal of the account alone proves nothing about the lost send.
#[tokio::test(start_paused = true)]
async fn a_refusal_after_a_lost_answer_burns_the_anchor_so_that_no_copy_is_applied() {
    let (engine, taken, late) = lost_once(false, -30).await;
    assert!(matches!(taken, Err(Error::Refused(20))), "{taken:?}");
    let operations: Vec<_> = engine.take_log().into_iter().map(|asked| asked.operation).collect();
    let writes: Vec<_> = operations.iter().filter(|operation| !is_read(operation)).collect();
    assert_eq!(writes.last().map(|last| last.as_str()), Some("PutItem"), "{operations:?}");
    // There is enough again. The copy arrives.
    set_balance(&engine, "a-1", 90);
    let (status, answer) = engine.answer("TransactWriteItems", &late);
    assert_eq!((status, state(&engine)), (400, (90, false)), "{answer}");
    // The same request later is a new write, on the tombstone.
    take(&engine.client(), 30).await.expect("there is enough");
    assert_eq!(state(&engine), (60, true));
}

/// Takes 30 although the first send never arrives. The account then has 20, and before the burn, `rival` stands where the
/// note would be.
async fn burned_beside(rival: Value) -> (Engine, Result<(), Error<i64>>) {
    let engine = with_account().await;
    let client = client_whose(&engine, move |engine, writes, operation, body| {
        if operation == "PutItem" {
            engine.raw("PutItem", &json!({"TableName": NOTES, "Item": rival}));
        }
        if is_read(operation) || writes > 0 {
            return engine.answer(operation, body);
        }
        set_balance(engine, "a-1", 20);
        lost()
    });
    let taken = take(&client, 30).await;
    (engine, taken)
}

/// A note of another client, with these attributes too.
fn note_of_a_rival(more: &Value) -> Value {
    let mut row = json!({"noteId": {"S": "n-1"}, "_version": {"N": "1"}, "_incarnation": {"B": "AAAAAAAAAAE="},
        "_writes": {"M": {"AAAAAAAAAAE": {"N": "1"}}}});
    for (name, value) in more.as_object().expect("attributes") {
        row[name] = value.clone();
    }
    row
}

#[tokio::test(start_paused = true)]
async fn a_key_that_another_client_has_taken_needs_no_burn_unless_its_row_may_vanish_soon() {
    let (engine, taken) = burned_beside(note_of_a_rival(&json!({"text": {"S": "theirs"}}))).await;
    assert!(taken.is_ok(), "there is a note: {taken:?}");
    assert_eq!(state(&engine), (20, true));
    // TTL may remove this tombstone at any moment. Then the lost send could still be applied.
    let (engine, taken) = burned_beside(note_of_a_rival(&json!({"_purgeAt": {"N": "1"}}))).await;
    assert!(matches!(taken, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{taken:?}");
    assert_eq!(state(&engine), (20, false));
}

/// Adds alone: the first known item becomes the anchor.
async fn move_between(engine: &Engine, client: &Client, reads_first: bool) -> Result<(), Error<()>> {
    let store = Store::new(client);
    let accounts: Table<Account> = store.table(TABLE);
    let mut reads = Reads::new();
    let items = ["a-1", "a-2"]
        .map(|id| if reads_first { reads.item(id, &accounts, id) } else { reads.later(id, &accounts, id) });
    engine.take_log();
    let moved = store.transact_with_retry(reads, |attempt| {
        attempt.edit(items[0], &Edit::add("balance", -10, 0..=1000))?;
        attempt.edit(items[1], &Edit::add("balance", 10, 0..=1000))?;
        Ok(())
    });
    moved.await
}

#[tokio::test(start_paused = true)]
async fn of_adds_alone_the_first_known_one_remembers_and_a_lost_answer_moves_once() {
    for applied in [true, false] {
        let engine = engine();
        with_accounts(&engine, &["a-1", "a-2"]).await;
        let client = client_whose_first_write(&engine, move |engine, operation, body| {
            if applied {
                engine.answer(operation, body);
            }
            engine.forget_tokens();
            lost()
        });
        move_between(&engine, &client, true).await.expect("there is enough");
        assert_eq!(["a-1", "a-2"].map(|id| balance(&engine, id)), [40, 60], "{applied}");
        let remembered =
            |id: &str| engine.row(TABLE, "accountId", id)["_writes"]["M"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!([remembered("a-1"), remembered("a-2")], [2, 1], "{applied}");
    }
}

#[tokio::test]
async fn adds_alone_to_items_that_nobody_has_read_are_refused_before_anything_is_sent() {
    let engine = with_account().await;
    let refused = move_between(&engine, &engine.client(), false).await;
    assert!(matches!(refused, Err(Error::Failed(Failure::InvalidTransaction { .. }))), "{refused:?}");
    let asked: Vec<Value> = engine.take_log().into_iter().map(|asked| asked.body).collect();
    assert!(asked.is_empty(), "{asked:?}");
}
