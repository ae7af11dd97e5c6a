//! What host-mapping and delete-mapping do: every route and every task, where it changes something and where not.

use super::drive::Drive;
use crate::harness::engine::Use;
use crate::harness::events::{Event, event_of};
use crate::harness::functions::Mappings;
use fencepost::{Call, Deadline};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const IP: &str = "192.0.2.10";
const T1: &str = "2026-03-07T10:00:00.000Z";
const T2: &str = "2026-03-07T10:30:00.000Z";
const T3: &str = "2026-03-07T10:45:00.000Z";

fn register(instance: &str, at: &str) -> Event {
    let body = json!({"cellId": "cell-1", "instanceId": instance, "creationTimestamp": at});
    event_of("PUT /mappings/{hostIp}", IP).json(&body)
}

fn remove(at: &str, instance: Option<&str>) -> Event {
    let instance = instance.map(|instance| ("instanceId", instance));
    event_of("DELETE /mappings/{hostIp}", IP).asking([("creationTimestamp", at)].into_iter().chain(instance))
}

fn task(at: &str, instance: Option<&str>) -> Value {
    let mut task = json!({"hostIp": IP, "creationTimestamp": at});
    if let Some(instance) = instance {
        task["instanceId"] = json!(instance);
    }
    task
}

/// What host-mapping and what delete-mapping use.
pub async fn used() -> (BTreeSet<Use>, BTreeSet<Use>) {
    let mut world = Drive::<Mappings>::new();
    let get = event_of("GET /mappings/{hostIp}", IP);
    for (status, event) in [
        (404, get.clone()),
        (201, register("i-a", T1)),
        (200, register("i-a", T1)),
        (200, get.clone()),
        (204, remove(T1, Some("i-a"))),
        (204, remove(T1, None)),
        (409, register("i-a", T1)),
        (404, get),
        (201, register("i-b", T2)),
        (204, remove(T1, Some("i-a"))),
    ] {
        world.send(status, &event).await;
    }
    let deletes = &world.world.app.deletes;
    for (task, is_done) in
        [(task(T1, None), true), (task(T2, Some("i-b")), true), (task(T3, None), true), (json!({}), false)]
    {
        let call = Call::new(Deadline::within(Duration::from_mins(1)));
        let outcomes = functions::delete_mapping::handle(deletes, &[task.to_string().as_str()], &call).await;
        assert_eq!(outcomes[0].is_ok(), is_done, "{task}");
    }
    world.assert_succeeded(&["host-mapping"]);
    (world.uses_of("host-mapping"), world.uses_of("delete-mapping"))
}
