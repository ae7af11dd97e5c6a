//! The read and write units of each route, as the engine counts them, and as docs/operations.md lists them.

use super::derived::compare;
use super::files::Complaints;
use crate::harness::answers::Answer;
use crate::harness::clients::client_whose;
use crate::harness::engine::{Engine, embedded_with_indexed_tables, is_read};
use crate::harness::events::{Event, load, sample};
use crate::harness::functions::{Alone, Devices, Functions, Leasing, Mappings, PRODUCTS, Shop, all_routes, alone};
use crate::harness::states::leave_hold;
use crate::harness::world::World;
use aws_sdk_dynamodb::Client;
use fencepost::{Call, Deadline};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Dollars for a million read request units and for a million write request units, on demand, in US East (N. Virginia).
///
/// Source: <https://aws.amazon.com/dynamodb/pricing/on-demand/>
const PRICES: (f64, f64) = (0.125, 0.625);

/// Adds up the units that the engine says it would charge.
#[derive(Clone, Default)]
struct Meter(Arc<Mutex<(f64, f64)>>);

impl Meter {
    /// A client that asks for the cost of each request.
    fn client(&self, engine: &Engine) -> Client {
        let meter = self.clone();
        client_whose(engine, move |engine, _, operation, body| {
            let mut body: Value = serde_json::from_slice(body).expect("requests are JSON");
            body["ReturnConsumedCapacity"] = json!("TOTAL");
            let (status, answer) = engine.answer(operation, body.to_string().as_bytes());
            meter.note(operation, &serde_json::from_str(&answer).expect("answers are JSON"));
            (status, answer)
        })
    }

    fn note(&self, operation: &str, answer: &Value) {
        let consumed = match &answer["ConsumedCapacity"] {
            Value::Array(tables) => tables.clone(),
            one => vec![one.clone()],
        };
        let units: f64 = consumed.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum();
        let mut sum = self.0.lock().expect("no panic while noting");
        *(if is_read(operation) { &mut sum.0 } else { &mut sum.1 }) += units;
    }

    fn take(&self) -> (f64, f64) {
        std::mem::take(&mut *self.0.lock().expect("no panic while noting"))
    }
}

/// Functions with a meter, and the rows of the table that were found so far.
struct Till<F> {
    world: World<F>,
    meter: Meter,
    rows: Vec<String>,
    routes: BTreeSet<String>,
}

impl<F: Functions> Till<F> {
    fn new() -> Self {
        // DynamoDB Local charges nothing for an item that is not there, and too little for an update in a transaction.
        let (meter, world) = (Meter::default(), World::<F>::on(&embedded_with_indexed_tables(F::tables())));
        let world = world.reached_by(&meter.client(&world.engine));
        Till { world, meter, rows: Vec::new(), routes: BTreeSet::new() }
    }

    /// Sends an event without counting it.
    async fn prepare(&self, event: &Event) -> Answer {
        let answer = self.world.send(event).await;
        assert!(answer.status < 300, "{event:?} {answer:?}");
        answer
    }

    /// Sends an event, and notes its cost.
    async fn count(&mut self, case: &str, event: &Event) -> Answer {
        self.meter.take();
        let answer = self.prepare(event).await;
        self.rows.push(row_of(&format!("`{}`{case}", event.route()), self.meter.take()));
        self.routes.insert(event.route().to_owned());
        answer
    }
}

/// A row of the table in docs/operations.md.
fn row_of(what: &str, (reads, writes): (f64, f64)) -> String {
    let dollars = reads * PRICES.0 + writes * PRICES.1;
    format!("| {what} | {reads} | {writes} | {dollars:.3} |")
}

/// Every route of device-state on a device of 0.3 KB that remembers 40 writes.
async fn of_devices() -> (Vec<String>, BTreeSet<String>) {
    let mut till = Till::<Devices>::new();
    let state =
        json!({"state": {"brightness": 50, "note": "x".repeat(100)}, "status": "online", "config": {"fadeMs": 1}});
    till.count("", &load("device-state-create").json(&state)).await;
    let adjust = load("device-state-adjust").text(r#"{"attribute":"brightness","by":1}"#);
    for _ in 0..70 {
        till.prepare(&adjust).await;
    }
    till.count("", &load("device-state-get")).await;
    till.count("", &load("device-state-patch-state")).await;
    till.count("", &adjust).await;
    till.count(", with a key", &adjust.clone().key("k-1")).await;
    till.count(", the same key again", &adjust.clone().key("k-1")).await;
    till.count("", &load("device-state-set-status").text(r#"{"status":"offline"}"#)).await;
    till.prepare(&load("device-state-set-status")).await;
    till.count("", &load("device-state-set-config")).await;
    let tag = till.prepare(&load("device-state-get")).await.etag().to_owned();
    till.count("", &load("device-state-delete").header("if-match", &tag)).await;
    (till.rows, till.routes)
}

/// Every route of inventory and place-order on products that remember 28 writes.
async fn of_shop() -> (Vec<String>, BTreeSet<String>) {
    let mut till = Till::<Shop>::new();
    let product = |event: &str, id: &str| load(event).of("productId", id);
    let stock = json!({"stock": 100_000, "lowStockAt": 2});
    till.count("", &product("inventory-create", "mug-blue").json(&stock)).await;
    till.prepare(&product("inventory-create", "mug-red").json(&stock)).await;
    let one_less = json!({"by": -1});
    for _ in 0..70 {
        for id in ["mug-blue", "mug-red"] {
            till.prepare(&product("inventory-adjust", id).json(&one_less)).await;
        }
    }
    till.count("", &product("inventory-get", "mug-blue")).await;
    till.count("", &product("inventory-adjust", "mug-blue").json(&one_less)).await;
    let lines = ["mug-blue", "mug-red"].map(|id| json!({"productId": id, "quantity": 1}));
    let order = load("place-order-place").json(&json!({"userId": "user-1", "lines": lines}));
    till.prepare(&order.clone().key("k-1")).await;
    let id = till.count(", two lines", &order.key("k-2")).await.json()["orderId"].as_str().expect("an id").to_owned();
    till.count("", &load("place-order-get").of("orderId", &id)).await;
    till.count(", two orders", &load("place-order-list")).await;
    let cancel = load("place-order-cancel").of("orderId", &id);
    till.count(", two lines", &cancel).await;
    till.count(", again", &cancel).await;
    for holds in [10_u8, 50] {
        let id = format!("held-{holds}");
        till.prepare(&product("inventory-create", &id).json(&stock)).await;
        for hold in 0..holds {
            let attempt = format!("AAAAAAAA{}{}A", char::from(b'a' + hold / 26), char::from(b'a' + hold % 26));
            leave_hold(&till.world.engine, PRODUCTS, &id, (&attempt, 1), None);
        }
        till.count(&format!(", {holds} undecided holds"), &product("inventory-get", &id)).await;
        let lines = json!([{"productId": id, "quantity": 1}]);
        let order = load("place-order-place").json(&json!({"userId": "user-1", "lines": lines})).key(&id);
        till.count(&format!(", one line, {holds} undecided holds"), &order).await;
    }
    (till.rows, till.routes)
}

/// Every route of host-mapping, and a message to delete-mapping.
async fn of_mappings() -> (Vec<String>, BTreeSet<String>) {
    let mut till = Till::<Mappings>::new();
    for event in ["host-mapping-register", "host-mapping-get", "host-mapping-delete"] {
        till.count("", &load(event)).await;
    }
    let message = load("delete-mapping-superseded").0["Records"][0]["body"].take();
    let call = Call::new(Deadline::within(Duration::from_secs(5)));
    till.meter.take();
    let bodies = [message.as_str().expect("a body")];
    assert!(functions::delete_mapping::handle(&till.world.app.deletes, &bodies, &call).await.iter().all(Result::is_ok));
    till.rows.push(row_of("a message in `DeleteMappingQueue`", till.meter.take()));
    (till.rows, till.routes)
}

/// Every route of lease and ensure-child.
async fn of_leases() -> (Vec<String>, BTreeSet<String>) {
    let mut till = Till::<Leasing>::new();
    let acquired = till.count("", &load("lease-acquire")).await;
    let token = acquired.json()["token"].as_u64().expect("a token");
    till.count("", &load("lease-get")).await;
    let renew = load("lease-renew").json(&json!({"token": token, "ttlSeconds": 60}));
    till.count("", &renew).await;
    let tag = till.prepare(&load("lease-get")).await.etag().to_owned();
    till.count(", with `If-Match`", &renew.header("if-match", &tag)).await;
    let child = |parent: &str, lease: Value| {
        let mut body = json!({"parentUid": "u-1", "spec": {"pages": 12}});
        if !lease.is_null() {
            body["lease"] = lease;
        }
        load("ensure-child-ensure").of("parentId", parent).json(&body)
    };
    let lease = json!({"key": "nightly-report", "token": token});
    till.count("", &child("p-1", Value::Null)).await;
    till.count(", under a lease", &child("p-2", lease.clone())).await;
    till.count(", under a lease, which is there", &child("p-2", lease)).await;
    till.count("", &load("ensure-child-get").of("parentId", "p-1").asking([("parentUid", "u-1")])).await;
    till.count("", &load("lease-release").asking([("token", token.to_string().as_str())])).await;
    (till.rows, till.routes)
}

/// Every route of a function that has no scene of its own, with the events of `events/`, in the order of its routes.
async fn of_others() -> (Vec<String>, BTreeSet<String>) {
    let mut found = (Vec::new(), BTreeSet::new());
    for function in alone().filter(|function| !function.routes().is_empty()) {
        Alone::is(function);
        let mut till = Till::<Alone>::new();
        for route in function.routes() {
            till.count("", &sample(route.at, "one")).await;
        }
        found.0.extend(till.rows);
        found.1.extend(till.routes);
    }
    found
}

#[tokio::test(start_paused = true)]
async fn the_units_of_each_route_are_those_of_the_page() {
    let found = [of_devices().await, of_shop().await, of_mappings().await, of_leases().await, of_others().await];
    let rows: Vec<_> = found.iter().flat_map(|(rows, _)| rows).map(|row| format!("{row}\n")).collect();
    let table = format!("\n| route | read units | write units | dollars |\n|---|---|---|---|\n{}\n", rows.concat());
    let mut complaints = Complaints::default();
    compare("docs/operations.md", "units", &table, &mut complaints);
    let counted: BTreeSet<_> = found.iter().flat_map(|(_, routes)| routes.clone()).collect();
    for route in all_routes().filter(|route| !counted.contains(route.at)) {
        complaints.push(format!("tests/repository/costs.rs: count the units of {}", route.at));
    }
    complaints.report();
}
