//! A garbled answer proves nothing: neither that a write was applied or not, nor that there is no item. From a server
//! that breaks the rules of HTTP/1.1, no answer is taken for another request's, and no change is applied twice.

use super::accounts::{Account, TABLE, add_one, balance, engine};
use crate::harness::clients::client_whose;
use crate::harness::server::patiently;
use crate::harness::unruly::{Manner, Unruly};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use fencepost::maintenance::Task;
use fencepost::{Call, Deadline, Edit, Error, Failure, Key, Reads, Store, Table, UpdateError};
use fencepost_test::{Changes, Dynamo, Fault, Garbling, Log, Planned};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// The table with one account.
async fn scene(seed: u64) -> (Dynamo, Table<Account>, Key) {
    let db = Dynamo::with_seed(seed);
    db.create_table(TABLE, "accountId");
    let table = Store::new(&db.client()).table(TABLE);
    let key = account(&table).await;
    (db, table, key)
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
        let (db, table, key) = scene(seed).await;
        let mut garbled = vec![garble(&db, fault, "UpdateItem", 2), garble(&db, fault, "PutItem", 2)];
        let updated = table.update_with_retry(&key, add_one).await.expect("a resend shows it");
        assert_eq!((updated.value.balance, updated.version().get()), (2, 2), "{seed}: {fault}");
        table.create("a-2", &Account { balance: 5 }).await.expect("a resend shows it");
        assert_eq!(db.number(TABLE, "a-2", "balance"), 5, "{seed}: {fault}");
        garbled.extend([garble(&db, fault, "UpdateItem", 2), garble(&db, fault, "TransactWriteItems", 2)]);
        let added = table.edit(&key, &Edit::add("balance", 3, ..)).await.expect("a resend shows it");
        assert_eq!(added.at.version.get(), 3, "{seed}: {fault}");
        let mut reads = Reads::new();
        let item = reads.item("a-1", &table, &key);
        let moved = table.store().transact_with_retry(reads, |attempt| {
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
        let (db, table, key) = scene(seed).await;
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
        let (db, table, key) = scene(seed).await;
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
    let (db, table, key) = scene(1).await;
    let conflict = db.conflict_next().of("UpdateItem").once();
    table.update_with_retry(&key, add_one).await.expect("the second attempt is applied");
    assert_eq!((db.number(TABLE, "a-1", "balance"), conflict.struck()), (2, 1));
}

/// The default HTTP client of the SDK, and the one of the functions.
fn http_clients() -> [SharedHttpClient; 2] {
    [aws_smithy_http_client::Builder::new().build_http(), fencepost::lambda::https_client()]
}

fn store_at(address: &str, http_client: SharedHttpClient) -> Store {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(format!("http://{address}"))
        .http_client(http_client);
    Store::new(&Client::from_conf(config.build()))
}

/// A server that uses this manner for every third answer to this operation. All others are correct.
async fn server(operation: &'static str, manner: Manner) -> Unruly {
    let asked = AtomicUsize::new(0);
    let choose = move |came: &str| {
        let is_struck = came == operation && asked.fetch_add(1, SeqCst) % 3 == 1;
        if is_struck { manner } else { Manner::Well }
    };
    Unruly::start(&engine(), choose).await
}

#[tokio::test]
async fn whatever_the_server_does_to_its_answer_a_change_is_applied_once_and_told() {
    for manner in Manner::ALL {
        // Its answer is given up or followed by another: the connection must not carry another request.
        let spoils = matches!(manner, Manner::Withheld | Manner::AndAnother | Manner::TooShort);
        let changes = if spoils { 9_i64 } else { 3 };
        for http_client in http_clients() {
            let server = server("UpdateItem", manner).await;
            let table: Table<Account> = store_at(&server.address, http_client).table(TABLE);
            let key = Key::from("a-1");
            table.create(&key, &Account { balance: 0 }).await.expect("a free key");
            for times in 1..=changes {
                let updated = patiently("an answer", table.update_with_retry(&key, add_one)).await;
                let updated = updated.unwrap_or_else(|error| panic!("{manner:?}: {error}"));
                assert_eq!((updated.value.balance, updated.version().get()), (times, times.unsigned_abs() + 1));
                // A read right after it, for which a stray answer may have waited.
                let read = table.get(&key).await.expect("an answer").expect("it is there");
                assert_eq!(read.value.balance, times, "{manner:?}");
            }
            assert_eq!(balance(&server.engine, "a-1"), changes, "{manner:?}");
            let mut struck = BTreeSet::new();
            for came in server.came() {
                assert!(!(spoils && struck.contains(&came.connection)), "{came:?} after {manner:?}");
                if came.manner == manner {
                    struck.insert(came.connection);
                }
            }
            assert!(struck.len() > usize::from(spoils), "{manner:?}");
        }
    }
}

#[tokio::test]
async fn whatever_the_server_does_to_its_answer_a_read_finds_what_is_there() {
    for manner in Manner::ALL {
        for http_client in http_clients() {
            let server = server("GetItem", manner).await;
            let table: Table<Account> = store_at(&server.address, http_client).table(TABLE);
            for balance in 0..3 {
                let key = Key::from(format!("a-{balance}"));
                table.create(&key, &Account { balance }).await.expect("a free key");
            }
            for balance in (0..3).chain(0..3) {
                let key = Key::from(format!("a-{balance}"));
                let read = patiently("an answer", table.get(&key)).await.expect("an answer");
                assert_eq!(read.expect("it is there").value.balance, balance, "{manner:?}");
            }
        }
    }
}

/// Four clients, each with an account of its own and one of all. The server has every manner.
#[tokio::test]
async fn under_every_manner_at_once_changes_are_applied_once_or_unknown_and_no_read_is_stale() {
    let seed = fencepost_test::seeds::asked(fencepost_test::seeds::SEED).unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("seed {seed} (of the manners; the order of requests is the machine's)");
    let rng = Mutex::new(fastrand::Rng::with_seed(seed));
    let engine = engine();
    let choose = move |_: &str| {
        let mut rng = rng.lock().expect("no panic");
        if rng.u8(..3) == 0 { Manner::ALL[rng.usize(..Manner::ALL.len())] } else { Manner::Well }
    };
    let server = Unruly::start(&engine, choose).await;
    let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
    for id in ["all", "0", "1", "2", "3"] {
        direct.create(id, &Account { balance: 0 }).await.expect("a free key");
    }
    let changes = Arc::new(Changes::default());
    let mut clients = JoinSet::new();
    let [own, functions] = http_clients();
    for (id, http_client) in ["0", "1", "2", "3"].into_iter().zip([own.clone(), own, functions.clone(), functions]) {
        let table: Table<Account> = store_at(&server.address, http_client).table(TABLE);
        clients.spawn(changes_accounts(table, id, changes.clone()));
    }
    patiently("the end", clients.join_all()).await;
    let held = |id: &str| balance(&engine, id);
    changes.check(&Log::default(), held).unwrap_or_else(|contradiction| panic!("{contradiction}"));
}

/// Changes the client's own account and the shared one, and reads the own one after each change.
async fn changes_accounts(table: Table<Account>, id: &'static str, changes: Arc<Changes>) {
    let soon = || Call::new(Deadline::within(Duration::from_secs(5)));
    let (mut at_least, mut at_most) = (0, 0);
    for round in 0..8 {
        let updated = table.in_call(&soon()).update_with_retry(id, add_one).await;
        at_most += 1;
        match updated {
            Ok(_) => {
                at_least += 1;
                changes.acknowledged(id, 1);
            }
            Err(UpdateError::Failed(Failure::OutcomeUnknown { .. })) => changes.unknown(id, 1),
            Err(error) => panic!("{id}, round {round}: {error}"),
        }
        let read = table.in_call(&soon()).get(id).await.expect("an answer").expect("it is there");
        assert!((at_least..=at_most).contains(&read.value.balance), "{id}: {} of {at_least}", read.value.balance);
        match table.in_call(&soon()).edit("all", &Edit::add("balance", 1, ..)).await {
            Ok(_) => changes.acknowledged("all", 1),
            Err(error) if error.to_string().starts_with("outcome unknown") => changes.unknown("all", 1),
            Err(error) => panic!("{id}, round {round}: {error}"),
        }
    }
}
