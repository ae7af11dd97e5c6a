//! A garbled answer proves nothing: neither that a write was applied or not, nor that there is no item.

use super::accounts::{Account, TABLE, add_one, engine};
use crate::harness::clients::client_whose;
use fencepost::maintenance::Task;
use fencepost::{Add, Call, Deadline, Error, Failure, Key, Reads, Store, Table, UpdateError};
use fencepost_test::{Dynamo, Fault, Garbling, Planned};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

fn scene(seed: u64) -> (Dynamo, Store) {
    let db = Dynamo::with_seed(seed);
    db.create_table(TABLE, "accountId");
    let store = Store::new(&db.client());
    (db, store)
}

async fn account(table: &Table<Account>) -> Key {
    let key = Key::from("a-1");
    table.create(&key, &Account { balance: 1 }).await.expect("a free key");
    key
}

/// `{}` means a missing item only in the answer to a read of one item. The answers to other reads name the requested
/// rows, even missing ones.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_speak_of_the_rows_that_were_asked_for_is_none() {
    let engine = engine();
    let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
    let key = account(&direct).await;
    let asked = AtomicUsize::new(0);
    let client = client_whose(&engine, move |engine, _, operation, body| {
        let says_nothing = asked.fetch_add(1, SeqCst).is_multiple_of(2);
        if says_nothing { (200, "{}".to_owned()) } else { engine.answer(operation, body) }
    });
    let table: Table<Account> = Store::new(&client).table(TABLE);
    let read = table.get_many(&[key.clone(), Key::from("nobody")]).await.expect("the second one is answered");
    assert_eq!(read.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    let page = table.query("a-1").pages().next_page().await.expect("the second one is answered").expect("a page");
    assert_eq!(page.items.len(), 1);
    let mut run = Store::new(&client).maintain(Task::Explain, TABLE, &["accountId"]);
    let explained = run.next_page().await.expect("the second one is answered").expect("a page");
    assert_eq!(explained.len(), 1);
}

/// Each form with so many seeds, which decide its bytes: with the request executed, and not.
fn forms(seeds: u64) -> impl Iterator<Item = (u64, Fault)> {
    let both = [true, false].map(move |executed| {
        let of_form = move |form| (0..seeds).map(move |seed| (seed, Fault::GarbledAs { form, executed }));
        Garbling::ALL.into_iter().flat_map(of_form)
    });
    both.into_iter().flatten()
}

fn garble(db: &Dynamo, fault: Fault, operation: &str, times: usize) -> Planned {
    db.fault(fault).of(operation).times(times)
}

#[tokio::test(start_paused = true)]
async fn a_garbled_answer_to_a_write_is_looked_into_and_the_change_is_applied_once() {
    for (seed, fault) in forms(2) {
        let (db, store) = scene(seed);
        let table: Table<Account> = store.table(TABLE);
        let key = account(&table).await;
        let mut garbled = vec![garble(&db, fault, "UpdateItem", 2), garble(&db, fault, "PutItem", 2)];
        let updated = table.update_with_retry(&key, add_one).await.expect("a resend shows it");
        assert_eq!((updated.value.balance, updated.version().get()), (2, 2), "{seed}: {fault}");
        table.create("a-2", &Account { balance: 5 }).await.expect("a resend shows it");
        assert_eq!(db.number(TABLE, "a-2", "balance"), 5, "{seed}: {fault}");
        garbled.extend([garble(&db, fault, "UpdateItem", 2), garble(&db, fault, "TransactWriteItems", 2)]);
        let added = table.add(&key, &Add::to("balance", 3, ..)).await.expect("a resend shows it");
        assert_eq!(added.at.version.get(), 3, "{seed}: {fault}");
        let mut reads = Reads::new();
        let item = reads.item("a-1", &table, &key);
        let moved = store.transact_with_retry(reads, |attempt| {
            let balance = attempt.get(item)?.expect("it is there").value.balance + 10;
            attempt.update_at(item, &Account { balance })?;
            Ok::<_, Error>(())
        });
        moved.await.expect("a resend shows it");
        assert_eq!(db.number(TABLE, "a-1", "balance"), 15, "{seed}: {fault}");
        assert!(garbled.iter().all(|planned| planned.struck() == 2), "{seed}: {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answers_are_all_garbled_is_unknown_whether_it_was_applied_or_not() {
    for (seed, fault) in forms(2) {
        let (db, store) = scene(seed);
        let table: Table<Account> = store.table(TABLE);
        let key = account(&table).await;
        db.fault(fault).of_writes().always();
        let soon = || Call::new(Deadline::within(Duration::from_secs(5)));
        let updated = table.in_call(&soon()).update_with_retry(&key, add_one).await.expect_err("nothing is proved");
        let is_unknown = matches!(updated, UpdateError::Failed(Failure::OutcomeUnknown { .. }));
        assert!(is_unknown, "{seed}: {fault}: {updated:?}");
        let created = table.in_call(&soon()).create("a-2", &Account { balance: 5 }).await;
        let is_unknown = matches!(created, Err(Error::Failed(Failure::OutcomeUnknown { .. })));
        assert!(is_unknown, "{seed}: {fault}: {created:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_garbled_answer_to_a_read_never_means_that_there_is_no_item() {
    for (seed, fault) in forms(2) {
        let (db, store) = scene(seed);
        let table: Table<Account> = store.table(TABLE);
        let key = account(&table).await;
        let garbled = ["GetItem", "BatchGetItem", "Query"].map(|operation| garble(&db, fault, operation, 2));
        let read = table.get(&key).await.expect("the third read is answered").expect("it is there");
        assert_eq!((read.value.balance, read.version().get()), (1, 1), "{seed}: {fault}");
        let read = table.get_many(std::slice::from_ref(&key)).await.expect("the third read is answered");
        assert_eq!(read.iter().flatten().count(), 1, "{seed}: {fault}");
        let mut pages = table.query("a-1").pages();
        let page = pages.next_page().await.expect("the third read is answered").expect("a page");
        assert_eq!(page.items.len(), 1, "{seed}: {fault}");
        assert_eq!(garbled.map(|planned| planned.struck()), [2, 2, 2]);
    }
}

/// The row in the refusal is unchanged, as after a writer that undid its own change.
#[tokio::test(start_paused = true)]
async fn a_conditional_write_that_is_refused_without_a_reason_is_made_again_and_applied_once() {
    let (db, store) = scene(1);
    let table: Table<Account> = store.table(TABLE);
    let key = account(&table).await;
    let conflict = db.conflict_next().of("UpdateItem").once();
    table.update_with_retry(&key, add_one).await.expect("the second attempt is applied");
    assert_eq!((db.number(TABLE, "a-1", "balance"), conflict.struck()), (2, 1));
}
