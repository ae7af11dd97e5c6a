//! Yesterday's build has applied a change, and its answer is lost. Today's build judges by that row whether the change was
//! its own.

use super::recorded::{Change, WHAT_TO_DO, flat, read};
use super::scene::{Rows, Scene, acquired, brighter, event, order, replace, stocked};
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::is_read;
use crate::harness::events::Event;
use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The random number of which the write id of each recorded change was made, and another one.
const MINE: u64 = 0x0123_4567_89ab_cdef;
const ANOTHER: u64 = 0xfedc_ba98_7654_3210;
/// The names of the write ids that are made of them.
const MY_NAME: &str = "ASNFZ4mrze8";
const ANOTHER_NAME: &str = "_ty6mHZUMhA";

/// A change that a build makes with the write id of `MINE`.
struct Case {
    name: &'static str,
    /// What happens before.
    earlier: Vec<Event>,
    change: Event,
    /// What the change is answered, also if the row says that it was applied.
    applied: i64,
    /// Another caller's change of the same row, what it is told that lost the race, and whether it is applied afterwards.
    other: (Event, i64, bool),
}

fn cases() -> Vec<Case> {
    let state = |brightness: u64| json!({"state": {"brightness": brightness}});
    let lamp = |brightness: u64| event("device-state-create", "lamp", &state(brightness));
    let patch = |brightness: u64| event("device-state-patch-state", "lamp", &json!({"brightness": brightness}));
    let delete = || event("device-state-delete", "lamp", &Value::Null).header("if-match", "*");
    let mug = || event("inventory-create", "mug", &json!({"stock": 20, "lowStockAt": 4}));
    let lines = |quantity: u64| json!([{"productId": "mug", "quantity": quantity}]);
    let case = |name, earlier, change, applied, other| Case { name, earlier, change, applied, other };
    vec![
        case("a create", vec![], lamp(50), 201, (lamp(51), 409, false)),
        case("a create on a tombstone", vec![lamp(40), delete()], lamp(50), 201, (lamp(51), 409, false)),
        case("a patch", vec![lamp(50)], patch(60), 200, (patch(70), 200, true)),
        case("an add", vec![lamp(50)], brighter("lamp", 1), 200, (brighter("lamp", 2), 200, true)),
        case("a delete", vec![lamp(50)], delete(), 204, (delete(), 404, false)),
        case("a keyed change", vec![lamp(50)], brighter("lamp", 1).key("k-1"), 200, (patch(70).key("k-2"), 200, true)),
        case("an add of stock", vec![mug()], stocked("mug", -3), 200, (stocked("mug", -2), 200, true)),
        case("an order", vec![mug()], order("o-1", &lines(3)), 201, (order("o-1", &lines(4)), 422, false)),
        case("a lease", vec![], acquired("key", "worker-1"), 201, (acquired("key", "worker-2"), 409, false)),
    ]
}

/// Makes each change, which begins and ends with these rows.
pub async fn play() -> BTreeMap<String, Change> {
    let mut changes = BTreeMap::new();
    for Case { name, earlier, change, applied, .. } in cases() {
        let scene = Scene::after(&Rows::new(), 0);
        for event in earlier {
            let answer = scene.send(&event).await;
            assert!(answer.status < 300, "{answer:?}");
        }
        let before = scene.rows();
        scene.drawing(&scene.engine.client(), from(MINE)).done(&change, applied).await;
        changes.insert(name.to_owned(), Change { before, after: scene.rows() });
    }
    changes
}

/// A client whose first applied write is lost: instead of it, the rows are as the recorded build left them.
fn overtaken(scene: &Scene, after: &Rows) -> Client {
    let after = Mutex::new(Some(after.clone()));
    client_whose(&scene.engine, move |engine, _, operation, body| {
        let answer = engine.answer(operation, body);
        if is_read(operation) || answer.0 != 200 {
            return answer;
        }
        let Some(after) = after.lock().expect("no panic").take() else { return answer };
        replace(engine, &after);
        engine.forget_tokens();
        lost()
    })
}

/// Numbers from this one on.
fn from(first: u64) -> impl Fn() -> u64 + Send + Sync + 'static {
    let drawn = AtomicU64::new(first);
    move || drawn.fetch_add(1, SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_is_lost_is_told_applied_if_the_row_of_yesterday_s_build_has_its_id() {
    let recorded = read();
    for Case { name, change, applied, .. } in cases() {
        let Change { before, after } = &recorded.changes[name];
        let scene = Scene::after(before, 0);
        let today = scene.drawing(&overtaken(&scene, after), from(MINE));
        let answer = today.send(&change).await;
        assert_eq!(answer.status, applied, "{name}: {answer:?}\n{WHAT_TO_DO}.");
        assert_eq!(&scene.rows(), after, "{name} was applied twice\n{WHAT_TO_DO}.");
        let log = scene.engine.take_log();
        let resend = log.iter().rfind(|asked| !is_read(&asked.operation)).expect("a write");
        assert_ne!(resend.status, 200, "{name}: the row refuses the resend");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_is_lost_is_told_lost_if_the_row_of_yesterday_s_build_has_a_foreign_id() {
    let recorded = read();
    for Case { name, other: (other, told, is_applied), .. } in cases() {
        let Change { before, after } = &recorded.changes[name];
        let scene = Scene::after(before, 0);
        let today = scene.drawing(&overtaken(&scene, after), from(ANOTHER));
        let answer = today.send(&other).await;
        assert_eq!(answer.status, told, "{name}: {answer:?}\n{WHAT_TO_DO}.");
        if !is_applied {
            assert_eq!(&scene.rows(), after, "{name}: the other change was applied");
            continue;
        }
        let (table, id, yesterday) = flat(after).find(|(.., row)| remembers(row, MY_NAME)).expect("a changed row");
        let row = &scene.rows()[table][id];
        assert!(remembers(row, MY_NAME) && remembers(row, ANOTHER_NAME), "{name}: both changes are there: {row}");
        let versions =
            [yesterday, row].map(|row| row["_version"]["N"].as_str().and_then(|text| text.parse::<u64>().ok()));
        assert_eq!(versions[0].map(|version| version + 1), versions[1], "{name}: applied once");
    }
}

fn remembers(row: &Value, id: &str) -> bool {
    row["_writes"]["M"].get(id).is_some()
}
