//! All orders in which three registers and their deletes can arrive at one address, through the functions themselves.

use super::plan::{Change, Stand, Who, left_by};
use crate::harness::answers::Answer;
use crate::harness::engine::{Engine, store};
use crate::harness::events::{Event, load};
use crate::harness::functions::{Functions, MAPPINGS, Mappings};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};
use std::ptr;
use std::time::{Duration, SystemTime};

/// The address of the events.
const ADDRESS: &str = "192.0.2.10";
/// 10:00 on 7 March 2026.
const TEN: u64 = 1_772_877_600_000;
/// Names decide between instances of one moment, in any order of arrival.
const NAMES: [&str; 3] = ["i-A", "i-a", "i-b"];

/// Both functions on one engine.
struct Doors {
    engine: Engine,
    mappings: axum::Router,
    deletes: functions::delete_mapping::App,
    register: Event,
    get: Event,
    delete: Event,
    batch: Event,
}

impl Doors {
    fn open() -> Self {
        let engine = Engine::embedded(Mappings::TABLES);
        let client = engine.client();
        let now = || SystemTime::UNIX_EPOCH + Duration::from_millis(TEN);
        let store = store(&client, now, || 7);
        Doors {
            mappings: functions::host_mapping::App::router(&store, &|_| Some(MAPPINGS.to_owned())).expect("a router"),
            deletes: functions::delete_mapping::App::new(store.lww_table(MAPPINGS)),
            register: load("host-mapping-register"),
            get: load("host-mapping-get"),
            delete: load("host-mapping-delete"),
            batch: load("delete-mapping-superseded"),
            engine,
        }
    }

    async fn send(&self, event: Event) -> Answer {
        assert_eq!(event.0["pathParameters"]["hostIp"], ADDRESS);
        let payload: ApiGatewayV2httpRequest = serde_json::from_value(event.0).expect("an event");
        let event = LambdaEvent::new(payload, Context::default());
        Box::pin(fencepost::lambda::respond(&self.mappings, event)).await.into()
    }

    async fn look_up(&self) -> Option<Who> {
        let answer = self.send(self.get.clone()).await;
        if answer.status == 404 {
            return None;
        }
        let who = Who::of_body(&answer.json());
        assert_eq!(answer.shown(200), who.shown(ADDRESS));
        Some(who)
    }

    /// The status of a register. A refusal must name the present instance.
    async fn register(&self, who: &Who, stand: Option<&Stand>) -> String {
        let answer = self.send(self.register.clone().text(&who.body().to_string())).await;
        if answer.status == 409 {
            let newer = answer.says(409, "superseded");
            assert_eq!(Some(Who::of_body(&newer)), stand.map(|stand| stand.who.clone()), "{answer:?}");
        }
        answer.status.to_string()
    }

    /// The outcome of a delete.
    async fn delete(&self, who: &Who) -> String {
        let mut event = self.delete.clone();
        let query = match who.instance() {
            Some(instance) => json!({"creationTimestamp": who.timestamp(), "instanceId": instance}),
            None => json!({"creationTimestamp": who.timestamp()}),
        };
        event.0["queryStringParameters"] = query;
        let answer = self.send(event).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        answer.header("fencepost-outcome").expect("what became of it").to_owned()
    }

    /// The same delete through the queue, which hears of failures alone.
    async fn delete_later(&self, who: &Who) {
        let mut event = self.batch.clone();
        event.0["Records"][0]["body"] = json!(who.message(ADDRESS).to_string());
        let payload: SqsEvent = serde_json::from_value(event.0).expect("a batch");
        let event = LambdaEvent::new(payload, Context::default());
        let answer = fencepost::lambda::respond_batch(&self.deletes, &functions::delete_mapping::handle, event).await;
        assert_eq!(answer.expect("an answer").batch_item_failures.len(), 0, "{who:?}");
    }

    /// Puts a row back. The functions remember only rows.
    fn put_back(&self, row: &Value) {
        let nothing = json!({"TableName": MAPPINGS, "Key": {"hostIp": {"S": ADDRESS}}});
        let (operation, request) = match row {
            Value::Null => ("DeleteItem", nothing),
            row => ("PutItem", json!({"TableName": MAPPINGS, "Item": row})),
        };
        self.engine.raw(operation, &request);
    }

    /// Lets one more change arrive and returns the row. All changes so far decide the state of the address, which never
    /// goes back to an older instance.
    async fn arrive(&self, arrived: &[&Change], stand: &mut Option<Stand>, through_queue: bool) -> Value {
        let seen = live_in(stand.as_ref());
        let change = arrived.last().expect("one at least");
        let expected = expect(stand, change);
        let answer = match change {
            Change::Register(who) => self.register(who, stand.as_ref()).await,
            Change::Delete(who) if through_queue => {
                self.delete_later(who).await;
                expected.to_owned()
            }
            Change::Delete(who) => self.delete(who).await,
        };
        assert_eq!(answer, expected, "the last of {arrived:?}");
        let row = self.engine.row(MAPPINGS, "hostIp", ADDRESS);
        let now = Stand::of_row(&row);
        assert_eq!(Some(&now), stand.as_ref(), "after {arrived:?}");
        let now = live_in(Some(&now));
        assert_eq!(now, left_by(arrived.iter().copied()), "after {arrived:?}");
        assert!(now.is_none() || now >= seen, "{seen:?} was seen before the last of {arrived:?}");
        row
    }

    /// Plays every order of the rest, after the changes that have arrived and left this row. Orders with the same
    /// beginning share it. Copies of one change are interchangeable.
    async fn play<'a>(
        &self,
        arrived: &mut Vec<&'a Change>,
        left: &[&'a Change],
        (stand, row): (Option<Stand>, &Value),
        played: &mut Played,
    ) {
        for next in 0..left.len() {
            let mut rest = left.to_vec();
            let change = rest.remove(next);
            if left[..next].iter().any(|before| ptr::eq(*before, change)) {
                continue;
            }
            arrived.push(change);
            let mut stand = stand.clone();
            let left_row = self.arrive(arrived, &mut stand, played.steps.is_multiple_of(2)).await;
            if played.with_look_ups {
                assert_eq!(self.look_up().await, live_in(stand.as_ref()), "after {arrived:?}");
            }
            played.steps += 1;
            // All registers have arrived: an order with only these deletes ends here.
            played.ended += usize::from(!rest.iter().any(|change| matches!(change, Change::Register(_))));
            played.whole += usize::from(rest.is_empty());
            Box::pin(self.play(arrived, &rest, (stand, &left_row), played)).await;
            arrived.pop();
            self.put_back(row);
        }
    }
}

/// The instance that a look-up shows.
fn live_in(stand: Option<&Stand>) -> Option<Who> {
    stand.filter(|stand| stand.live).map(|stand| stand.who.clone())
}

/// How far the orders have been played.
#[derive(Default)]
struct Played {
    /// Whether each step is checked through the function too, beside the row.
    with_look_ups: bool,
    steps: usize,
    /// Orders of all registers and some deletes.
    ended: usize,
    /// Orders of all registers and all deletes.
    whole: usize,
}

/// The answer to a change by the contract. Brings the state up to date.
fn expect(stand: &mut Option<Stand>, change: &Change) -> &'static str {
    let there = stand.as_ref();
    let (answer, next) = match change {
        Change::Register(who) if there.is_some_and(|there| there.live && there.who == *who) => ("200", None),
        Change::Register(who) if there.is_some_and(|there| there.who >= *who) => ("409", None),
        Change::Register(who) => ("201", Some(Stand { who: who.clone(), live: true })),
        Change::Delete(who) if there.is_some_and(|there| there.who > *who) => ("superseded", None),
        Change::Delete(who) => {
            let answer = if there.is_some_and(|there| there.live) { "deleted" } else { "already_gone" };
            (answer, Some(Stand { who: who.clone(), live: false }))
        }
    };
    if next.is_some() {
        *stand = next;
    }
    answer
}

/// Registers three instances of these moments and deletes each subset of them, some without a name, in every order.
async fn all_orders(moments: [u64; 3], nameless: [bool; 3]) {
    let instances = [0, 1, 2].map(|index| Who::one(TEN + moments[index], NAMES[index]));
    let of_all = |index: usize| if nameless[index] { Who::all(TEN + moments[index]) } else { instances[index].clone() };
    let deletes = [0, 1, 2].map(|index| Change::Delete(of_all(index)));
    let registers = instances.each_ref().map(|who| Change::Register(who.clone()));
    let changes: Vec<_> = registers.iter().chain(&deletes).collect();
    assert_eq!(left_by(changes.iter().copied()), None, "all of them are deleted in the end");
    let with_look_ups = moments == [1, 2, 3];
    let mut played = Played { with_look_ups, ..Played::default() };
    Doors::open().play(&mut Vec::new(), &changes, (None, &Value::Null), &mut played).await;
    assert_eq!((played.whole, played.ended), (720, 6 + 3 * 24 + 3 * 120 + 720));
}

#[tokio::test]
async fn every_order_of_three_registers_and_their_deletes_ends_with_the_newest() {
    all_orders([1, 2, 3], [false; 3]).await;
}

#[tokio::test]
async fn every_order_of_instances_of_one_moment_ends_with_the_last_name() {
    all_orders([1, 1, 1], [false; 3]).await;
}

#[tokio::test]
async fn every_order_in_which_two_of_three_are_of_one_moment_ends_with_the_newest() {
    all_orders([1, 1, 2], [false; 3]).await;
    all_orders([1, 2, 2], [false; 3]).await;
}

#[tokio::test]
async fn every_order_of_deletes_that_name_no_instance_ends_with_what_is_of_a_later_moment() {
    all_orders([1, 2, 3], [true; 3]).await;
}

#[tokio::test]
async fn every_order_of_deletes_of_one_moment_with_and_without_a_name_ends_with_the_newest() {
    all_orders([1, 1, 1], [false, true, false]).await;
    all_orders([1, 1, 2], [true, false, true]).await;
}

#[tokio::test]
async fn every_order_of_changes_that_come_twice_ends_with_the_newest() {
    let (older, newer) = (Who::one(TEN, NAMES[1]), Who::one(TEN, NAMES[2]));
    let changes = [&older, &newer].map(|who| [Change::Register(who.clone()), Change::Delete(who.clone())]);
    let [[register_older, delete_older], [register_newer, delete_newer]] = &changes;
    for (other, orders) in [(delete_newer, 720 / 4), (register_newer, 720 / 8)] {
        let changes = [register_older, register_older, delete_older, delete_older, register_newer, other];
        let mut played = Played::default();
        Doors::open().play(&mut Vec::new(), &changes, (None, &Value::Null), &mut played).await;
        assert_eq!(played.whole, orders);
    }
}
