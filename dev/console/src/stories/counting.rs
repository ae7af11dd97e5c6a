//! Many clients change one number.

use super::ledger::{Totals, Twice};
use super::naive::{self, Ended};
use super::scene::{Scene, Verdict, request};
use super::story::{ACKNOWLEDGED, Counter, HELD, Settings, Side, Story, TWICE, UNKNOWN, numbered, were};
use fencepost::Store;
use fencepost_test::{Engine, number};
use functions::device_state::{adjust_device, create_device};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;

const DEVICES: &str = "Devices";
const RECORDS: &str = "IdempotencyRecords";
const COUNTERS: &str = "Counters";
const LAMP: &str = "lamp";

const SHOWN: &[Counter] = &[TWICE, ACKNOWLEDGED, UNKNOWN, HELD];

pub const ONE_ANSWER: Story = Story {
    name: "one-answer",
    title: "One answer gets lost",
    summary: "A client adds 1 to a number. DynamoDB applies the write, and its answer is lost on the way back. The client \
              cannot know that, so the same write is sent again, and it is refused.",
    settings: Settings { writers: 1, loses_first: true, ..Settings::PLAIN },
    facts: |_| "1 client, 1 change; the answer to its first write is lost".to_owned(),
    lost_answers: &[0],
    ..FIVE_USERS
};

pub const FIVE_USERS: Story = Story {
    name: "five-users",
    title: "Five users, ten changes each",
    summary: "Five users add to one number at the same time. Every change must count once.",
    settings: Settings { writers: 5, changes: 10, ..Settings::PLAIN },
    facts: |settings| format!("{} users, {} changes each", settings.writers, settings.changes),
    seeds: &[1, 2, 3],
    lost_answers: &[5, 20],
    sides: &[NAIVE, VERSIONED],
    clients: |settings| numbered("user", settings),
    counters: SHOWN,
    twice: Twice::PerCall,
};

pub const ONE_HUNDRED: Story = Story {
    name: "one-hundred",
    title: "One hundred at once",
    summary: "Many clients change one number in the same moment. A versioned change needs the very version that it has \
              read, so the others are in its way. An add is applied at any of the next 32 versions, so most adds pass.",
    settings: Settings { writers: 100, ..Settings::PLAIN },
    facts: |settings| format!("{} clients, one change each", settings.writers),
    seeds: &[1],
    lost_answers: &[0, 10],
    sides: &[VERSIONED, ADDS],
    clients: |settings| numbered("client", settings),
    ..FIVE_USERS
};

const NAIVE: Side = Side {
    id: "naive",
    title: "Usual loop",
    how: "Read, write if the version is still the same, read again if it is not. The SDK sends again what got no answer.",
    tables: &[(COUNTERS, "id")],
    held: |engine| number_or_0(&engine.row(COUNTERS, "id", LAMP)["n"]),
    play: |scene, settings| Box::pin(async move { naive_crowd(&scene, &settings).await }),
    verdict,
};

const VERSIONED: Side = Side {
    id: "fencepost",
    title: "Fencepost",
    how: "device-state makes a versioned change. The row remembers the last writes, so a lost answer is found out.",
    tables: &[(DEVICES, "deviceId"), (RECORDS, "recordId")],
    held: count_of_lamp,
    play: |scene, settings| Box::pin(async move { crowd(scene, &settings, &versioned_change()).await }),
    verdict,
};

const ADDS: Side = Side {
    id: "adds",
    title: "Fencepost, adds",
    how: "device-state adds to the number. An add is applied at any version of a window, in any order, each once.",
    tables: &[(DEVICES, "deviceId"), (RECORDS, "recordId")],
    held: count_of_lamp,
    play: |scene, settings| Box::pin(async move { crowd(scene, &settings, &add()).await }),
    verdict,
};

/// A change decided on the state as read: a limit must be kept.
fn versioned_change() -> Value {
    json!({ "attribute": "count", "by": 1, "max": 1_000_000, "onLimit": "clamp" })
}

fn add() -> Value {
    json!({ "attribute": "count", "by": 1 })
}

fn number_or_0(value: &Value) -> i64 {
    if value.is_null() { 0 } else { number(&json!({ "n": value }), "n") }
}

fn count_of_lamp(engine: &Engine) -> i64 {
    number_or_0(&engine.row(DEVICES, "deviceId", LAMP)["state"]["M"]["count"])
}

/// `device-state` on this store.
fn device_state(store: &Store) -> functions::device_state::App {
    functions::device_state::App::new(store.table(DEVICES), store.idempotency(RECORDS), Duration::from_mins(5))
}

async fn crowd(scene: Rc<Scene>, settings: &Settings, body: &Value) {
    let lamp = request("PUT /devices/{deviceId}", LAMP, &json!({ "state": { "count": 0 } }));
    Box::pin(scene.prepare(device_state, create_device, &lamp)).await;
    settings.trouble(&scene);
    let adjust = &request("POST /devices/{deviceId}/adjustments", LAMP, body);
    let scene = &*scene;
    join_all((0..settings.writers).map(|user| async move {
        let actor = scene.client(user);
        let app = device_state(&actor.store());
        for _ in 0..settings.changes {
            let mut answer = Box::pin(actor.ask(&app, adjust_device, adjust)).await;
            // Nothing was applied, says the answer. So it is asked again.
            while answer.is_unavailable() {
                answer = Box::pin(actor.ask(&app, adjust_device, adjust)).await;
            }
            count(scene, answer.is_success(), answer.is_unknown());
        }
    }))
    .await;
}

async fn naive_crowd(scene: &Scene, settings: &Settings) {
    scene.db().put(COUNTERS, &json!({ "id": {"S": LAMP}, "n": {"N": "0"}, "version": {"N": "1"} }));
    settings.trouble(scene);
    join_all((0..settings.writers).map(|user| async move {
        let actor = scene.client(user);
        for _ in 0..settings.changes {
            let work = Box::pin(naive::increment(&actor, COUNTERS, LAMP));
            let ended = naive::call(&actor, "add one", told, work).await;
            count(scene, ended == Ended::Acknowledged, ended == Ended::Unknown);
        }
    }))
    .await;
}

fn told(ended: Ended) -> (&'static str, &'static str) {
    match ended {
        Ended::Acknowledged => ("ok", "done, it believes"),
        Ended::Refused => ("failed", "it gave up"),
        Ended::Unknown => ("unknown", "no answer"),
    }
}

/// Counts a change that has ended.
fn count(scene: &Scene, is_acknowledged: bool, is_unknown: bool) {
    scene.count("changes", 1);
    scene.count("acknowledged", i64::from(is_acknowledged));
    scene.count("unknown", i64::from(is_unknown));
    scene.ledger().tell_counters();
}

fn verdict(totals: &Totals) -> Verdict {
    let [changes, acknowledged, unknown, held, twice] =
        ["changes", "acknowledged", "unknown", "held", "appliedTwice"].map(|name| totals.get(name));
    let told = were(acknowledged, "change");
    let unsure = if unknown == 0 { String::new() } else { format!(" {unknown} ended without an answer.") };
    let is_good =
        twice == 0 && acknowledged + unknown == changes && (acknowledged..=acknowledged + unknown).contains(&held);
    let text = if is_good {
        format!("{told} acknowledged, and the item holds {held}.{unsure} None was applied twice.")
    } else {
        format!(
            "{told} acknowledged, but the item holds {held}.{unsure} {} applied more than once.",
            were(twice, "change")
        )
    };
    Verdict { text, is_good }
}
