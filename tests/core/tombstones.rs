//! Tombstones in a table whose values expire by themselves.

use crate::core::budgets::call;
use crate::harness::engine::{Engine, store};
use fencepost::{Decision, Key, Record, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// A session, which TTL removes after its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

impl Record for Session {
    const PARTITION_KEY: &'static str = "sessionId";
    const ATTRIBUTES: &'static [&'static str] = &["user", "expiresAt"];
    const EXPIRES_AT: Option<&'static str> = Some("expiresAt");
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

/// An attribute of the row that is a number; `Null` where it has none.
fn number(engine: &Engine, name: &str) -> Value {
    engine.row(TABLE, Session::PARTITION_KEY, "s-1")[name]["N"].take()
}

#[tokio::test]
async fn a_tombstone_carries_the_ttl_attribute_of_its_table_so_that_ttl_removes_it() {
    for expires_at in [Some(NOW + 60), None] {
        let (engine, table, key) = sessions();
        table.create(&key, &session(expires_at), &call()).await.expect("a free key");
        table.delete(&key, &call()).await.expect("a session");
        let purge_at = NOW + Table::<Session>::TOMBSTONE_RETENTION.as_secs();
        assert_eq!(number(&engine, "expiresAt"), purge_at.to_string(), "TTL looks only there");
        assert_eq!(number(&engine, "_purgeAt"), purge_at.to_string());
        assert_eq!(table.get(&key, &call()).await.expect("an answer"), None);
    }
}

#[tokio::test]
async fn a_value_that_takes_the_place_of_a_tombstone_has_its_own_end_or_none() {
    for expires_at in [Some(NOW + 60), None] {
        let (engine, table, key) = sessions();
        table.create(&key, &session(Some(NOW + 5)), &call()).await.expect("a free key");
        table.delete(&key, &call()).await.expect("a session");
        let revived = table.create(&key, &session(expires_at), &call()).await.expect("only a tombstone");
        assert_eq!((revived.version().get(), revived.value), (3, session(expires_at)));
        let expected = expires_at.map_or(Value::Null, |seconds| seconds.to_string().into());
        assert_eq!(number(&engine, "expiresAt"), expected);
        assert_eq!(number(&engine, "_purgeAt"), Value::Null);
        let longer = |_: &Session| Decision::<_, ()>::Put(session(Some(NOW + 600)));
        table.update_with_retry(&key, &call(), longer).await.expect("a session");
        assert_eq!(number(&engine, "expiresAt"), (NOW + 600).to_string());
    }
}
