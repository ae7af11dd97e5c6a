//! Tombstones in a table of values with an expiry.

use crate::harness::engine::{Engine, store};
use fencepost::{Attempt, Error, Reads, Record, Table};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// A session, which TTL removes after its end.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "sessionId", expires_at = "end")]
struct Session {
    end: Option<u64>,
}

const TABLE: &str = "Sessions";
const NOW: u64 = 1_800_000_000; // epoch seconds

#[tokio::test]
async fn a_tombstone_is_kept_for_a_week_or_as_asked_but_for_an_hour_at_least_and_for_ten_years_at_most() {
    let week = 7 * 86_400;
    for (asked, kept) in [(None, week), (Some(0), 3600), (Some(172_800), 172_800), (Some(u64::MAX), 315_360_000)] {
        for in_transaction in [false, true] {
            let engine = Engine::with_tables(&[(TABLE, Session::PARTITION_KEY)]);
            let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
            let table: Table<Session> = store(&engine.client(), now, || fastrand::u64(..)).table(TABLE);
            let retention = asked.map(Duration::from_secs);
            let table = retention.map_or(table.clone(), |retention| table.with_tombstone_retention(retention));
            table.create("s-1", &Session { end: None }).await.expect("a free key");
            if in_transaction {
                let mut reads = Reads::new();
                let item = reads.item("session", &table, "s-1");
                let delete = |attempt: &mut Attempt| attempt.delete_at(item).map(drop).map_err(Error::<()>::Failed);
                table.store().transact_with_retry(reads, delete).await.expect("a session");
            } else {
                table.delete("s-1").await.expect("a session");
            }
            let (row, end) = (engine.row(TABLE, Session::PARTITION_KEY, "s-1"), (NOW + kept).to_string());
            let ends = ["_purgeAt", "end"].map(|name| row[name]["N"].as_str());
            assert_eq!(ends, [Some(end.as_str()); 2], "{asked:?} {in_transaction}");
            engine.take_log();
            table.create("s-1", &Session { end: None }).await.expect("only a tombstone");
            assert_eq!(engine.take_counts(), (0, 2), "the first write shows the tombstone");
        }
    }
}
