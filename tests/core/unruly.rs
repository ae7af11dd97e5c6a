//! A server that breaks the rules of HTTP/1.1: no answer is taken for another request's, and no change is applied
//! twice.

use super::accounts::{Account, TABLE, add_one, balance, engine};
use crate::harness::server::patiently;
use crate::harness::unruly::{Manner, Unruly};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use fencepost::{Add, Call, Deadline, Failure, Key, Store, Table, UpdateError};
use fencepost_test::{Changes, Log};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

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
        match table.in_call(&soon()).add("all", &Add::to("balance", 1, ..)).await {
            Ok(_) => changes.acknowledged("all", 1),
            Err(error) if error.to_string().starts_with("outcome unknown") => changes.unknown("all", 1),
            Err(error) => panic!("{id}, round {round}: {error}"),
        }
    }
}
