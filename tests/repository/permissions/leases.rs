//! What lease and ensure-child do: every route, where it changes something and where not.

use crate::harness::engine::{Engine, Use};
use fencepost::http::Problem;
use fencepost::http::{Body, Request};
use fencepost::{Call, Deadline, Store};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

struct World {
    lease: lease::App,
    children: ensure_child::App,
    succeeded: BTreeSet<String>,
}

impl World {
    /// Sends a request and expects this status; gives what is shown. `more` is the body, or the query where the route has
    /// no body.
    async fn send(&mut self, status: u16, route: &str, id: &str, more: Value) -> Value {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        let path = template.replace("{leaseKey}", id).replace("{parentId}", id);
        let mut request = Request { method: method.to_owned(), path, ..Request::default() };
        if matches!(method, "GET" | "DELETE") {
            let query = more.as_object().into_iter().flatten();
            request.query.extend(query.map(|(name, value)| (name.clone(), value.to_string().replace('"', ""))));
        } else {
            request.body = Body { text: more.to_string(), is_base64: false };
        }
        let call = Call::new(Deadline::within(Duration::from_secs(10)));
        let answer = if template.starts_with("/leases") {
            Box::pin(lease::handle(&self.lease, &request, &call)).await
        } else {
            Box::pin(ensure_child::handle(&self.children, &request, &call)).await
        };
        let answer = answer.unwrap_or_else(Problem::into_response);
        assert_eq!(answer.status(), status, "{route} {id} {more}: {answer:?}");
        if status < 300 {
            self.succeeded.insert(route.to_owned());
        }
        serde_json::from_str(answer.body().unwrap_or("null")).expect("JSON")
    }
}

/// What lease and what ensure-child use.
pub async fn used() -> (BTreeSet<Use>, BTreeSet<Use>) {
    const ACQUIRE: &str = "PUT /leases/{leaseKey}";
    const SHOW: &str = "GET /leases/{leaseKey}";
    const RENEW: &str = "PATCH /leases/{leaseKey}";
    const RELEASE: &str = "DELETE /leases/{leaseKey}";
    const ENSURE: &str = "PUT /parents/{parentId}/child";
    const CHILD: &str = "GET /parents/{parentId}/child";
    let engine = Engine::with_tables(&[("Leases", "leaseKey"), ("Children", "childId")]);
    let (of_lease, of_children) = (engine.watched_apart(), engine.watched_apart());
    let lease = lease::App::new(Store::new(&of_lease.client()).leases("Leases"));
    let client = of_children.client();
    let store = Store::new(&client);
    let children = ensure_child::App::new(store.table("Children"), store.leases("Leases"));
    let mut world = World { lease, children, succeeded: BTreeSet::new() };

    world.send(404, SHOW, "k", Value::Null).await;
    world.send(404, RENEW, "k", json!({"token": 1, "ttlSeconds": 60})).await;
    world.send(404, RELEASE, "k", json!({"token": 1})).await;
    let token = world.send(201, ACQUIRE, "k", json!({"holder": "a", "ttlSeconds": 60})).await["token"].clone();
    world.send(409, ACQUIRE, "k", json!({"holder": "b", "ttlSeconds": 60})).await;
    world.send(200, SHOW, "k", Value::Null).await;
    for seconds in [900, 60] {
        world.send(200, RENEW, "k", json!({"token": token, "ttlSeconds": seconds})).await;
    }
    world.send(409, RENEW, "k", json!({"token": 1, "ttlSeconds": 60})).await;

    let under = |token: &Value| json!({"parentUid": "u", "spec": {}, "lease": {"key": "k", "token": token}});
    let uid = json!({"parentUid": "u"});
    world.send(404, CHILD, "p", uid.clone()).await;
    world.send(409, ENSURE, "p", under(&json!(1))).await;
    for status in [201, 200] {
        world.send(status, ENSURE, "p", under(&token)).await;
        world.send(status, ENSURE, "q", json!({"parentUid": "u", "spec": {}})).await;
    }
    world.send(409, ENSURE, "p", json!({"parentUid": "u", "spec": {"other": true}})).await;
    world.send(200, CHILD, "p", uid).await;

    for _ in 0..2 {
        world.send(204, RELEASE, "k", json!({"token": token})).await;
    }
    world.send(404, SHOW, "k", Value::Null).await;

    let routes =
        lease::ROUTES.iter().map(|(route, _)| *route).chain(ensure_child::ROUTES.iter().map(|(route, _)| *route));
    assert_eq!(world.succeeded, routes.map(str::to_owned).collect(), "every route was seen to do its work");
    (of_lease.uses(), of_children.uses())
}
