//! The store knows whether the client is connected, for all its tables and leases.

use super::accounts::{Account, TABLE};
use crate::harness::clients::{Reply, client_whose};
use crate::harness::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use fencepost::lease::LeaseTerms;
use fencepost::{Error, Key, Reads, Record, Store};
use std::time::Duration;
use tokio::time::Instant;

const OTHERS: &str = "Others";
const LEASES: &str = "Leases";

/// A client that never gets the answer to its first write. The write is applied.
fn client_without_the_first_answer(engine: &Engine) -> Client {
    client_whose(engine, |engine, writes, operation, body| {
        let answer = engine.answer(operation, body);
        if writes == 0 && !is_read(operation) { Reply::Never } else { answer.into() }
    })
}

/// The first write of a store. Its answer is lost.
#[derive(Clone, Copy, Debug)]
enum First {
    Create,
    Transaction,
    Acquire,
}

async fn write(store: &Store, first: First) {
    let key = Key::from("a-1");
    let others = store.table::<Account>(OTHERS);
    match first {
        First::Create => drop(others.create(&key, &Account { balance: 1 }).await.expect("a free key")),
        First::Transaction => {
            let mut reads = Reads::new();
            let item = reads.later("account", &others, &key);
            let done = store.transact_with_retry(reads, |attempt| {
                attempt.put_if_absent(item, &Account { balance: 1 })?;
                Ok::<_, Error>(())
            });
            done.await.expect("a free key");
        }
        First::Acquire => {
            let leases = store.leases(LEASES);
            drop(leases.acquire("k", "me", LeaseTerms::default()).await.expect("a free lease"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_write_after_a_read_of_another_table_is_sent_again_without_the_patience_of_a_first_connection() {
    for first in [First::Create, First::Transaction, First::Acquire] {
        for connected in [true, false] {
            let engine = Engine::with_tables(&[
                (TABLE, Account::PARTITION_KEY),
                (OTHERS, Account::PARTITION_KEY),
                (LEASES, "leaseKey"),
            ]);
            let store = Store::new(&client_without_the_first_answer(&engine));
            if connected {
                store.table::<Account>(TABLE).get("a-1").await.expect("an answer");
            }
            let began = Instant::now();
            write(&store, first).await;
            let took = began.elapsed();
            let expected = if connected { took < Duration::from_secs(1) } else { took >= Duration::from_secs(2) };
            assert!(expected, "{first:?} after a read: {connected}, took {took:?}");
        }
    }
}
