//! What lease and ensure-child do: every route, where it changes something and where not.

use super::drive::Drive;
use crate::harness::engine::Use;
use crate::harness::events::{Event, event_of};
use crate::harness::functions::{CHILDREN, Leasing};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn acquire(holder: &str) -> Event {
    event_of("PUT /leases/{leaseKey}", "k").json(&json!({"holder": holder, "ttlSeconds": 60}))
}

fn renew(token: &Value, seconds: u64) -> Event {
    event_of("PATCH /leases/{leaseKey}", "k").json(&json!({"token": token, "ttlSeconds": seconds}))
}

fn release(token: &Value) -> Event {
    event_of("DELETE /leases/{leaseKey}", "k").asking([("token", token.to_string().as_str())])
}

fn ensure(parent: &str, spec: &Value, token: Option<&Value>) -> Event {
    let mut body = json!({"parentUid": "u", "spec": spec});
    if let Some(token) = token {
        body["lease"] = json!({"key": "k", "token": token});
    }
    event_of("PUT /parents/{parentId}/child", parent).json(&body)
}

/// What lease and what ensure-child use.
pub async fn used() -> (BTreeSet<Use>, BTreeSet<Use>) {
    let mut world = Drive::<Leasing>::new();
    let shown = event_of("GET /leases/{leaseKey}", "k");
    let (one, spec) = (json!(1), json!({}));
    for (status, event) in [(404, shown.clone()), (404, renew(&one, 60)), (404, release(&one))] {
        world.send(status, &event).await;
    }
    let token = world.send(201, &acquire("a")).await["token"].clone();
    world.send(409, &acquire("b")).await;
    world.send(200, &shown).await;
    for seconds in [900, 60] {
        world.send(200, &renew(&token, seconds)).await;
    }
    world.send(409, &renew(&one, 60)).await;

    let child = event_of("GET /parents/{parentId}/child", "p").asking([("parentUid", "u")]);
    world.send(404, &child).await;
    world.send(409, &ensure("p", &spec, Some(&one))).await;
    for status in [201, 200] {
        world.send(status, &ensure("p", &spec, Some(&token))).await;
        world.send(status, &ensure("q", &spec, None)).await;
    }
    world.send(409, &ensure("p", &json!({"other": true}), None)).await;
    world.send(200, &child).await;

    // A create of this child was burned, so the child is made of a tombstone.
    let id = world.send(201, &ensure("r", &spec, None)).await["childId"].clone();
    let bury = json!({"TableName": CHILDREN, "Key": {"childId": {"S": id}}, "UpdateExpression": "SET #purge = :purge",
        "ExpressionAttributeNames": {"#purge": "_purgeAt"}, "ExpressionAttributeValues": {":purge": {"N": "4000000000"}}});
    world.world.engine.raw("UpdateItem", &bury);
    world.send(201, &ensure("r", &spec, None)).await;

    for _ in 0..2 {
        world.send(204, &release(&token)).await;
    }
    world.send(404, &shown).await;

    world.assert_succeeded(&["lease", "ensure-child"]);
    (world.uses_of("lease"), world.uses_of("ensure-child"))
}
