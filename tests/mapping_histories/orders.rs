//! All orders in which three registers and deletes of them can arrive at one address, through the functions' own doors.

use super::plan::{Change, Stand, Who, left_by};
use super::{TABLE, TABLES};
use crate::engine::Engine;
use crate::orders::shop::load;
use crate::scenarios::world::{Answer, Event};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::sqs::SqsEvent;
use fencepost::Ambient;
use fencepost::newest::Newest;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::json;
use std::time::{Duration, SystemTime};

/// The address of the events.
const ADDRESS: &str = "192.0.2.10";
/// 10:00 on 7 March 2026.
const TEN: u64 = 1_772_877_600_000;
/// What two instances of one moment are ordered by, whatever is said first.
const NAMES: [&str; 3] = ["i-A", "i-a", "i-b"];

/// Both functions on one engine.
struct Doors {
    engine: Engine,
    mappings: host_mapping::App,
    deletes: delete_mapping::App,
    register: Event,
    get: Event,
    delete: Event,
    batch: Event,
}

impl Doors {
    fn open() -> Self {
        let engine = Engine::embedded(TABLES);
        let client = engine.client();
        let now = || SystemTime::UNIX_EPOCH + Duration::from_millis(TEN);
        let ambient = Ambient::new(now, || 7);
        Doors {
            mappings: host_mapping::App::new(Newest::new(&client, TABLE).with_ambient(ambient.clone())),
            deletes: delete_mapping::App::new(Newest::new(&client, TABLE).with_ambient(ambient)),
            register: load("host-mapping-register"),
            get: load("host-mapping-get"),
            delete: load("host-mapping-delete"),
            batch: load("delete-mapping-deleted"),
            engine,
        }
    }

    async fn send(&self, event: Event) -> Answer {
        assert_eq!(event.0["pathParameters"]["hostIp"], ADDRESS);
        let payload: ApiGatewayV2httpRequest = serde_json::from_value(event.0).expect("an event");
        let event = LambdaEvent::new(payload, Context::default());
        Box::pin(fencepost::runtime::respond(&self.mappings, &host_mapping::handle, event)).await.into()
    }

    /// What is seen there.
    async fn look_up(&self) -> Option<Who> {
        let answer = self.send(self.get.clone()).await;
        if answer.status == 404 {
            return None;
        }
        let who = Who::of_body(&answer.json());
        assert_eq!(answer.shown(200), who.shown(ADDRESS));
        Some(who)
    }

    /// What a register is answered.
    async fn register(&self, who: &Who) -> String {
        let answer = self.send(self.register.clone().text(&who.body().to_string())).await;
        answer.status.to_string()
    }

    /// What a delete is answered.
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

    /// The same through the queue, which is told of failures alone.
    async fn delete_later(&self, who: &Who) {
        let mut event = self.batch.clone();
        event.0["Records"][0]["body"] = json!(who.message(ADDRESS).to_string());
        let payload: SqsEvent = serde_json::from_value(event.0).expect("a batch");
        let event = LambdaEvent::new(payload, Context::default());
        let answer = fencepost::runtime::respond_batch(&self.deletes, &delete_mapping::handle, event).await;
        assert_eq!(answer.expect("an answer").batch_item_failures.len(), 0, "{who:?}");
    }

    fn forget(&self) {
        self.engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"hostIp": {"S": ADDRESS}}}));
    }

    /// Plays one order; after each step there is to be seen what follows from what has arrived so far.
    async fn play(&self, order: &[&Change], through_queue: usize) {
        self.forget();
        let mut stand = None;
        let mut seen = None;
        for (place, change) in order.iter().enumerate() {
            let expected = expect(&mut stand, change);
            let answer = match change {
                Change::Register(who) => self.register(who).await,
                Change::Delete(who) if place % 2 == through_queue => {
                    self.delete_later(who).await;
                    expected.to_owned()
                }
                Change::Delete(who) => self.delete(who).await,
            };
            assert_eq!(answer, expected, "step {place} of {order:?}");
            let row = Stand::of_row(&self.engine.row(TABLE, "hostIp", ADDRESS));
            assert_eq!(Some(row), stand, "step {place} of {order:?}");
            let now = self.look_up().await;
            assert_eq!(now, left_by(order[..=place].iter().copied()), "step {place} of {order:?}");
            assert!(now.is_none() || now >= seen, "an older one than {seen:?} after step {place} of {order:?}");
            seen = now.or(seen);
        }
    }
}

/// What a change is answered, as the contract says, and what stands there afterwards.
fn expect(stand: &mut Option<Stand>, change: &Change) -> &'static str {
    let there = stand.as_ref();
    let (answer, next) = match change {
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

/// Every order of these.
fn orders_of<'a>(changes: &[&'a Change]) -> Vec<Vec<&'a Change>> {
    if changes.is_empty() {
        return vec![Vec::new()];
    }
    let mut orders = Vec::new();
    for first in 0..changes.len() {
        let mut rest = changes.to_vec();
        let first = rest.remove(first);
        orders.extend(orders_of(&rest).into_iter().map(|rest| [vec![first], rest].concat()));
    }
    orders
}

/// Registers three instances of these moments and deletes each subset of them, some without a name, in every order.
async fn all_orders(moments: [u64; 3], nameless: [bool; 3]) {
    let doors = Doors::open();
    let instances = [0, 1, 2].map(|index| Who::one(TEN + moments[index], NAMES[index]));
    let registers = instances.each_ref().map(|who| Change::Register(who.clone()));
    let of_all = |index: usize| if nameless[index] { Who::all(TEN + moments[index]) } else { instances[index].clone() };
    let deletes = [0, 1, 2].map(|index| Change::Delete(of_all(index)));
    let mut played = 0;
    for subset in 0..8 {
        let deleted = deletes.iter().enumerate().filter(|(index, _)| subset & (1 << index) != 0);
        let changes: Vec<_> = registers.iter().chain(deleted.map(|(_, delete)| delete)).collect();
        if subset == 0b111 {
            assert_eq!(left_by(changes.iter().copied()), None, "all of them are deleted");
        }
        for order in orders_of(&changes) {
            doors.play(&order, played % 2).await;
            played += 1;
        }
    }
    assert_eq!(played, 6 + 3 * 24 + 3 * 120 + 720);
}

const NAMED: [bool; 3] = [false; 3];
const NAMELESS: [bool; 3] = [true; 3];

#[tokio::test]
async fn every_order_of_three_registers_and_their_deletes_ends_with_the_newest() {
    all_orders([1, 2, 3], NAMED).await;
}
