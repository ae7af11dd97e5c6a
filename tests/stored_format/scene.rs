//! All functions on one engine under one clock, and a play in which they write rows of every kind.

use crate::harness::answers::Answer;
use crate::harness::clients::{client_whose, lost};
use crate::harness::clock::{Clock, TEN_O_CLOCK};
use crate::harness::engine::{self, Engine, embedded_with_indexed_tables, is_read};
use crate::harness::events::{Event, acquire, batch_of, ensure, ensure_under, load, registration, release, renew};
use crate::harness::functions::{Devices, Functions, Leasing, Mappings, Shop};
use crate::harness::restore::rows;
use crate::harness::world::{ALLOWED, World};
use aws_sdk_dynamodb::Client;
use fencepost::{Error, Holds, Reads, Record, Settings, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// The rows of all tables, by table and key.
pub type Rows = BTreeMap<String, BTreeMap<String, Value>>;

/// An item that a user of the crate protects by a lease. No function writes the token of a lease into a row.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "taskId")]
pub struct Task {
    pub step: u64,
}

/// An item that other programs write too, and whose tombstones a sweep removes.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "parcelId", settings = Settings::without_ttl().shared_with_versioned_writers().swept())]
pub struct Parcel {
    pub weight: u64,
}

/// An item of which tickets hold parts.
#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "rowId", holds = Holds::of("free"))]
pub struct Seats {
    pub free: i64,
}

/// An item that decides about what it takes.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "ticketId", settings = Settings::deciding())]
pub struct Ticket {
    pub seats: i64,
}

/// Every table, each with its partition key.
pub fn tables() -> BTreeMap<&'static str, &'static str> {
    let of_users: &[_] = &[
        ("Tasks", Task::PARTITION_KEY),
        ("Parcels", Parcel::PARTITION_KEY),
        ("Seats", Seats::PARTITION_KEY),
        ("Tickets", Ticket::PARTITION_KEY),
    ];
    [Devices::TABLES, Shop::TABLES, Mappings::TABLES, Leasing::TABLES, of_users]
        .into_iter()
        .flatten()
        .copied()
        .collect()
}

/// All functions. It needs paused time.
pub struct Scene {
    pub engine: Engine,
    pub clock: Clock,
    pub devices: World<Devices>,
    pub shop: World<Shop>,
    pub mappings: World<Mappings>,
    pub leasing: World<Leasing>,
    store: Store,
}

impl Scene {
    /// These rows are stored, by a build of yesterday. Today's build starts now, so many milliseconds after ten o'clock.
    pub fn after(rows: &Rows, millis: u64) -> Self {
        let tables: Vec<_> = tables().into_iter().collect();
        let engine = embedded_with_indexed_tables(&tables);
        replace(&engine, rows);
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(2 + millis)));
        let client = engine.client();
        Self::of(&engine, Clock::standing(TEN_O_CLOCK + millis), &client, move || {
            random.lock().expect("no panic").u64(..)
        })
    }

    /// The same rows and clock, newly started, reached by this client, with these random numbers.
    pub fn drawing(&self, client: &Client, random: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::of(&self.engine, self.clock.clone(), client, random)
    }

    fn of(engine: &Engine, clock: Clock, client: &Client, random: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let store = engine::store(client, clock.looks(), random);
        Scene {
            devices: world(engine, &clock, &store),
            shop: world(engine, &clock, &store),
            mappings: world(engine, &clock, &store),
            leasing: world(engine, &clock, &store),
            engine: engine.clone(),
            clock,
            store,
        }
    }

    /// Sends an event to the function that has its path.
    pub async fn send(&self, event: &Event) -> Answer {
        match event.path().split('/').nth(1).unwrap_or_default() {
            "devices" => self.devices.send(event).await,
            "products" | "orders" => self.shop.send(event).await,
            "mappings" => self.mappings.send(event).await,
            _ => self.leasing.send(event).await,
        }
    }

    /// Sends an event that must be answered with this status.
    pub async fn done(&self, event: &Event, status: i64) -> Answer {
        let answer = self.send(event).await;
        assert_eq!(answer.status, status, "{event:?}\n{answer:?}");
        answer
    }

    /// Hands a message to `delete-mapping`, which must not fail.
    pub async fn message(&self, body: &Value) {
        let batch = batch_of(&[("m-1", body.to_string())]);
        let answer = self.mappings.invoke(ALLOWED, &batch).await.expect("an answer");
        assert_eq!(answer["batchItemFailures"], json!([]));
    }

    /// The tasks, under a token of the lease `held`.
    pub fn tasks(&self, token: u64) -> Table<Task> {
        self.store.table("Tasks").fenced_by(&self.leasing.app.leases.token("held", token).expect("a token"))
    }

    pub fn parcels(&self) -> Table<Parcel> {
        self.store.table("Parcels")
    }

    /// The rows of seats, of which tickets hold some.
    pub fn seats(&self) -> Table<Seats> {
        self.store.table::<Seats>("Seats").held_for(&self.store.table::<Ticket>("Tickets"))
    }

    /// Sells seats of these rows, one of each: takes them, and creates the ticket.
    pub async fn sell(&self, ticket: &str, rows: &[&str]) {
        let mut reads = Reads::new();
        let created = reads.later("ticket", &self.store.table::<Ticket>("Tickets"), ticket);
        let taken: Vec<_> = rows.iter().map(|row| reads.item(*row, &self.seats(), *row)).collect();
        let sold = self.store.transact_with_retry(reads, |attempt| {
            for item in &taken {
                attempt.edit(*item, &Seats::FIELDS.free.add(-1, 0..))?;
            }
            attempt.put_if_absent(created, &Ticket { seats: 1 })?;
            Ok::<_, Error>(())
        });
        sold.await.expect("free seats");
    }

    /// All rows as they are stored.
    pub fn rows(&self) -> Rows {
        rows_of(&self.engine)
    }
}

fn rows_of(engine: &Engine) -> Rows {
    let rows_of = |(table, key): (&str, &str)| {
        let rows = rows(engine, table).into_iter();
        let rows = rows.map(|row| (row[key]["S"].as_str().expect("a key").to_owned(), row));
        (table.to_owned(), rows.collect())
    };
    tables().into_iter().map(rows_of).collect()
}

/// Stores these rows and no other ones.
pub fn replace(engine: &Engine, rows: &Rows) {
    for (table, stored) in rows_of(engine) {
        for id in stored.keys() {
            let key = engine.key_of(&table);
            engine.raw("DeleteItem", &json!({"TableName": table, "Key": {key: {"S": id}}}));
        }
    }
    for (table, rows) in rows {
        for row in rows.values() {
            engine.raw("PutItem", &json!({"TableName": table, "Item": row}));
        }
    }
}

fn world<F: Functions>(engine: &Engine, clock: &Clock, store: &Store) -> World<F> {
    World::under(&engine.with_own_uses(), clock.clone(), store)
}

/// An event of `events/` about this item, with this body, under no precondition.
pub fn event(name: &str, id: &str, body: &Value) -> Event {
    let event = load(name).without_header("if-match");
    let parameter = event.0["pathParameters"].as_object().and_then(|all| all.keys().next().cloned());
    let event = match parameter {
        Some(parameter) => event.of(&parameter, id),
        None => event.key(id),
    };
    if body.is_null() { event } else { event.json(body) }
}

/// Adds to the brightness of a device.
pub fn brighter(id: &str, by: i64) -> Event {
    event("device-state-adjust", id, &json!({"attribute": "brightness", "by": by, "min": 0, "max": 100}))
}

/// Adds to the stock of a product.
pub fn stocked(id: &str, by: i64) -> Event {
    event("inventory-adjust", id, &json!({"by": by}))
}

/// Places an order under this key.
pub fn order(key: &str, lines: &Value) -> Event {
    event("place-order-place", key, &json!({"userId": "user-1", "lines": lines}))
}

/// Wants the child of a parent; under a lease if there is one.
pub fn child(parent: &str, lease: Option<(&str, u64)>) -> Event {
    let uid = format!("uid-of-{parent}");
    let spec = json!({"pages": 12, "size": 1.5, "tags": ["a", null, true]});
    lease.map_or_else(|| ensure(parent, &uid, &spec), |lease| ensure_under(parent, &uid, &spec, lease))
}

/// Numbers from this one on.
pub fn from(first: u64) -> impl Fn() -> u64 + Send + Sync + 'static {
    let drawn = AtomicU64::new(first);
    move || drawn.fetch_add(1, SeqCst)
}

/// More writes than a row of a device or a product remembers.
const FORGETTING: u64 = 70;

/// Milliseconds after ten o'clock at which the play is over.
pub const ENDED: u64 = 300_000;

/// Plays events that leave rows of every kind. It starts at ten o'clock with no row.
pub async fn play() -> Scene {
    let scene = Scene::after(&Rows::new(), 0);
    play_devices(&scene).await;
    play_shop(&scene).await;
    play_the_rest(&scene).await;
    scene.clock.set_forward(ENDED);
    let config = json!({"fadeMs": 400, "mode": "night"});
    scene.done(&event("device-state-set-config", "changed", &config), 200).await;
    scene.done(&event("device-state-set-status", "changed", &json!({"status": "offline"})), 200).await;
    scene.done(&acquire("keyed", "worker-1", 60).key("k-4"), 201).await;
    let token = token_of(&scene.rows(), "renewed");
    scene.done(&renew("renewed", token, 120), 200).await;
    play_line(&scene).await;
    play_parcels(&scene).await;
    play_seats(&scene).await;
    scene
}

/// A writer meets others at a device twice, takes a ticket, and commits under it.
async fn play_line(scene: &Scene) {
    scene.done(&event("device-state-create", "lined", &json!({"state": {"brightness": 50}})), 201).await;
    let client = client_whose(&scene.engine, |engine, writes, operation, body| {
        if writes < 2 && !is_read(operation) {
            engine.raw(
                "UpdateItem",
                &json!({"TableName": "Devices", "Key": {"deviceId": {"S": "lined"}},
                "UpdateExpression": "ADD #v :one", "ExpressionAttributeNames": {"#v": "_version"},
                "ExpressionAttributeValues": {":one": {"N": "1"}}}),
            );
        }
        engine.answer(operation, body)
    });
    let this = scene.drawing(&client, from(815));
    this.done(&event("device-state-patch-state", "lined", &json!({"list": [1]})), 200).await;
}

/// Some seats are sold. The ticket is there, and the row still has its hold.
async fn play_seats(scene: &Scene) {
    for row in ["held", "last"] {
        scene.seats().create(row, &Seats { free: 3 }).await.expect("a free key");
    }
    scene.sell("sold", &["held", "last"]).await;
    scene.sell("another", &["held"]).await;
}

async fn play_parcels(scene: &Scene) {
    let parcels = scene.parcels();
    let foreign = json!({"parcelId": {"S": "adopted"}, "_version": {"N": "3"}, "weight": {"N": "1"}});
    scene.engine.raw("PutItem", &json!({"TableName": "Parcels", "Item": foreign}));
    let heavier = |parcel: &Parcel| Parcel { weight: parcel.weight + 1 };
    parcels.update_with_retry("adopted", heavier).await.expect("a parcel");
    parcels.create("deleted", &Parcel { weight: 1 }).await.expect("a free key");
    parcels.delete("deleted").await.expect("a parcel");
}

async fn play_devices(scene: &Scene) {
    let state = json!({"on": true, "name": "Flur", "list": [1, "a", false, null, {"x": 1.50}], "deep": {"er": {"n": -7}},
        "big": 123_456_789_012_345_678_u64, "small": 0.000_1, "none": [], "empty": ""});
    let lamp = json!({"state": {"brightness": 50}, "status": "online", "config": {"fadeMs": 200}});
    scene.done(&event("device-state-create", "rich", &json!({"state": state})), 201).await;
    // Numbers that no add can change exactly.
    let wide =
        r#"{"state":{"exact":0.1234567890123456789012345,"far":1e30,"long":12345678901234567890123456789012345678}}"#;
    scene.done(&event("device-state-create", "wide", &Value::Null).text(wide), 201).await;
    for id in ["changed", "deleted", "again", "keyed", "burned", "busy"] {
        scene.done(&event("device-state-create", id, &lamp), 201).await;
    }
    for id in ["deleted", "again"] {
        scene.done(&event("device-state-delete", id, &Value::Null).header("if-match", "*"), 204).await;
    }
    scene.done(&event("device-state-create", "again", &lamp), 201).await;
    let patch = event("device-state-patch-state", "changed", &json!({"brightness": 60, "colour": "red"}));
    scene.done(&patch, 200).await;
    scene.done(&brighter("changed", 1), 200).await;
    scene.done(&brighter("keyed", 7).key("k-1"), 200).await;
    scene.done(&event("device-state-patch-state", "keyed", &json!({"brightness": 20})).key("k-2"), 200).await;
    often(scene, |time| brighter("busy", if time % 2 == 0 { 1 } else { -1 })).await;
    burn(scene, "burned", &brighter("burned", 1), &brighter("burned", -20), &brighter("burned", -40)).await;
}

/// Sends events of one item until its row has forgotten some. Each comes from a newly started process, which knows no id of its
/// own there and removes none.
async fn often(scene: &Scene, event: impl Fn(u64) -> Event) {
    let drawn = Arc::new(AtomicU64::new(81_000));
    for time in 0..FORGETTING {
        let drawn = drawn.clone();
        let this = scene.drawing(&scene.engine.client(), move || drawn.fetch_add(1, SeqCst));
        this.done(&event(time), 200).await;
    }
}

/// Leaves the mark of a burned add: its first send was lost, its second one was refused by another writer's change.
async fn burn(scene: &Scene, id: &str, seen: &Event, others: &Event, burned: &Event) {
    let client = client_whose(&scene.engine, |engine, before, operation, body| match before {
        1 => lost(),
        _ => engine.answer(operation, body),
    });
    let this = scene.drawing(&client, from(4711));
    this.done(seen, 200).await;
    scene.done(others, 200).await;
    this.done(burned, 409).await;
    let marks = |rows: &BTreeMap<String, Value>| {
        rows.get(id).is_some_and(|row| row["_writes"].to_string().contains(r#""N":"-"#))
    };
    assert!(scene.rows().values().any(marks), "{id} has a burned write");
}

async fn play_shop(scene: &Scene) {
    for (id, stock) in [("mug", 5), ("cup", 9), ("burned", 60), ("busy", 9)] {
        scene.done(&event("inventory-create", id, &json!({"stock": stock, "lowStockAt": 4})), 201).await;
    }
    often(scene, |_| stocked("busy", 1)).await;
    scene.done(&stocked("mug", 10), 200).await;
    scene.done(&stocked("cup", -2).key("k-3"), 200).await;
    let lines = json!([{"productId": "mug", "quantity": 2}, {"productId": "cup", "quantity": 1}]);
    scene.done(&order("o-1", &lines), 201).await;
    let placed = scene.done(&order("o-2", &lines), 201).await.json();
    let id = placed["orderId"].as_str().expect("an id").to_owned();
    scene.done(&event("place-order-cancel", &id, &Value::Null), 200).await;
    burn(scene, "burned", &stocked("burned", 1), &stocked("burned", -20), &stocked("burned", -50)).await;
}

async fn play_the_rest(scene: &Scene) {
    let (early, late) = ("2026-03-07T09:00:00.000Z", "2026-03-07T09:30:00.123Z");
    for ip in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        scene.done(&registration(ip, "i-a", early), 201).await;
    }
    scene.done(&registration("192.0.2.2", "i-b", late), 201).await;
    scene.message(&json!({"hostIp": "192.0.2.3", "creationTimestamp": early, "instanceId": "i-a"})).await;
    scene.message(&json!({"hostIp": "2001:db8::4", "creationTimestamp": late})).await;
    for key in ["held", "released", "renewed"] {
        scene.done(&acquire(key, "worker-1", 60), 201).await;
    }
    scene.done(&release("released", token_of(&scene.rows(), "released")), 204).await;
    scene.done(&child("alone", None), 201).await;
    for id in ["guarded", "done"] {
        let tasks = scene.tasks(token_of(&scene.rows(), "held"));
        tasks.create(id, &Task { step: 1 }).await.expect("created");
    }
    scene.done(&child("fenced", Some(("held", token_of(&scene.rows(), "held")))), 201).await;
}

/// The token of a lease.
pub fn token_of(rows: &Rows, key: &str) -> u64 {
    let token = rows["Leases"][key]["token"]["N"].as_str().expect("a number");
    token.parse().expect("a whole number")
}
