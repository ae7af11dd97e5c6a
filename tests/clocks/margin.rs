//! A tombstone that refused a create must stay until no copy of the create can arrive, by any clocks.

use crate::harness::engine::store;
use crate::harness::off::BOUND;
use fencepost::maintenance::Task;
use fencepost::{Error, Failure, Record, Settings, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

const TABLE: &str = "Items";

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::without_ttl().swept())]
struct Item {
    count: u64,
}

/// The time by a clock that is ahead by so many milliseconds.
fn by_clock(time: SystemTime, ahead: i64) -> SystemTime {
    let off = Duration::from_millis(ahead.unsigned_abs());
    if ahead < 0 { time - off } else { time + off }
}

/// The answer to a create beside a tombstone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Verdict {
    Unknown,
    NotApplied,
}

/// A tombstone ends so many seconds from now. A create leaves by a clock that is ahead, and is on its way for almost ten
/// minutes. Then the clock is set behind, and the next send of the create is refused by the tombstone. The update that
/// would take its place is throttled until the call is over. The operator's clock is ahead: it sweeps as early as possible, and
/// the first send arrives as late as possible. Gives the answer, and whether the create was applied.
async fn play(ends_after: u64) -> (Verdict, bool) {
    let (db, began) = (Dynamo::with_seed(1), Instant::now());
    db.create_table(TABLE, Item::PARTITION_KEY);
    let clock = db.clone();
    let service = move || clock.now();
    let end = service().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs() + ends_after;
    let tombstone = json!({"id": {"S": "i-1"}, "_version": {"N": "2"}, "_buried": {"N": "2"},
        "_purgeAt": {"N": end.to_string()}, "_incarnation": {"B": "AAAAAAAAAAE="},
        "_writes": {"M": {"AAAAAAAAAAE": {"N": "0"}}}});
    db.put(TABLE, &tombstone);

    let is_set = Duration::from_millis(100);
    let ahead = move || if began.elapsed() < is_set { BOUND } else { -BOUND };
    let late = db.delay(Duration::from_millis(598_950)).of("PutItem").once();
    let throttled = db.throttle().of("UpdateItem").always();
    let wire = db.wire().with_clock_ahead(ahead);
    let time = service.clone();
    let items: Table<Item> = store(&wire.client(), move || by_clock(time(), ahead()), || 7).table(TABLE);
    let told = match items.create("i-1", &Item { count: 1 }).await {
        Err(Error::Failed(Failure::OutcomeUnknown { .. })) => Verdict::Unknown,
        Err(Error::Failed(_)) => Verdict::NotApplied,
        other => panic!("no such thing happens here: {other:?}"),
    };
    assert!(late.struck() == 1 && (told == Verdict::Unknown || throttled.struck() > 0));

    let sooner = Duration::from_millis(BOUND.unsigned_abs());
    sleep_until(began + Duration::from_secs(ends_after).saturating_sub(sooner)).await;
    let operator = db.wire().with_clock_ahead(|| BOUND).client();
    let operator = store(&operator, move || by_clock(service(), BOUND), || 8);
    let mut sweep = operator.maintain(Task::Sweep, TABLE, &["id"]);
    while sweep.next_page().await.expect("a page").is_some() {}
    db.settle().await;
    (told, db.row(TABLE, "i-1")["count"].is_object())
}

/// The margin is that of `soon_purged`.
#[tokio::test(start_paused = true)]
async fn a_create_that_is_answered_as_refused_by_a_tombstone_is_never_applied_with_any_clocks() {
    let mut seen = BTreeMap::<_, u32>::new();
    for ends_after in 590..1010 {
        let (told, applied) = play(ends_after).await;
        assert!(told == Verdict::Unknown || !applied, "the tombstone ends after {ends_after} s: {told:?}, but applied");
        *seen.entry((told, applied)).or_default() += 1;
    }
    let kinds: Vec<_> = seen.keys().collect();
    assert_eq!(
        kinds,
        [&(Verdict::Unknown, false), &(Verdict::Unknown, true), &(Verdict::NotApplied, false)],
        "{seen:?}"
    );
}
