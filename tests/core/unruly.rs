//! An answer that does not speak of the rows that were asked for is none. From a server
//! that breaks the rules of HTTP/1.1, no answer is taken for another request's, and no change is applied twice.

use super::accounts::{Account, TABLE, add_one, balance, engine};
use crate::harness::clients::client_whose;
use crate::harness::server::{config_at, patiently};
use crate::harness::unruly::{Manner, Unruly};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::SharedHttpClient;
use fencepost::maintenance::Task;
use fencepost::{Key, Store, Table};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// `{}` means a missing item only in the answer to a read of one item. The answers to other reads name the requested
/// rows, even missing ones.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_speak_of_the_rows_that_were_asked_for_is_none() {
    let engine = engine();
    let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
    let key = Key::from("a-1");
    direct.create(&key, &Account { balance: 1 }).await.expect("a free key");
    let asked = AtomicUsize::new(0);
    let client = client_whose(&engine, move |engine, _, operation, body| {
        let says_nothing = asked.fetch_add(1, SeqCst).is_multiple_of(2);
        if says_nothing { (200, "{}".to_owned()) } else { engine.answer(operation, body) }
    });
    let table: Table<Account> = Store::new(&client).table(TABLE);
    let read = table.get_many(&[key.clone(), Key::from("nobody")]).await.expect("the second one is answered");
    assert_eq!(read.iter().map(|read| matches!(read, Ok(Some(_)))).collect::<Vec<_>>(), [true, false]);
    let page = table.query("a-1").pages().next_page().await.expect("the second one is answered").expect("a page");
    assert_eq!(page.items.len(), 1);
    let mut run = Store::new(&client).maintain(Task::Explain, TABLE, &["accountId"]);
    let explained = run.next_page().await.expect("the second one is answered").expect("a page");
    assert_eq!(explained.len(), 1);
}

/// The default HTTP client of the SDK, and the one of the functions.
fn http_clients() -> [SharedHttpClient; 2] {
    [aws_smithy_http_client::Builder::new().build_http(), fencepost::lambda::https_client()]
}

fn store_at(address: &str, http_client: SharedHttpClient) -> Store {
    Store::new(&Client::from_conf(config_at(&format!("http://{address}"), http_client).build()))
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
