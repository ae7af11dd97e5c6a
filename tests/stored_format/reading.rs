//! Today's build reads every row that the recorded build left, and changes it once. A lost answer is judged by the rows of
//! both.

use super::recorded::{ANOTHER, ANOTHER_NAME, Case, Change, MINE, MY_NAME, WHAT_TO_DO, cases, flat, read};
use super::scene::{
    ENDED, Parcel, Rows, Scene, Seats, Task, brighter, child, event, from, order, replace, stocked, token_of,
};
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::{is_read, number};
use crate::harness::events::{acquire, load, look_up, registration, renew, shown_child, shown_lease};
use aws_sdk_dynamodb::Client;
use fencepost::{Failure, FailureKind, UpdateError};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The recorded rows, and today's build on them.
struct Morning {
    scene: Scene,
    rows: Rows,
    seen: BTreeSet<(String, String)>,
}

impl Morning {
    fn comes() -> Self {
        let rows = read().rows;
        Morning { scene: Scene::after(&rows, ENDED + 30_000), rows, seen: BTreeSet::new() }
    }

    /// The row as it was recorded.
    fn row(&mut self, table: &str, id: &str) -> Value {
        self.seen.insert((table.to_owned(), id.to_owned()));
        self.rows[table][id].clone()
    }

    /// Fails unless the row is the recorded one.
    fn is_as_it_was(&mut self, table: &str, id: &str) {
        assert_eq!(self.scene.rows()[table][id], self.row(table, id), "{table} {id}");
    }

    /// Fails unless the row has seen exactly one more write, and remembers it beside the others.
    fn changed_once(&mut self, table: &str, id: &str) -> Value {
        let (now, new) = self.changed(table, id);
        let before = self.row(table, id)["_version"].clone();
        assert_eq!(new, [before], "{table} {id}");
        now
    }

    /// The row now, which has seen exactly one more write, and the writes that it remembers beside those of before.
    fn changed(&mut self, table: &str, id: &str) -> (Value, Vec<Value>) {
        let (then, now) = (self.row(table, id), self.scene.rows()[table][id].clone());
        assert_eq!(number(&now, "_version"), number(&then, "_version") + 1, "{table} {id}: {now}");
        assert_eq!(now["_incarnation"], then["_incarnation"], "{table} {id}");
        let mut writes = now["_writes"]["M"].as_object().expect("a map").clone();
        for (write, trace) in then["_writes"]["M"].as_object().expect("a map") {
            assert_eq!(writes.remove(write).as_ref(), Some(trace), "{table} {id} has forgotten {write}");
        }
        (now, writes.values().cloned().collect())
    }
}

#[tokio::test(start_paused = true)]
async fn today_s_build_reads_and_changes_every_row_that_yesterday_s_build_left() {
    let mut morning = Morning::comes();
    devices(&mut morning).await;
    shop(&mut morning).await;
    mappings(&mut morning).await;
    leases(&mut morning).await;
    parcels(&mut morning).await;
    seats(&mut morning).await;
    let recorded: BTreeSet<_> = flat(&morning.rows).map(|(table, id, _)| (table.to_owned(), id.to_owned())).collect();
    assert_eq!(morning.seen, recorded, "every recorded row is looked at");
}

async fn devices(morning: &mut Morning) {
    let rich = morning.scene.done(&event("device-state-get", "rich", &Value::Null), 200).await.json();
    assert_eq!(rich["state"]["list"], json!([1, "a", false, null, {"x": 1.5}]));
    assert_eq!((&rich["state"]["deep"], &rich["version"]), (&json!({"er": {"n": -7}}), &json!(1)));
    morning.scene.done(&event("device-state-patch-state", "rich", &json!({"name": null})), 200).await;
    morning.changed_once("Devices", "rich");

    let wide = morning.scene.done(&event("device-state-get", "wide", &Value::Null), 200).await;
    for exact in ["0.1234567890123456789012345", "12345678901234567890123456789012345678"] {
        assert!(wide.body.as_ref().is_some_and(|body| body.contains(exact)), "{exact}: {wide:?}");
    }
    morning.scene.done(&event("device-state-patch-state", "wide", &json!({"exact": 1})), 200).await;
    morning.changed_once("Devices", "wide");

    for (id, brightness) in [("changed", 61), ("keyed", 20), ("burned", 31), ("again", 50), ("lined", 50)] {
        let shown = morning.scene.done(&event("device-state-get", id, &Value::Null), 200).await.json();
        assert_eq!(shown["state"]["brightness"], brightness, "{id}");
        morning.scene.done(&brighter(id, 2), 200).await;
        let row = morning.changed_once("Devices", id);
        assert_eq!(row["state"]["M"]["brightness"]["N"], (brightness + 2).to_string(), "{id}");
    }
    let changed = morning.scene.done(&event("device-state-get", "changed", &Value::Null), 200).await.json();
    assert_eq!((&changed["status"], &changed["config"]), (&json!("offline"), &json!({"fadeMs": 400, "mode": "night"})));
    let config = event("device-state-set-config", "changed", &json!({"fadeMs": 1}));
    morning.scene.done(&config, 409).await.says(409, "device_offline");

    for (key, first) in
        [("k-1", brighter("keyed", 7)), ("k-2", event("device-state-patch-state", "keyed", &json!({"brightness": 20})))]
    {
        let answer = morning.scene.done(&first.key(key), 200).await;
        assert!(answer.is_replay(), "{key}: {answer:?}");
    }
    morning.changed_once("Devices", "keyed");

    morning.scene.done(&event("device-state-get", "deleted", &Value::Null), 404).await;
    morning.is_as_it_was("Devices", "deleted");
    let created = event("device-state-create", "deleted", &json!({"state": {"brightness": 1}}));
    morning.scene.done(&created, 201).await;
    let row = morning.changed_once("Devices", "deleted");
    assert_eq!(row.get("_purgeAt"), None);
}

async fn shop(morning: &mut Morning) {
    let replayed = morning.scene.done(&stocked("cup", -2).key("k-3"), 200).await;
    assert!(replayed.is_replay(), "{replayed:?}");
    let records: Vec<_> = morning.rows["IdempotencyRecords"].keys().cloned().collect();
    assert_eq!(records.len(), 3, "the keys of two changes of a device, and of one of a product");
    for record in records {
        morning.is_as_it_was("IdempotencyRecords", &record);
    }
    let listed = morning.scene.done(&load("place-order-list"), 200).await.json();
    let of_user = morning.rows["Orders"].values().filter(|row| row["userId"]["S"] == "user-1").count();
    assert_eq!(listed["orders"].as_array().map(Vec::len), Some(of_user), "the rows of yesterday are in the index");
    assert!(of_user > 1, "{listed}");
    let lines = json!([{"productId": "mug", "quantity": 2}, {"productId": "cup", "quantity": 1}]);
    for key in ["o-1", "o-2"] {
        let again = morning.scene.done(&order(key, &lines), 201).await;
        assert!(again.is_replay(), "{again:?}");
        let id = again.json()["orderId"].as_str().expect("an id").to_owned();
        morning.is_as_it_was("Orders", &id);
        let is_placed = morning.row("Orders", &id)["status"]["S"] == "PENDING";
        assert_eq!(is_placed, key == "o-1", "{}", morning.row("Orders", &id));
        morning.scene.done(&event("place-order-cancel", &id, &Value::Null), 200).await;
        if is_placed {
            morning.changed_once("Orders", &id);
        } else {
            morning.is_as_it_was("Orders", &id);
        }
    }
    for (id, stock) in [("mug", "15"), ("cup", "7")] {
        let (then, now) = (morning.row("Products", id), morning.scene.rows()["Products"][id].clone());
        assert_eq!(now["stock"]["N"], stock, "{id} has back what was ordered");
        assert_eq!(now["_holds"], then["_holds"], "{id}: the repeat has given back what it took, and nothing else");
    }
    morning.scene.done(&stocked("burned", -41), 200).await;
    assert_eq!(morning.changed_once("Products", "burned")["stock"]["N"], "0");

    // These remember as many writes as they may, and forget one for each new one. What this process adds it removes again.
    let changes = [("Products", "busy", stocked("busy", 1), 28), ("Devices", "busy", brighter("busy", 1), 40)];
    for (table, id, change, remembered) in changes {
        let then = morning.row(table, id)["_writes"]["M"].as_object().map(serde_json::Map::len);
        morning.scene.done(&change, 200).await;
        let now = morning.scene.rows()[table][id]["_writes"]["M"].as_object().map(serde_json::Map::len);
        assert_eq!((then, now), (Some(remembered), Some(remembered)), "{table} {id}");
    }
}

async fn mappings(morning: &mut Morning) {
    let (early, late, later) = ("2026-03-07T09:00:00.000Z", "2026-03-07T09:30:00.123Z", "2026-03-07T09:30:00.124Z");
    for (ip, instance) in [("192.0.2.1", "i-a"), ("192.0.2.2", "i-b")] {
        let shown = morning.scene.done(&look_up(ip), 200).await.json();
        assert_eq!(shown["instanceId"], instance, "{ip}");
    }
    for ip in ["192.0.2.2", "192.0.2.3", "2001:db8::4"] {
        morning.scene.done(&registration(ip, "i-a", early), 409).await.says(409, "superseded");
        morning.is_as_it_was("HostToCellMapping", ip);
    }
    morning.scene.done(&registration("2001:db8::4", "i-x", late), 409).await.says(409, "superseded");
    for ip in ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::4"] {
        let before = morning.row("HostToCellMapping", ip);
        let answer = morning.scene.send(&registration(ip, "i-c", later)).await;
        assert!([200, 201].contains(&answer.status), "{ip}: {answer:?}");
        assert_ne!(morning.scene.rows()["HostToCellMapping"][ip], before, "{ip}");
    }
}

async fn leases(morning: &mut Morning) {
    let parents = [("alone", None), ("fenced", Some("held"))];
    for (parent, lease) in parents {
        let uid = format!("uid-of-{parent}");
        assert_eq!(morning.scene.done(&shown_child(parent, &uid), 200).await.json()["spec"]["size"], 1.5);
        let lease = lease.map(|key| (key, token_of(&morning.rows, key)));
        morning.scene.done(&child(parent, lease), 200).await;
    }
    let children: Vec<_> = morning.rows["Children"].keys().cloned().collect();
    assert_eq!(children.len(), parents.len());
    for id in children {
        morning.is_as_it_was("Children", &id);
    }
    let token = token_of(&morning.rows, "held");
    let next = |task: &Task| Task { step: task.step + 1 };
    for id in ["guarded", "done"] {
        let key = id;
        let late = morning.scene.tasks(token - 1).update_with_retry(key, next).await;
        assert!(matches!(late, Err(UpdateError::Failed(Failure { kind: FailureKind::Fenced, .. }))), "an old leader");
        let task = morning.scene.tasks(token).update_with_retry(key, next).await.expect("the leader");
        assert_eq!(task.value.step, 2);
        assert_eq!(morning.changed_once("Tasks", id)["_fence"]["N"], token.to_string());
    }

    let keyed = morning.scene.done(&acquire("keyed", "worker-1", 60).key("k-4"), 201).await;
    assert_eq!(keyed.json()["token"], token_of(&morning.rows, "keyed"));
    morning.row("Leases", "keyed");

    let shown = morning.scene.done(&shown_lease("renewed"), 200).await.json();
    assert_eq!((&shown["holder"], &shown["remainingMs"]), (&json!("worker-1"), &json!(89_000)));
    for ended in ["held", "released"] {
        morning.scene.done(&shown_lease(ended), 404).await;
    }
    for key in ["held", "renewed"] {
        let token = token_of(&morning.rows, key);
        morning.row("Leases", key);
        morning.scene.done(&renew(key, token - 1, 60), 409).await;
        morning.scene.done(&renew(key, token, 60), 200).await;
        morning.scene.done(&acquire(key, "worker-2", 60), 409).await.says(409, "lease_held");
    }
    morning.row("Leases", "released");
    morning.scene.done(&acquire("released", "worker-2", 60), 201).await;
    assert!(token_of(&morning.scene.rows(), "released") > token_of(&morning.rows, "released"), "tokens rise");
}

async fn parcels(morning: &mut Morning) {
    let parcels = morning.scene.parcels();
    let heavier = |parcel: &Parcel| Parcel { weight: parcel.weight + 1 };
    assert_eq!(parcels.update_with_retry("adopted", heavier).await.expect("a parcel").value.weight, 3);
    morning.changed_once("Parcels", "adopted");
    morning.is_as_it_was("Parcels", "deleted");
    parcels.create("deleted", &Parcel { weight: 7 }).await.expect("only a tombstone");
    assert_eq!(morning.changed_once("Parcels", "deleted").get("_buried"), None);
}

async fn seats(morning: &mut Morning) {
    for ticket in ["sold", "another"] {
        morning.is_as_it_was("Tickets", ticket);
    }
    // The ticket is there, so a refusal gives nothing back.
    let refused = morning.scene.seats().edit("last", &Seats::FIELDS.free.add(-3, 0..)).await;
    assert!(matches!(&refused, Err(UpdateError::Refused(refused)) if refused.item.free == 2), "{refused:?}");
    morning.is_as_it_was("Seats", "last");
    morning.scene.sell("third", &["held"]).await;
    assert_eq!(morning.changed_once("Seats", "held")["free"], json!({"N": "0"}));
}

/// A client that loses its first applied write: instead of it, the rows are as the recorded build left them.
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

/// The rows without the traces of an order that took its stock and gave it back.
fn without_takes(mut rows: Rows) -> Rows {
    for row in rows.get_mut("Products").into_iter().flat_map(|products| products.values_mut()) {
        for name in ["_version", "_writes", "updatedAt"] {
            row.as_object_mut().expect("a row").remove(name);
        }
    }
    rows
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
            assert_eq!(
                without_takes(scene.rows()),
                without_takes(after.clone()),
                "{name}: the other change was applied"
            );
            continue;
        }
        let (table, id, yesterday) = flat(after).find(|(.., row)| remembers(row, MY_NAME)).expect("a changed row");
        let row = &scene.rows()[table][id];
        assert!(remembers(row, MY_NAME) && remembers(row, ANOTHER_NAME), "{name}: both changes are there: {row}");
        assert_eq!(number(row, "_version"), number(yesterday, "_version") + 1, "{name}: applied once");
    }
}

fn remembers(row: &Value, id: &str) -> bool {
    row["_writes"]["M"].get(id).is_some()
}
