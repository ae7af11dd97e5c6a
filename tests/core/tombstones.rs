//! Tombstones in a table of values with an expiry.

use crate::harness::engine::{Engine, store};
use fencepost::{Attempt, Error, Key, Reads, Record, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, SystemTime};

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
            table.create(&key, &Session { user: "ann".to_owned(), expires_at: None }).await.expect("a free key");
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
