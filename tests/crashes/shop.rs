//! The cases of `inventory`, `place-order` and `settle-holds`.

use super::case::Given::{Absent, Held, Present, Same, Seen, Tombstone};
use super::case::How::{IfMatch, IfNone, Keyed, Plain};
use super::case::Promise::{Each, Nothing, Once};
use super::case::{Case, Given, Killed, Said, answered, case};
use super::devices::asked;
use crate::harness::events::{Event, event_of, order, order_id};
use crate::harness::functions::{ORDERS, PRODUCTS, Shop};
use crate::harness::states::{burn_order, bury, leave_hold};
use crate::harness::world::World;
use fencepost::{Call, Deadline};
use serde_json::json;
use std::time::Duration;

const CREATE: &str = "PUT /products/{productId}";
const ADJUST: &str = "POST /products/{productId}/adjustments";
const PLACE: &str = "POST /orders";
pub const SCHEDULE: &str = "rate(1 hour)";
const CANCEL: &str = "POST /orders/{orderId}/cancellation";

const GONE: [&str; 2] = ["404 product_not_found"; 2];
const NO_ORDER: [&str; 2] = ["404 order_not_found"; 2];
const STALE: &str = "412 version_conflict";

impl Killed for Shop {
    const CASES: &'static [Case] = &[
        case(CREATE, Absent, Plain, Once, ["201", "409 product_exists"]),
        case(CREATE, Tombstone, Plain, Once, ["201", "409 product_exists"]),
        case(CREATE, Present, Plain, Nothing, ["409 product_exists"; 2]),
        case(CREATE, Absent, IfNone, Once, ["201", STALE]),
        case(ADJUST, Absent, Plain, Nothing, GONE),
        case(ADJUST, Tombstone, Plain, Nothing, GONE),
        case(ADJUST, Present, Plain, Each, ["200", "200"]),
        case(ADJUST, Seen, Plain, Each, ["200", "200"]),
        case(ADJUST, Held, Plain, Once, ["200", "409 insufficient_stock"]),
        case(ADJUST, Present, IfMatch, Once, ["200", STALE]),
        case(ADJUST, Absent, Keyed, Nothing, GONE),
        case(ADJUST, Tombstone, Keyed, Nothing, GONE),
        case(ADJUST, Present, Keyed, Once, ["200", "200 replayed"]),
        case(ADJUST, Seen, Keyed, Once, ["200", "200 replayed"]),
        // The item is the order. Its products are there.
        case(PLACE, Absent, Keyed, Once, ["201", "201 replayed"]),
        case(PLACE, Seen, Keyed, Once, ["201", "201 replayed"]),
        case(PLACE, Tombstone, Keyed, Once, ["201", "201 replayed"]),
        case(PLACE, Held, Keyed, Once, ["201", "201 replayed"]),
        case(PLACE, Same, Keyed, Nothing, ["201 replayed"; 2]),
        case(SCHEDULE, Held, Plain, Once, ["settled"; 2]),
        case(CANCEL, Absent, Plain, Nothing, NO_ORDER),
        case(CANCEL, Tombstone, Plain, Nothing, NO_ORDER),
        case(CANCEL, Present, Plain, Once, ["200", "200"]),
        case(CANCEL, Seen, Plain, Once, ["200", "200"]),
        case(CANCEL, Present, IfMatch, Once, ["200", STALE]),
        case(CANCEL, Same, Plain, Nothing, ["200", "200"]),
    ];

    fn name_of(route: &str) -> &'static str {
        match route {
            CREATE | ADJUST => "inventory",
            SCHEDULE => "settle-holds",
            _ => "place-order",
        }
    }

    /// Another client's order, which reads the products and is refused.
    fn seeing() -> Option<Event> {
        Some(ordered("k-2", 1_000))
    }

    async fn settle(world: &World<Self>) {
        assert_eq!(settled(world).await, "settled");
    }

    async fn invoke(world: &World<Self>, event: &Event) -> Said {
        if !event.0["detail-type"].is_null() {
            return Said { text: settled(world).await.to_owned(), is_success: true, body: None };
        }
        answered(&world.send(event).await)
    }

    async fn prepare(world: &World<Self>, case: &Case) -> Event {
        let is_order = Self::name_of(case.route) == "place-order";
        let mut tag = "\"1.AAAAAAAAAAA\"".to_owned();
        for id in ["a", "b"] {
            if is_order || case.given != Given::Absent {
                let created = world.send(&event_of(CREATE, id).json(&json!({"stock": 10, "lowStockAt": 5}))).await;
                created.shown(201);
                created.etag().clone_into(&mut tag);
            }
        }
        let id = order_id("k-1");
        if is_order && (case.given == Same || case.route == CANCEL && ![Absent, Tombstone].contains(&case.given)) {
            let quantity = if case.given == Same { 10 } else { 4 };
            let placed = world.send(&ordered("k-1", quantity)).await;
            assert_eq!(placed.shown(201)["orderId"], id);
            placed.etag().clone_into(&mut tag);
        }
        if case.route == CANCEL && case.given == Same {
            world.send(&event_of(CANCEL, &id)).await.shown(200);
        }
        if case.given == Tombstone {
            if is_order {
                burn_order(&world.engine, ORDERS, &id);
            } else {
                bury(&world.engine, PRODUCTS, "b");
            }
        }
        Self::settle(world).await;
        if case.given == Held {
            for id in ["a", "b"] {
                leave_hold(&world.engine, PRODUCTS, id, ("AAAAAAAAAAA", 5), None);
                leave_hold(&world.engine, PRODUCTS, id, ("AAAAAAAAAAE", 4), Some(ORDERS));
            }
        }
        let event = match case.route {
            CREATE => event_of(CREATE, "b").json(&json!({"stock": 7})),
            ADJUST => event_of(ADJUST, "b").json(&json!({"by": if case.given == Held { -10 } else { -3 }})),
            // All of it: so the next one has to settle what a process that died holds.
            PLACE => ordered("k-1", 10),
            SCHEDULE => return Event(json!({"detail-type": "Scheduled Event"})),
            other => event_of(other, &id),
        };
        asked(event, case.how, &tag)
    }
}

/// Runs the function with the schedule.
async fn settled(world: &World<Shop>) -> &'static str {
    let call = Call::new(Deadline::within(Duration::from_mins(15)));
    let done = functions::settle_holds::settle(&world.app.holds, &call).await;
    world.assert_permissions();
    done.expect("nothing is in its way").outcome
}

/// Orders so many of one product and one of another.
fn ordered(key: &str, quantity: i64) -> Event {
    order(key, &[("a", quantity), ("b", 1)])
}
