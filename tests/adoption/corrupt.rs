//! Rows that contradict themselves: each is refused with the name of the attribute, and left unchanged.
//!
//! `FENCEPOST_SEED=7` replays the run of one seed.

use super::world::{
    Account, Alone, Setup, Shared, account, accounts, deposit, engine, foreign, get, key, number, put, row,
};
use crate::harness::engine::Engine;
use fencepost::{Edit, Error, Failure, Reads, Table, UpdateError};
use serde_json::{Value, json};

/// The attributes of this crate.
const OURS: [&str; 6] = ["version", "_incarnation", "_writes", "_buried", "_purgeAt", "_fence"];

/// An account of ours, as it is stored, with these attributes changed. `Null` removes one.
fn ours(changes: &[(&str, Value)]) -> Value {
    let mut row = foreign(50, Some(3));
    row["_incarnation"] = json!({"B": "AAAAAAAAAAA="});
    row["_writes"] = json!({"M": {"AAAAAAAAAAA": number(0), "AAAAAAAAAAE": number(-1)}});
    with(row, changes)
}

fn with(mut row: Value, changes: &[(&str, Value)]) -> Value {
    for (name, value) in changes {
        row[*name] = value.clone();
    }
    row.as_object_mut().expect("a row").retain(|_, value| !value.is_null());
    row
}

/// Why each operation on this row fails, in the words of the first. All must say the same, and write nothing.
async fn refusal<S: Setup>(engine: &Engine, table: &Table<Account<S>>) -> Option<String> {
    let (before, key) = (row(engine), key());
    let why = |failure: Failure| match failure {
        Failure::CorruptItem { reason } => reason,
        other => panic!("no corruption: {other:?}"),
    };
    let read = table.get(&key).await;
    let Err(read) = read else { return None };
    let read = why(read);
    let UpdateError::Failed(updated) = table.update_with_retry(&key, deposit(1)).await.expect_err("a corrupt row")
    else {
        panic!("it is not usable")
    };
    let add = Edit::add("balance", 1, 0..=100);
    let UpdateError::Failed(added) = table.edit(&key, &add).await.expect_err("a corrupt row") else {
        panic!("it is not usable")
    };
    let Error::Failed(created) = table.create(&key, &account(1)).await.expect_err("a corrupt row") else {
        panic!("it is not usable")
    };
    for failure in [updated, added, created] {
        assert_eq!(why(failure), read);
    }
    assert_eq!(row(engine), before, "nothing was written");
    // A delete and a check decode no value.
    if !OURS.iter().any(|name| read.contains(name)) {
        return Some(read);
    }
    let UpdateError::Failed(deleted) = table.delete(&key).await.expect_err("a corrupt row") else {
        panic!("it is not usable")
    };
    assert_eq!((why(deleted), row(engine)), (read.clone(), before));
    let mut reads = Reads::new();
    let item = reads.item("account", table, &key);
    let checked = table.store().transact_with_retry(reads, |attempt| {
        attempt.check(item)?;
        Ok::<_, Error>(())
    });
    let Error::Failed(checked) = checked.await.expect_err("a corrupt row");
    assert_eq!(why(checked), read);
    Some(read)
}

async fn says<S: Setup>(stored: &Value, sentence: &str) {
    let engine = engine();
    put(&engine, stored);
    let said = refusal(&engine, &accounts::<S>(&engine)).await;
    let sentence = format!("{sentence} (the row with the key accountId S(\"a-1\"))");
    assert_eq!(said, Some(sentence), "{stored}");
}

fn text() -> Value {
    json!({"S": "x"})
}

#[tokio::test]
async fn a_version_that_is_no_whole_number_of_53_bits_is_named_in_a_row_of_ours_and_in_a_foreign_one() {
    let fraction = json!({"N": "1.5"});
    for version in [text(), number(-1), fraction, number(1_u64 << 60), number(1_u64 << 53), json!({"NULL": true})] {
        let sentence = "version is not a whole number from 0 to 2^53 - 1";
        says::<Alone>(&with(foreign(50, None), &[("version", version.clone())]), sentence).await;
        says::<Shared>(&ours(&[("version", version)]), sentence).await;
    }
}

#[tokio::test]
async fn an_incarnation_and_a_memory_that_do_not_go_together_are_named() {
    let no = || Value::Null;
    for bytes in [json!({"B": "AAAAAAAAAA=="}), json!({"B": "AAAAAAAAAAAA"}), text()] {
        says::<Alone>(&ours(&[("_incarnation", bytes)]), "_incarnation does not have 8 bytes").await;
    }
    for version in [no(), number(0)] {
        says::<Alone>(&ours(&[("version", version)]), "it has _incarnation but no version of 1 or more").await;
    }
    says::<Shared>(&ours(&[("_writes", no())]), "it has _incarnation but no _writes").await;
    says::<Shared>(&ours(&[("_incarnation", no())]), "it has _writes but no _incarnation").await;
    for memory in [text(), json!({"M": {"short": number(1)}}), json!({"M": {"AAAAAAAAAAA": text()}})] {
        says::<Alone>(&ours(&[("_writes", memory)]), "_writes is malformed, so this crate did not write it").await;
    }
}

#[tokio::test]
async fn a_mark_of_a_tombstone_that_is_malformed_or_on_a_row_of_another_program_is_named() {
    for malformed in [text(), number(-1), json!({"N": "2.5"})] {
        let sentence = |name: &str| format!("{name} is malformed, so this crate did not write it");
        says::<Shared>(&ours(&[("_buried", malformed.clone())]), &sentence("_buried")).await;
        says::<Shared>(&with(foreign(50, Some(3)), &[("_buried", malformed.clone())]), &sentence("_buried")).await;
        let buried = &[("_buried", number(3)), ("_purgeAt", malformed.clone())];
        says::<Shared>(&ours(buried), &sentence("_purgeAt")).await;
        says::<Alone>(&ours(&[("_purgeAt", malformed.clone())]), &sentence("_purgeAt")).await;
        says::<Alone>(&ours(&[("_fence", malformed)]), &sentence("_fence")).await;
    }
    let purge = with(foreign(50, Some(3)), &[("_purgeAt", number(1_800_000_000))]);
    says::<Alone>(&purge, "it has _purgeAt, which marks a tombstone here, but no _incarnation").await;
    let buried = with(foreign(50, Some(3)), &[("_buried", number(3))]);
    says::<Shared>(&buried, "it has _buried, which marks a tombstone here, but no _incarnation").await;
}

/// A row is usable if some program may have meant it.
#[tokio::test]
async fn a_row_without_a_contradiction_is_usable() {
    for stored in [
        ours(&[]),
        ours(&[("_buried", number(2)), ("_purgeAt", number(1_800_000_000))]),
        ours(&[("_writes", json!({"M": {}}))]),
        foreign(50, None),
        foreign(50, Some((1 << 53) - 100)),
        with(foreign(50, Some(3)), &[("_buried", number(2)), ("_fence", number(9))]),
    ] {
        let engine = engine();
        put(&engine, &stored);
        let table = accounts::<Shared>(&engine);
        assert_eq!(get(&table).await.map(|read| read.value), Some(account(50)), "{stored}");
        super::world::update(&table, 1).await.expect("an account");
        assert_eq!(get(&table).await.map(|read| read.value), Some(account(51)), "{stored}");
    }
    // A value that cannot be decoded is corrupt too. The reason names the missing attribute.
    let engine = engine();
    put(&engine, &with(foreign(50, Some(3)), &[("balance", Value::Null)]));
    let said = refusal(&engine, &accounts::<Shared>(&engine)).await.expect("no account");
    assert!(said.contains("balance"), "{said}");
}

/// At the highest version of a row, it is read and never written, because the result would be unreadable.
#[tokio::test]
async fn a_version_that_cannot_rise_is_read_and_every_change_is_refused_before_it_is_sent() {
    for stored in [foreign(50, Some((1 << 53) - 1)), ours(&[("version", number((1_u64 << 53) - 1))])] {
        let engine = engine();
        put(&engine, &stored);
        let table = accounts::<Shared>(&engine);
        let read = get(&table).await.expect("an account");
        engine.take_log();
        let add = Edit::add("balance", 1, 0..=100);
        let said = [
            super::world::update(&table, 1).await.expect_err("it cannot rise").to_string(),
            table.delete(&key()).await.expect_err("it cannot rise").to_string(),
            table.delete_at_version(&key(), read.at).await.expect_err("it cannot rise").to_string(),
            table.edit(&key(), &add).await.expect_err("it cannot rise").to_string(),
        ];
        assert!(said.iter().all(|said| said.contains("version is so close to 2^53 - 1")), "{said:?}");
        assert_eq!((engine.take_counts().1, row(&engine)), (0, stored));
    }
}
