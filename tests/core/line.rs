//! The line at an item: which changes take a ticket, how long they wait, and that nothing else rests on it.

use super::accounts::{Account, TABLE, add_one, balance, change, engine, rival, with_accounts};
use crate::harness::clients::{Reply, Way, client_that, client_whose};
use crate::harness::engine::{Engine, number};
use aws_sdk_dynamodb::Client;
use fencepost::{Record, Settings, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// The requests before the ticket of an update that loses its first race: a read and a refused write.
const TICKET: usize = 2;
/// The writes before it.
const WRITES: usize = 1;

fn row(engine: &Engine) -> Value {
    engine.row(TABLE, "accountId", "a-1")
}

/// The numbers of the line in the row: tickets given, and the last one served.
fn line(engine: &Engine) -> [Option<i64>; 2] {
    let row = row(engine);
    ["_given", "_served"].map(|name| row.get(name).map(|_| number(&row, name)))
}

fn set_line(engine: &Engine, given: u64, served: u64) {
    let values = json!({":g": {"N": given.to_string()}, ":s": {"N": served.to_string()}});
    change(engine, TABLE, &json!({"accountId": {"S": "a-1"}}), "SET #given = :g, #served = :s", &values);
}

/// Adds one, after a rival that comes between the read and the write.
async fn add_one_after_a_rival(engine: &Engine, client: &Client) -> Result<i64, UpdateError> {
    let accounts: Table<Account> = Store::new(client).table(TABLE);
    let comes = AtomicBool::new(true);
    let decide = |account: &Account| {
        if comes.swap(false, Relaxed) {
            rival(engine, "a-1");
        }
        add_one(account)
    };
    Ok(accounts.update_with_retry("a-1", decide).await?.value.balance)
}

#[tokio::test(start_paused = true)]
async fn a_change_that_met_another_takes_a_ticket_and_a_commit_ends_its_turn() {
    for (given, served, then) in [(0, 0, [1, 1]), (5, 2, [6, 6]), (5, 9, [6, 9])] {
        let engine = engine();
        with_accounts(&engine, &["a-1"]).await;
        set_line(&engine, given, served);
        assert_eq!(add_one_after_a_rival(&engine, &engine.client()).await.expect("an account"), 52);
        assert_eq!((line(&engine), number(&row(&engine), "_version")), (then.map(Some), 3), "{given}, {served}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_turns_before_its_own() {
    for (served, millis) in [(0, 300), (4, 204), (9, 84), (10, 80)] {
        let engine = engine();
        with_accounts(&engine, &["a-1"]).await;
        set_line(&engine, 10, served);
        let client = client_that(&engine, |_| Way::Answered(20));
        let begun = Instant::now();
        add_one_after_a_rival(&engine, &client).await.expect("an account");
        let took = begun.elapsed().as_millis();
        assert!((millis..millis + 10).contains(&took), "{served}: {took} ms");
    }
}

/// It is a look: others may have left the line, or have come from outside it.
#[tokio::test(start_paused = true)]
async fn a_change_that_is_refused_in_line_waits_for_what_is_left_and_takes_no_other_ticket() {
    let engine = engine();
    with_accounts(&engine, &["a-1"]).await;
    set_line(&engine, 10, 0);
    let client = client_whose(&engine, |engine, writes, operation, body| {
        if writes == WRITES + 1 {
            set_line(engine, 11, 10);
            rival(engine, "a-1");
        }
        Reply::from(engine.answer(operation, body))
    });
    assert_eq!(add_one_after_a_rival(&engine, &client).await.expect("an account"), 53);
    assert_eq!((line(&engine), number(&row(&engine), "_version")), ([Some(11), Some(11)], 4));
}

#[tokio::test(start_paused = true)]
async fn no_ticket_makes_a_row_where_none_is() {
    let engine = engine();
    with_accounts(&engine, &["a-1"]).await;
    let client = client_whose(&engine, |engine, writes, operation, body| {
        if writes == WRITES {
            engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"accountId": {"S": "a-1"}}}));
        }
        Reply::from(engine.answer(operation, body))
    });
    let gone = add_one_after_a_rival(&engine, &client).await.expect_err("the row was removed");
    assert!(matches!(gone, UpdateError::NotFound), "{gone:?}");
    assert_eq!(row(&engine), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_ticket_is_not_permitted_does_without() {
    let engine = engine();
    with_accounts(&engine, &["a-1"]).await;
    let client = client_that(&engine, |requests| if requests == TICKET { Way::Denied } else { Way::Answered(5) });
    assert_eq!(add_one_after_a_rival(&engine, &client).await.expect("an account"), 52);
    assert_eq!(line(&engine), [None; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_with_a_lost_answer_is_left_to_nobody_and_the_change_is_applied_once() {
    let engine = engine();
    with_accounts(&engine, &["a-1"]).await;
    let client = client_that(&engine, |requests| if requests == TICKET { Way::AnswerLost } else { Way::Answered(5) });
    let begun = Instant::now();
    assert_eq!(add_one_after_a_rival(&engine, &client).await.expect("an account"), 52);
    assert_eq!((line(&engine), balance(&engine, "a-1")), ([Some(2), Some(2)], 52));
    assert!(begun.elapsed() < Duration::from_millis(300), "{:?}", begun.elapsed());
}

/// An account that programs without Fencepost write too.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "accountId", settings = Settings::without_ttl().shared_with_versioned_writers().swept())]
struct Shared {
    balance: i64,
}

#[tokio::test(start_paused = true)]
async fn a_table_that_other_programs_write_has_no_lines() {
    let engine = engine();
    let accounts: Table<Shared> = Store::new(&engine.client()).table(TABLE);
    accounts.create("a-1", &Shared { balance: 50 }).await.expect("a free key");
    engine.take_log();
    let comes = AtomicBool::new(true);
    let decide = |account: &Shared| {
        if comes.swap(false, Relaxed) {
            rival(&engine, "a-1");
        }
        Ok::<_, Infallible>(Some(Shared { balance: account.balance + 1 }))
    };
    accounts.update_with_retry("a-1", decide).await.expect("an account");
    assert_eq!((line(&engine), engine.take_counts()), ([None; 2], (1, 2)));
}
