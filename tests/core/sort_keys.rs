//! Keys of every kind, and tables with a sort key, on the real engine.

use super::accounts::{Account, TABLE, engine};
use crate::harness::engine::Engine;
use fencepost::{Error, Exists, Failure, Key, Reads, Record, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::convert::Infallible;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "sensor", sort = "at")]
struct Reading {
    degrees: i64,
}

const READINGS: &str = "Readings";

/// Readings, sorted by a number.
fn readings() -> (Engine, Table<Reading>) {
    let engine = Engine::with_tables(&[]);
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let part = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let table = json!({
        "TableName": READINGS,
        "KeySchema": [part("sensor", "HASH"), part("at", "RANGE")],
        "AttributeDefinitions": [attribute("sensor", "S"), attribute("at", "N")],
        "BillingMode": "PAY_PER_REQUEST",
    });
    engine.raw("CreateTable", &table);
    let table = Store::new(&engine.client()).table(READINGS);
    (engine, table)
}

#[tokio::test]
async fn items_under_one_partition_key_are_created_changed_and_deleted_apart() {
    let (_engine, table) = readings();
    let (first, second) = (Key::from(("roof", 1)), Key::from(("roof", 2)));
    table.create(&first, &Reading { degrees: 10 }).await.expect("a free key");
    table.create(&second, &Reading { degrees: 20 }).await.expect("a free key");
    let taken = table.create(&first, &Reading { degrees: 0 }).await.expect_err("taken");
    assert!(matches!(taken, Error::Refused(Exists(current)) if current.value.degrees == 10));

    let warmer = |reading: &Reading| Ok::<_, Infallible>(Some(Reading { degrees: reading.degrees + 1 }));
    let at = table.update_with_retry(&first, warmer).await.expect("a reading").at;
    let update = table.update_at_version(&first, at, warmer).await.expect("that version");
    assert_eq!((update.value.degrees, update.version().get()), (12, 3));
    table.delete_at_version(&first, update.at).await.expect("that version");
    assert_eq!(table.get(&first).await.expect("an answer"), None);
    let other = table.get(&second).await.expect("an answer").expect("it was left alone");
    assert_eq!((other.value.degrees, other.version().get()), (20, 1));
}

#[tokio::test]
async fn a_transaction_moves_between_two_items_under_one_partition_key() {
    let (_engine, table) = readings();
    let keys = [Key::from(("roof", 1i64)), Key::from((String::from("roof"), 2u64))];
    table.create(&keys[0], &Reading { degrees: 10 }).await.expect("a free key");
    let mut reads = Reads::new();
    let [from, to] = [("from", &keys[0]), ("to", &keys[1])].map(|(name, key)| reads.item(name, &table, key));
    let moved = table.store().transact_with_retry(reads, |attempt| {
        let Some(reading) = attempt.get(from)? else { return Err(Error::Refused("there is no reading")) };
        attempt.delete_at(from)?;
        attempt.put_if_absent(to, &reading.value)?;
        Ok(())
    });
    moved.await.expect("moved");
    assert_eq!(table.get(&keys[0]).await.expect("an answer"), None);
    let there = table.get(&keys[1]).await.expect("an answer").expect("moved");
    assert_eq!(there.value, Reading { degrees: 10 });
}

#[tokio::test]
async fn a_key_of_a_number_or_of_bytes_finds_its_item() {
    fn keys() -> [(&'static str, Vec<Key>); 2] {
        let numbers = [Key::from(-7), Key::from(7i64 << 40), Key::from(7u32), Key::from(u64::MAX)];
        [("N", numbers.into()), ("B", vec![Key::from(vec![0u8, 255]), Key::from(vec![0u8])])]
    }
    for (kind, keys) in keys() {
        let engine = Engine::with_tables(&[]);
        let table = json!({
            "TableName": TABLE,
            "KeySchema": [{"AttributeName": Account::PARTITION_KEY, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": Account::PARTITION_KEY, "AttributeType": kind}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        engine.raw("CreateTable", &table);
        let accounts: Table<Account> = Store::new(&engine.client()).table(TABLE);
        for (key, balance) in keys.iter().zip(0..) {
            accounts.create(key, &Account { balance }).await.expect("a free key");
        }
        for (key, balance) in keys.iter().zip(0..) {
            let found = accounts.get(key).await.expect("an answer").expect("an account");
            assert_eq!(found.value, Account { balance }, "{key:?}");
        }
    }
}

#[tokio::test]
async fn a_key_that_does_not_fit_its_table_is_refused_before_anything_is_sent() {
    let (engine, readings) = readings();
    let decide = |reading: &Reading| Ok::<_, Infallible>(Some(reading.clone()));
    let refused = readings.update_with_retry("roof", decide).await.expect_err("half a key");
    assert!(matches!(&refused, UpdateError::Failed(Failure::InvalidRecord { reason }) if reason.contains("at")));
    let accounts: Table<Account> = readings.store().table(TABLE);
    let refused = accounts.get(("a", "b")).await.expect_err("a part too many");
    assert!(matches!(refused, Failure::InvalidRecord { .. }));
    assert_eq!(engine.take_counts(), (0, 0));
}

#[tokio::test]
async fn a_key_of_a_text_is_the_same_key_however_the_text_is_owned() {
    let engine = engine();
    let accounts: Table<Account> = Store::new(&engine.client()).table(TABLE);
    let owned = String::from("a-1");
    accounts.create(&owned, &Account { balance: 1 }).await.expect("a free key");
    for key in [Key::from("a-1"), Key::from(owned.clone()), Key::from(owned.as_str())] {
        assert!(accounts.get(&key).await.expect("an answer").is_some());
    }
    assert_eq!(Key::from(-7i64), Key::from(-7));
    assert_eq!(Key::from(7u64), Key::from(7));
    assert_eq!(Key::from(7u32), Key::from(7));
    assert_ne!(Key::from("7"), Key::from(7));
    assert_ne!(Key::from(vec![7]), Key::from(7));
}
