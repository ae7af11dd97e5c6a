//! Clocks of clients at the edge of the assumption, and beyond it. In between, the histories play them. A tombstone
//! that refused a create must stay until no copy of the create can arrive, by any clocks.

use crate::harness::clock::Clock;
use crate::harness::engine::{Engine, store};
use crate::harness::events::{Event, event_of};
use crate::harness::faults::{Broken, Network, Rates, network_that_breaks, store_on};
use crate::harness::functions::{DEVICES, Devices, Functions};
use crate::harness::off::{BOUND, OffClock, by_clock};
use crate::harness::world::World;
use fencepost::maintenance::Task;
use fencepost::{Error, Failure, FailureKind, Record, Settings, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

/// When it begins, since 1970.
const EPOCH: Duration = Duration::from_hours(500_000);
const CREATE: &str = "PUT /devices/{deviceId}";
const ADJUST: &str = "POST /devices/{deviceId}/adjustments";
const ID: &str = "lamp-1";

/// The function in a process with this clock.
fn function(network: &Arc<Network>, clock: OffClock) -> World<Devices> {
    let store = store_on(network, &clock.wire(network).client(), move || clock.now(EPOCH));
    World::under(&network.engine, Clock::running_since(Instant::now()), &store)
}

fn creation() -> Event {
    event_of(CREATE, ID).json(&json!({"state": {"brightness": 50}}))
}

fn adjustment() -> Event {
    event_of(ADJUST, ID).json(&json!({"attribute": "brightness", "by": 3}))
}

fn row(network: &Arc<Network>) -> Value {
    network.engine.row(DEVICES, "deviceId", ID)
}

#[tokio::test(start_paused = true)]
async fn with_a_clock_that_is_off_further_nothing_is_applied_and_nothing_false_is_said() {
    for ahead in [-301_000, 301_000, -86_400_000, 86_400_000] {
        let (engine, rng) = (Engine::embedded(Devices::TABLES), fastrand::Rng::with_seed(7));
        let network = network_that_breaks(&engine, Rates::default(), Broken::Nothing, rng);
        let right = function(&network, OffClock::fixed(Instant::now(), 0));
        let off = function(&network, OffClock::fixed(Instant::now(), ahead));
        off.send(&creation()).await.says(500, "internal");
        assert_eq!(row(&network), Value::Null, "{ahead}");
        right.send(&creation()).await.shows(201, 1);
        let before = row(&network);
        let get = event_of("GET /devices/{deviceId}", ID);
        let delete = event_of("DELETE /devices/{deviceId}", ID).header("if-match", "*");
        for event in [adjustment(), adjustment().key("k-1"), creation(), get, delete] {
            let answer = off.send(&event).await;
            answer.says(500, "internal");
            answer.check_problem();
        }
        assert_eq!(row(&network), before, "{ahead}");
        let errors = network.log().with(|sent| sent.error().is_some());
        assert!(errors.iter().all(|sent| sent.error() == Some("InvalidSignatureException")), "{errors}");
    }
}

const TABLE: &str = "Items";

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::without_ttl().swept())]
struct Item {
    count: u64,
}

/// A tombstone ends so many seconds from now. A create leaves by a clock that is ahead, and is on its way for almost ten
/// minutes. Then the clock is set behind, and the next send of the create is refused by the tombstone. The update that
/// would take its place is throttled until the call is over. The operator's clock is ahead: it sweeps as early as
/// possible, and the first send arrives as late as possible. Gives whether the answer is that nothing is known, and whether the
/// create was applied.
async fn play(ends_after: u64) -> (bool, bool) {
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
    let is_unknown = match items.create("i-1", &Item { count: 1 }).await {
        Err(Error::Failed(Failure { kind: FailureKind::OutcomeUnknown { .. }, .. })) => true,
        Err(Error::Failed(_)) => false,
        other => panic!("no such thing happens here: {other:?}"),
    };
    assert!(late.struck() == 1 && (is_unknown || throttled.struck() > 0));

    let sooner = Duration::from_millis(BOUND.unsigned_abs());
    sleep_until(began + Duration::from_secs(ends_after).saturating_sub(sooner)).await;
    let operator = db.wire().with_clock_ahead(|| BOUND).client();
    let operator = store(&operator, move || by_clock(service(), BOUND), || 8);
    let mut sweep = operator.maintain(Task::Sweep, TABLE, &["id"]);
    while sweep.next_page().await.expect("a page").is_some() {}
    db.settle().await;
    (is_unknown, db.row(TABLE, "i-1")["count"].is_object())
}

/// The margin is that of `soon_purged`.
#[tokio::test(start_paused = true)]
async fn a_create_that_is_answered_as_refused_by_a_tombstone_is_never_applied_with_any_clocks() {
    let mut seen = BTreeMap::<_, u32>::new();
    for ends_after in 590..1010 {
        let (is_unknown, applied) = play(ends_after).await;
        assert!(is_unknown || !applied, "the tombstone ends after {ends_after} s: told as refused, but applied");
        *seen.entry((is_unknown, applied)).or_default() += 1;
    }
    let kinds: Vec<_> = seen.keys().copied().collect();
    assert_eq!(kinds, [(false, false), (true, false), (true, true)], "{seen:?}");
}
