//! Tombstones in a table of values with an expiry.

use super::accounts::change;
use crate::harness::clients::{Reply, client_whose, client_whose_first_write, lost};
use crate::harness::engine::{Engine, store};
use fencepost::{Attempt, Error, Exists, Failure, Key, Reads, Record, Table, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cell::Cell;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// A session, which TTL removes after its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "sessionId", expires_at = "expiresAt")]
#[serde(rename_all = "camelCase")]
struct Session {
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

const TABLE: &str = "Sessions";
const NOW: u64 = 1_800_000_000; // epoch seconds

fn sessions() -> (Engine, Table<Session>, Key) {
    let engine = Engine::with_tables(&[(TABLE, Session::PARTITION_KEY)]);
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let table = store(&engine.client(), now, || fastrand::u64(..)).table(TABLE);
    (engine, table, Key::from("s-1"))
}

fn session(expires_at: Option<u64>) -> Session {
    Session { user: "ann".to_owned(), expires_at }
}

/// A number in an attribute of the row; `Null` without it.
fn number(engine: &Engine, name: &str) -> Value {
    engine.row(TABLE, Session::PARTITION_KEY, "s-1")[name]["N"].take()
}

#[tokio::test]
async fn a_tombstone_is_kept_for_a_week_or_as_asked_but_for_an_hour_at_least_and_for_ten_years_at_most() {
    let week = 7 * 86_400;
    for (asked, kept) in [(None, week), (Some(0), 3600), (Some(172_800), 172_800), (Some(u64::MAX), 315_360_000)] {
        for in_transaction in [false, true] {
            let (engine, table, key) = sessions();
            let retention = asked.map(Duration::from_secs);
            let table = retention.map_or(table.clone(), |retention| table.with_tombstone_retention(retention));
            table.create(&key, &session(None)).await.expect("a free key");
            if in_transaction {
                let mut reads = Reads::new();
                let item = reads.item("session", &table, &key);
                let delete = |attempt: &mut Attempt| attempt.delete_at(item).map(drop).map_err(Error::<()>::Failed);
                table.store().transact_with_retry(reads, delete).await.expect("a session");
            } else {
                table.delete(&key).await.expect("a session");
            }
            let ends = ["_purgeAt", "expiresAt"].map(|name| number(&engine, name));
            assert_eq!(ends, [(); 2].map(|()| Value::from((NOW + kept).to_string())), "{asked:?} {in_transaction}");
        }
    }
}

/// The session of a table without ends.
#[derive(Serialize, Deserialize, Record)]
#[record(key = "sessionId")]
struct Endless {
    user: String,
}

/// A create never arrives. Another step refuses its resend. Returns the answer, and the end of the tombstone on its key.
async fn burned<T: Record>(value: &T) -> (Result<(), Error<()>>, Value) {
    let (engine, table, key) = sessions();
    let other = Key::from("s-2");
    table.create(&other, &session(None)).await.expect("a free key");
    let client = client_whose_first_write(&engine, |engine, _, _| {
        // The other session changes before the resend arrives, and so it is refused.
        let one = json!({":one": {"N": "1"}});
        change(engine, TABLE, &json!({"sessionId": {"S": "s-2"}}), "SET #v = #v + :one", &one);
        lost()
    });
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let table: Table<T> = store(&client, now, || fastrand::u64(..)).table(TABLE);
    let mut reads = Reads::new();
    let (new, seen) = (reads.later("new", &table, &key), reads.item("seen", &table, &other));
    let attempts = Cell::new(0);
    let decide = |attempt: &mut Attempt| {
        if attempts.replace(attempts.get() + 1) > 0 {
            return Err(Error::Refused(()));
        }
        attempt.put_if_absent(new, value)?;
        attempt.check(seen)?;
        Ok(())
    };
    (table.store().transact_with_retry(reads, decide).await, number(&engine, "_purgeAt"))
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_that_burns_a_create_is_kept_as_long() {
    let (ended, purge_at) = burned(&Endless { user: "ann".to_owned() }).await;
    assert!(matches!(ended, Err(Error::Refused(()))), "{ended:?}");
    assert_eq!(purge_at, (NOW + 7 * 86_400).to_string(), "a late copy of the create finds it");
}

/// The free key is no proof: the create may have been applied, and its value ended and removed since.
#[tokio::test(start_paused = true)]
async fn a_create_where_values_end_is_not_burned_by_a_tombstone() {
    let (ended, purge_at) = burned(&session(None)).await;
    assert!(matches!(ended, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{ended:?}");
    assert_eq!(purge_at, Value::Null);
}

/// The view of a delete by a consumer of the table's stream, by docs/operations.md.
#[tokio::test]
async fn a_tombstone_keeps_its_key_what_this_crate_owns_the_ttl_attribute_and_what_nobody_declared() {
    let (engine, table, key) = sessions();
    table.create(&key, &session(None)).await.expect("a free key");
    let values = json!({":s": {"S": "of another program"}, ":one": {"N": "1"}});
    change(&engine, TABLE, &json!({"sessionId": {"S": "s-1"}}), "SET stranger = :s, #v = #v + :one", &values);
    let token = table.store().leases("Leases").token("k", 7);
    table.fenced_by(&token).delete(&key).await.expect("a session");
    let row = engine.row(TABLE, Session::PARTITION_KEY, "s-1");
    let mut names: Vec<_> = row.as_object().expect("a row").keys().map(String::as_str).collect();
    names.sort_unstable();
    let left = ["_fence", "_incarnation", "_purgeAt", "_version", "_writes", "expiresAt", "sessionId", "stranger"];
    assert_eq!(names, left, "the user is gone");
}

#[tokio::test]
async fn a_value_that_takes_the_place_of_a_tombstone_has_its_own_end_or_none() {
    for expires_at in [Some(NOW + 60), None] {
        let (engine, table, key) = sessions();
        table.create(&key, &session(Some(NOW + 5))).await.expect("a free key");
        table.delete(&key).await.expect("a session");
        let revived = table.create(&key, &session(expires_at)).await.expect("only a tombstone");
        assert_eq!((revived.version().get(), revived.value), (3, session(expires_at)));
        let expected = expires_at.map_or(Value::Null, |seconds| seconds.to_string().into());
        assert_eq!(number(&engine, "expiresAt"), expected);
        assert_eq!(number(&engine, "_purgeAt"), Value::Null);
        engine.take_counts();
        let again = table.create(&key, &session(None)).await;
        assert!(matches!(again, Err(Error::Refused(Exists(_)))), "no answer was lost: {again:?}");
        assert_eq!(engine.take_counts(), (0, 1));
        let longer = |_: &Session| Ok::<_, Infallible>(Some(session(Some(NOW + 600))));
        table.update_with_retry(&key, longer).await.expect("a session");
        assert_eq!(number(&engine, "expiresAt"), (NOW + 600).to_string());
    }
}

/// These sessions live in the past, because the engine expires rows by the machine's clock.
#[tokio::test]
async fn ttl_removes_the_tombstone_of_a_session_that_had_no_end_and_of_one_that_had() {
    let sessions_of = |days_ago: u64| {
        let engine = Engine::embedded(&[(TABLE, Session::PARTITION_KEY)]);
        let ttl = json!({"AttributeName": "expiresAt", "Enabled": true});
        engine.raw("UpdateTimeToLive", &json!({"TableName": TABLE, "TimeToLiveSpecification": ttl}));
        let now = move || SystemTime::now() - Duration::from_hours(24 * days_ago);
        let table: Table<Session> = store(&engine.client(), now, || fastrand::u64(..)).table(TABLE);
        (engine, table)
    };
    let far = SystemTime::now() + Duration::from_hours(24 * 365);
    let far = far.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    for expires_at in [None, Some(far)] {
        for (days_ago, removed) in [(6, 0), (8, 1)] {
            let ((engine, table), key) = (sessions_of(days_ago), Key::from("s-1"));
            table.create(&key, &session(expires_at)).await.expect("a free key");
            assert_eq!(engine.sweep(), 0, "it lives");
            table.delete(&key).await.expect("a session");
            assert_eq!(engine.sweep(), removed, "deleted {days_ago} days ago, kept for 7");
            assert_eq!(engine.row(TABLE, Session::PARTITION_KEY, "s-1").is_null(), removed == 1);
        }
    }
}

/// The session ends within seconds, or another client ends it sooner than its create said. Its create is applied. No
/// answer gets through. TTL removes the row, and another client takes the key.
#[tokio::test(start_paused = true)]
async fn a_create_whose_value_ttl_may_have_removed_is_unknown_and_not_refused() {
    for expires_at in [Some(NOW + 3), Some(NOW + 86_400), None] {
        let created = created_and_replaced(expires_at).await;
        assert!(matches!(created, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{created:?}");
    }
}

async fn created_and_replaced(expires_at: Option<u64>) -> Result<Versioned<Session>, Error<Exists<Session>>> {
    let (engine, _, key) = sessions();
    let began = Instant::now();
    let client = client_whose(&engine, move |engine, writes, operation, body| {
        if began.elapsed() < Duration::from_secs(5) {
            let applied = engine.answer(operation, body).0 == 200;
            assert_eq!(applied, writes == 0);
            return Reply::Never;
        }
        let others = json!({"sessionId": {"S": "s-1"}, "user": {"S": "eve"}, "_version": {"N": "1"},
            "_incarnation": {"B": "AAAAAAAAAAE="}, "_writes": {"M": {"AAAAAAAAAAE": {"N": "0"}}}});
        engine.raw("PutItem", &json!({"TableName": TABLE, "Item": others}));
        engine.answer(operation, body).into()
    });
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW) + began.elapsed();
    let table: Table<Session> = store(&client, now, || fastrand::u64(..)).table(TABLE);
    table.create(&key, &session(expires_at)).await
}
