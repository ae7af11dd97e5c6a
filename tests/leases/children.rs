//! Every answer of `ensure-child`.

use super::world::{World, acquire, ensure, ensure_under, release, shown_child, token};
use crate::harness::answers::Answer;
use crate::harness::clients::client_whose;
use crate::harness::functions::{CHILDREN, LEASES};
use serde_json::{Value, json};

fn spec() -> Value {
    json!({"pages": 12, "format": "pdf"})
}

/// The id of the child in the answer.
fn id(answer: &Answer) -> String {
    answer.json()["childId"].as_str().expect("an id").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_child_is_created_once_and_shown_to_all_who_ask() {
    let world = World::new();
    world.send(&shown_child("p", "u-1")).await.says(404, "child_not_found");
    let created = world.send(&ensure("p", "u-1", &spec())).await;
    let child = created.shown(201);
    let at = world.clock.shows(0);
    assert_eq!(
        child,
        json!({"childId": id(&created), "parentId": "p", "parentUid": "u-1", "spec": spec(), "createdAt": at})
    );
    assert_eq!(created.header("location"), Some("/parents/p/child?parentUid=u-1"));
    world.pass(60_000).await;
    let again = world.send(&ensure("p", "u-1", &spec())).await;
    assert_eq!((again.shown(200), again.etag(), again.header("location")), (child.clone(), created.etag(), None));
    let shown = world.send(&shown_child("p", "u-1")).await;
    assert_eq!((shown.shown(200), shown.etag()), (child, created.etag()));
    assert!(!world.engine.row(CHILDREN, "childId", &id(&created)).is_null());
}

#[tokio::test(start_paused = true)]
async fn another_uid_is_another_parent_and_has_a_child_of_its_own() {
    let world = World::new();
    let mut ids = Vec::new();
    for (parent, uid) in [("p", "u-1"), ("p", "u-2"), ("q", "u-1"), ("p:u-1", "x"), ("p", "u-1:x"), ("p:u", "1")] {
        world.send(&shown_child(parent, uid)).await.says(404, "child_not_found");
        ids.push(id(&world.send(&ensure(parent, uid, &json!({"of": uid}))).await));
        assert_eq!(world.send(&shown_child(parent, uid)).await.shown(200)["childId"], *ids.last().expect("one"));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6, "no two of them share a child");
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_no_child_is_created() {
    let world = World::new();
    let first = world.acquired("k", "a", 1).await;
    world.pass(2_001).await;
    // It has ended, but no other client has acquired it: there is no other leader.
    world.send(&ensure_under("q", "u-1", &spec(), ("k", first))).await.shown(201);
    let second = world.acquired("k", "b", 60).await;
    let lost = world.acquired("released", "a", 60).await;
    world.send(&release("released", lost)).await;
    for held in [("k", first), ("k", second + 1), ("k", 1), ("released", lost), ("never", 1)] {
        let answer = world.send(&ensure_under("p", "u-1", &spec(), held)).await;
        let problem = answer.says(409, "fenced");
        assert_eq!(problem.get("child"), None);
        answer.check_problem();
        world.send(&shown_child("p", "u-1")).await.says(404, "child_not_found");
    }
    world.send(&ensure_under("p", "u-1", &spec(), ("k", second))).await.shown(201);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_there_is_shown_and_not_changed_and_answers_before_the_fence_does() {
    let world = World::new();
    let lost = world.acquired("k", "a", 1).await;
    let created = world.send(&ensure_under("p", "u-1", &spec(), ("k", lost))).await;
    world.pass(2_001).await;
    let held = world.acquired("k", "b", 60).await;
    let wanted = |spec: &Value| {
        let under = [("k", held), ("k", lost), ("never", 7)].map(|lease| ensure_under("p", "u-1", spec, lease));
        under.into_iter().chain([ensure("p", "u-1", spec)])
    };
    for event in wanted(&spec()) {
        let found = world.send(&event).await;
        assert_eq!((found.shown(200), found.etag()), (created.json(), created.etag()));
    }
    for other in [json!({}), json!({"pages": 13, "format": "pdf"}), json!({"pages": 12, "format": "pdf", "more": null})]
    {
        for event in wanted(&other) {
            assert_eq!(world.send(&event).await.says(409, "spec_differs")["child"], created.json());
        }
    }
    assert_eq!(world.send(&shown_child("p", "u-1")).await.shown(200), created.json());
}

#[tokio::test(start_paused = true)]
async fn a_tag_may_ask_for_a_new_child_or_for_news_only() {
    let world = World::new();
    let token = token(&world.send(&acquire("k", "a", 60)).await.json());
    let wanted = [ensure("p", "u-1", &spec()), ensure_under("q", "u-1", &spec(), ("k", token))];
    for (event, parent) in wanted.into_iter().zip(["p", "q"]) {
        let created = world.send(&event.clone().header("if-none-match", "*")).await;
        created.shown(201);
        let exists = world.send(&event.header("if-none-match", "*")).await;
        assert_eq!(
            (&exists.says(412, "version_conflict")["currentVersion"], exists.etag()),
            (&json!(1), created.etag())
        );
        let look = |name: &str, value: &str| shown_child(parent, "u-1").header(name, value);
        let unchanged = world.send(&look("if-none-match", created.etag())).await;
        assert_eq!((unchanged.status, &unchanged.body, unchanged.etag()), (304, &None, created.etag()));
        world.send(&look("if-match", created.etag())).await.shown(200);
        world.send(&look("if-match", "\"2.AAAAAAAAAAA\"")).await.says(412, "version_conflict");
    }
}

/// Between the read and the transaction, another client creates the child, and may have taken the lease before.
#[tokio::test(start_paused = true)]
async fn a_child_that_comes_in_between_is_answered_without_another_request() {
    for fenced in [false, true] {
        let world = World::new();
        let token = world.acquired("k", "a", 60).await;
        let mine = ensure_under("p", "u", &json!({}), ("k", token));
        let twin = World::new();
        let theirs = twin.send(&ensure("p", "u", &json!({}))).await;
        let row = twin.engine.row(CHILDREN, "childId", &id(&theirs));
        let client = client_whose(&world.engine, move |engine, writes, operation, body| {
            if operation == "TransactWriteItems" && writes == 0 {
                engine.raw("PutItem", &json!({"TableName": CHILDREN, "Item": row}));
                if fenced {
                    engine.raw("DeleteItem", &json!({"TableName": LEASES, "Key": {"leaseKey": {"S": "k"}}}));
                }
            }
            engine.answer(operation, body)
        });
        world.engine.take_log();
        let found = world.reached_by(&client).send(&mine).await;
        assert_eq!((found.shown(200), found.etag()), (theirs.json(), theirs.etag()), "fenced: {fenced}");
        assert_eq!(world.engine.take_counts(), (1, 1));
    }
}
