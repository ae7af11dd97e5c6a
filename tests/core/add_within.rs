//! `add_within`: a number that many add to, in one request, and what is not known of it.

use super::accounts::{Account, TABLE, call, engine, rival};
use crate::harness::clients::{client_whose, error, lost};
use crate::harness::engine::Engine;
use fencepost::error::AddError;
use fencepost::{Failure, Key, Store, Table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// An account with 50.
async fn account() -> (Engine, Table<Account>, Key) {
    let engine = engine();
    let (table, key) = (Store::new(&engine.client()).table(TABLE), Key::from("a-1"));
    table.create(&key, &Account { balance: 50 }, &call()).await.expect("a free key");
    engine.take_log();
    (engine, table, key)
}

fn balance(engine: &Engine) -> i64 {
    let row = engine.row(TABLE, "accountId", "a-1");
    row["balance"]["N"].as_str().expect("a number").parse().expect("a whole number")
}

#[tokio::test]
async fn what_is_added_costs_one_request_and_raises_the_version() {
    let (engine, table, key) = account().await;
    for (by, expected) in [(5, 55), (-55, 0), (100, 100), (0, 100)] {
        table.add_within(&key, "balance", by, 0..=100, &call()).await.expect("within the bounds");
        assert_eq!((balance(&engine), engine.take_counts()), (expected, (0, 1)));
    }
    let current = table.get(&key, &call()).await.expect("an answer").expect("an account");
    assert_eq!((current.value.balance, current.version().get()), (100, 5));
}

#[tokio::test]
async fn what_would_pass_a_bound_is_refused_with_the_item_and_costs_one_request() {
    let (engine, table, key) = account().await;
    for by in [-51, 51, i64::MIN, i64::MAX] {
        let refused = table.add_within(&key, "balance", by, 0..=100, &call()).await.expect_err("out of bounds");
        assert!(matches!(refused, AddError::OutOfRange(current) if current.value.balance == 50), "{by}");
        assert_eq!((balance(&engine), engine.take_counts()), (50, (0, 1)), "{by}");
    }
}

/// Where `i64` ends, so does no bound: 0 - `i64::MIN` is more than any balance, and not `i64::MAX`.
#[tokio::test]
async fn the_ends_of_a_whole_number_are_no_way_round_a_bound() {
    let (engine, table, _) = account().await;
    for (id, balance, by, within) in [
        ("a-2", i64::MAX, i64::MIN, 0..=100),
        ("a-3", i64::MIN, i64::MAX, i64::MIN..=-2),
        ("a-4", i64::MIN, 1, i64::MIN..=i64::MIN),
    ] {
        let key = Key::from(id);
        table.create(&key, &Account { balance }, &call()).await.expect("a free key");
        let refused = table.add_within(&key, "balance", by, within, &call()).await.expect_err("out of bounds");
        assert!(matches!(refused, AddError::OutOfRange(current) if current.value.balance == balance), "{id}");
    }
    drop(engine);
}

#[tokio::test]
async fn what_is_not_there_or_was_deleted_is_not_added_to() {
    let (engine, table, key) = account().await;
    let other = Key::from("a-2");
    let missing = table.add_within(&other, "balance", 1, 0..=100, &call()).await.expect_err("nothing is there");
    assert!(matches!(missing, AddError::NotFound), "{missing:?}");
    assert_eq!(engine.row(TABLE, "accountId", "a-2"), Value::Null);
    table.delete(&key, &call()).await.expect("an account");
    let deleted = table.add_within(&key, "balance", 1, 0..=100, &call()).await.expect_err("only a tombstone");
    assert!(matches!(deleted, AddError::NotFound), "{deleted:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_asked_for_again_with_the_same_token_and_adds_once() {
    let (engine, _, key) = account().await;
    let tokens = Arc::<Mutex<Vec<String>>>::default();
    let noted = tokens.clone();
    let client = client_whose(&engine, move |engine, writes, operation, body| {
        let request: Value = serde_json::from_slice(body).expect("JSON");
        noted.lock().expect("no panic").push(request["ClientRequestToken"].as_str().expect("a token").to_owned());
        let answer = engine.answer(operation, body);
        if writes < 3 { lost() } else { answer }
    });
    Store::new(&client).table::<Account>(TABLE).add_within(&key, "balance", 5, 0..=100, &call()).await.expect("added");
    let tokens = tokens.lock().expect("no panic").clone();
    assert_eq!((tokens.len(), tokens.iter().collect::<BTreeSet<_>>().len()), (4, 1));
    assert_eq!(balance(&engine), 55);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_while_an_earlier_send_is_unanswered_is_unknown_whether_that_was_applied_or_not() {
    for applied in [true, false] {
        let (engine, _, key) = account().await;
        let client = client_whose(&engine, move |engine, writes, operation, body| {
            if writes == 1 {
                return error(400, "ThrottlingException"); // says nothing of the first
            }
            if writes > 1 {
                return engine.answer(operation, body);
            }
            if applied {
                engine.answer(operation, body);
                engine.forget_tokens();
            } else {
                rival(engine, "a-1");
            }
            lost()
        });
        let table = Store::new(&client).table::<Account>(TABLE);
        let by = if applied { 30 } else { 50 }; // twice 30, or 50 on top of what a rival added, is too much
        let unknown = table.add_within(&key, "balance", by, 0..=100, &call()).await.expect_err("refused at last");
        assert!(matches!(unknown, AddError::Failed(Failure::OutcomeUnknown { .. })), "{unknown:?}");
        assert_eq!(balance(&engine), if applied { 80 } else { 51 });
    }
}

/// With another token, a copy of a counter's step would be another change.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_recognised_again_is_unknown_and_nothing_is_sent_under_another() {
    let (engine, _, key) = account().await;
    let client = client_whose(&engine, move |engine, writes, operation, body| {
        let answer = engine.answer(operation, body);
        match writes {
            0 => lost(),
            1 => error(400, "IdempotentParameterMismatchException"),
            _ => answer,
        }
    });
    let table = Store::new(&client).table::<Account>(TABLE);
    let unknown = table.add_within(&key, "balance", 5, 0..=100, &call()).await.expect_err("not recognised");
    assert!(matches!(unknown, AddError::Failed(Failure::OutcomeUnknown { .. })), "{unknown:?}");
    assert_eq!(balance(&engine), 55);
}

#[tokio::test]
async fn an_addition_under_a_token_that_was_replaced_is_fenced_and_not_out_of_range() {
    let (engine, table, key) = account().await;
    let leases = table.store().leases("Leases");
    let (old, new) = (leases.token("k", 1), leases.token("k", 2));
    table.fenced_by(&new).add_within(&key, "balance", 5, 0..=100, &call()).await.expect("within the bounds");
    let fenced = table.fenced_by(&old).add_within(&key, "balance", 5, 0..=100, &call()).await.expect_err("replaced");
    assert!(matches!(fenced, AddError::Failed(Failure::Fenced)), "{fenced:?}");
    assert_eq!(balance(&engine), 55);
    // Under the current token the bounds speak.
    let refused = table.fenced_by(&new).add_within(&key, "balance", 50, 0..=100, &call()).await.expect_err("too much");
    assert!(matches!(refused, AddError::OutOfRange(current) if current.value.balance == 55));
}
