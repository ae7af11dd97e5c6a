//! Clocks of clients at the edge of the assumption, and beyond it. In between, the histories play them.

use crate::harness::clock::Clock;
use crate::harness::engine::Engine;
use crate::harness::events::{Event, event_of};
use crate::harness::faults::{Broken, Network, Rates, network_that_breaks, store_on};
use crate::harness::functions::{DEVICES, Devices, Functions};
use crate::harness::off::{BOUND, OffClock, OffClocks};
use crate::harness::world::World;
use fencepost::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

mod margin;

/// When it begins, since 1970.
const EPOCH: Duration = Duration::from_hours(500_000);
const CREATE: &str = "PUT /devices/{deviceId}";
const ADJUST: &str = "POST /devices/{deviceId}/adjustments";
const ID: &str = "lamp-1";

/// A network that does this much harm.
fn network(rates: Rates) -> Arc<Network> {
    network_that_breaks(&Engine::embedded(Devices::TABLES), rates, Broken::Nothing, fastrand::Rng::with_seed(7))
}

fn store(network: &Arc<Network>, clock: OffClock) -> Store {
    store_on(network, &clock.wire(network).client(), move || clock.now(EPOCH))
}

/// The function in a process with this clock.
fn function(network: &Arc<Network>, clock: OffClock) -> World<Devices> {
    World::under(&network.engine, Clock::running_since(Instant::now()), &store(network, clock))
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

/// Without this, the histories would not play their clocks.
#[tokio::test(start_paused = true)]
async fn clocks_that_are_drawn_are_right_or_off_either_way_and_some_run_or_are_set() {
    let clocks = OffClocks::of(7, Instant::now());
    let clocks: Vec<_> = (0..400).map(|_| clocks.draw()).collect();
    let ahead = || clocks.iter().map(OffClock::ahead).collect::<Vec<_>>();
    let at_first = ahead();
    sleep(Duration::from_hours(1)).await;
    let later = ahead();
    assert!(at_first.iter().chain(&later).all(|ahead| ahead.abs() <= BOUND), "{at_first:?} {later:?}");
    let share =
        |is: fn(i64, i64) -> bool| at_first.iter().zip(&later).filter(|(first, later)| is(**first, **later)).count();
    let shares = [share(|first, _| first == 0), share(|first, _| first < -100_000), share(|first, _| first > 100_000)];
    assert!(shares.iter().all(|share| *share > 40), "right, behind, ahead: {shares:?}");
    assert!(share(|first, later| first != later) > 100, "some run at another rate, or are set: {at_first:?} {later:?}");
}

#[tokio::test(start_paused = true)]
async fn with_a_clock_that_is_off_further_nothing_is_applied_and_nothing_false_is_said() {
    for ahead in [-301_000, 301_000, -86_400_000, 86_400_000] {
        let network = network(Rates::default());
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

/// The first send is applied and its answer lost; then the clock is set wrong, and no other send is accepted.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_wrong_while_a_change_is_pending_leaves_it_unknown() {
    let start = Instant::now();
    let network = network(Rates { answer_lost: 1000, ..Rates::default() });
    let clock = OffClock::set_after(start, Duration::from_millis(1), 3_600_000);
    function(&network, clock).send(&creation()).await.says(504, "outcome_unknown");
    assert!(row(&network).is_object(), "it was applied");
}

/// A key is promised for 24 hours, by any two clocks.
#[tokio::test(start_paused = true)]
async fn a_key_is_known_for_a_day_and_not_for_much_longer_by_clocks_at_both_ends() {
    for (writer, reader) in [(-BOUND, BOUND), (BOUND, -BOUND), (BOUND, BOUND), (-BOUND, -BOUND)] {
        let (network, start) = (network(Rates::default()), Instant::now());
        function(&network, OffClock::fixed(start, 0)).send(&creation()).await.shows(201, 1);
        let keyed = adjustment().key("k-1");
        let first = function(&network, OffClock::fixed(start, writer)).send(&keyed).await;
        first.shows(200, 2);
        sleep(Duration::from_hours(24)).await;
        let reader = function(&network, OffClock::fixed(start, reader));
        let again = reader.send(&keyed).await;
        assert_eq!((again.is_replay(), &again.body), (true, &first.body), "after a day");
        sleep(Duration::from_mins(60 + 11)).await;
        reader.send(&keyed).await.shows(200, 3);
    }
}
