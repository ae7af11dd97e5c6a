//! Tombstones in a table of values with an expiry.

use super::accounts::change;
use crate::harness::clients::{Reply, client_whose, lost};
use crate::harness::engine::{Engine, is_read, store};
use fencepost::{Attempt, Error, Failure, Key, Reads, Record, Table};
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
async fn a_tombstone_carries_the_ttl_attribute_of_its_table_so_that_ttl_removes_it() {
    for expires_at in [Some(NOW + 60), None] {
        let (engine, table, key) = sessions();
        table.create(&key, &session(expires_at)).await.expect("a free key");
        table.delete(&key).await.expect("a session");
        let purge_at = NOW + 7 * 86_400; // a week, if nothing else is said
        assert_eq!(number(&engine, "expiresAt"), purge_at.to_string(), "TTL looks only there");
        assert_eq!(number(&engine, "_purgeAt"), purge_at.to_string());
        assert_eq!(table.get(&key).await.expect("an answer"), None);
    }
}

#[tokio::test]
async fn a_tombstone_is_kept_for_an_hour_at_least_and_for_ten_years_at_most() {
    for (asked, kept) in [(0, 3600), (172_800, 172_800), (u64::MAX, 315_360_000)] {
        let (engine, table, key) = sessions();
        let table = table.with_tombstone_retention(Duration::from_secs(asked));
        table.create(&key, &session(None)).await.expect("a free key");
        table.delete(&key).await.expect("a session");
        assert_eq!(number(&engine, "_purgeAt"), (NOW + kept).to_string());
    }
}

#[tokio::test]
async fn a_tombstone_that_a_transaction_leaves_is_kept_as_long() {
    let (engine, table, key) = sessions();
    table.create(&key, &session(None)).await.expect("a free key");
    let mut reads = Reads::new();
    let item = reads.item("session", &table, &key);
    let decide = |attempt: &mut Attempt| {
        attempt.delete_at(item)?;
        Ok::<_, Error>(())
    };
    table.store().transact_with_retry(reads, decide).await.expect("a session");
    assert_eq!(number(&engine, "_purgeAt"), (NOW + 7 * 86_400).to_string());
}

/// The create never arrives. Another step refuses its resend. Its key is burned.
#[tokio::test(start_paused = true)]
async fn a_tombstone_that_burns_a_create_is_kept_as_long() {
    let (engine, table, key) = sessions();
    let other = Key::from("s-2");
    table.create(&other, &session(None)).await.expect("a free key");
    let client = client_whose(&engine, |engine, writes, operation, body| {
        if is_read(operation) || writes > 0 {
            return engine.answer(operation, body);
        }
        // The other session changes before the resend arrives, and so it is refused.
        let one = json!({":one": {"N": "1"}});
        change(engine, TABLE, &json!({"sessionId": {"S": "s-2"}}), "SET #v = #v + :one", &one);
        lost()
    });
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let table: Table<Session> = store(&client, now, || fastrand::u64(..)).table(TABLE);
    let mut reads = Reads::new();
    let (new, seen) = (reads.later("new", &table, &key), reads.item("seen", &table, &other));
    let attempts = Cell::new(0);
    let decide = |attempt: &mut Attempt| {
        if attempts.replace(attempts.get() + 1) > 0 {
            return Err(Error::Refused(()));
        }
        attempt.put_if_absent(new, &session(None))?;
        attempt.check(seen)?;
        Ok(())
    };
    let ended = table.store().transact_with_retry(reads, decide).await;
    assert!(matches!(ended, Err(Error::Refused(()))), "{ended:?}");
    assert_eq!(number(&engine, "_purgeAt"), (NOW + 7 * 86_400).to_string(), "a late copy of the create finds it");
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

/// The session ends within seconds. Its create is applied. No answer gets through. TTL removes the row, and another
/// client takes the key.
#[tokio::test(start_paused = true)]
async fn a_create_whose_value_ttl_may_have_removed_is_unknown_and_not_refused() {
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
    let created = table.create(&key, &session(Some(NOW + 3))).await;
    assert!(matches!(created, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{created:?}");
}
