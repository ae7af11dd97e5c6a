//! Bad input: every kind is a 4xx problem that names the field, and `DynamoDB` is not asked.

use super::world::{World, acquire, ensure, ensure_under, release, renew, shown_child, shown_lease};
use serde_json::{Value, json};

const NO_IDS: [&str; 9] = ["", ".", "..", "a b", "a/b", "a%2Fb", "ä", "a\n", "a@b"];

#[tokio::test(start_paused = true)]
async fn a_lease_lasts_a_whole_number_of_seconds_from_1_to_900() {
    let world = World::new();
    let wrong = ["0", "-0", "-1", "0.5", "1.5", "900.5", "901", "1e3", "1e30", "-900", "9007199254740993"];
    for (code, values) in [
        ("invalid_value", &wrong[..]),
        ("number_out_of_range", &["1e400"]),
        ("invalid_type", &["\"60\"", "null", "true", "[60]", "{}"]),
    ] {
        for value in values {
            let body = format!(r#"{{"holder":"a","ttlSeconds":{value}}}"#);
            world.bad_input(&acquire("k", "a", 1).text(&body), code, "/ttlSeconds").await;
            world.bad_input(&acquire("k", "a", 1).text(&body).key("once"), code, "/ttlSeconds").await;
            let body = format!(r#"{{"token":1,"ttlSeconds":{value}}}"#);
            world.bad_input(&renew("k", 1, 1).text(&body), code, "/ttlSeconds").await;
        }
    }
    world.bad_input(&acquire("k", "a", 1).text(r#"{"holder":"a"}"#), "missing_field", "/ttlSeconds").await;
    world.bad_input(&renew("k", 1, 1).text(r#"{"token":1}"#), "missing_field", "/ttlSeconds").await;
    for seconds in [1, 900] {
        world.acquired(&format!("k-{seconds}"), "a", seconds).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_a_whole_number_from_1_that_every_reader_keeps() {
    let world = World::new();
    for (code, values) in [
        ("invalid_value", &["0", "-1", "0.5", "1.5", "9007199254740992", "1e18", "1e30"][..]),
        ("number_out_of_range", &["1e400"]),
        ("invalid_type", &["\"1\"", "null", "true", "[1]", "{}"]),
    ] {
        for value in values {
            let body = format!(r#"{{"token":{value},"ttlSeconds":1}}"#);
            world.bad_input(&renew("k", 1, 1).text(&body), code, "/token").await;
            let body = format!(r#"{{"parentUid":"u-1","spec":{{}},"lease":{{"key":"k","token":{value}}}}}"#);
            world.bad_input(&ensure("p", "u-1", &json!({})).text(&body), code, "/lease/token").await;
        }
    }
    world.bad_input(&renew("k", 1, 1).text(r#"{"ttlSeconds":1}"#), "missing_field", "/token").await;
    for value in ["0", "-1", "1.5", "", "x", "1e3", " 1", "9007199254740992", "99999999999999999999"] {
        world.bad_input(&release("k", 1).asking([("token", value)]), "invalid_value", "query:token").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_says_which_lease_it_means() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    world.refused_for(&release("k", 1).asking([]), 428, "condition_required", (0, 0)).await;
    let two = release("k", 1).asking([("token", token.to_string().as_str()), ("holder", "a")]);
    world.bad_input(&two, "unknown_parameter", "query:holder").await;
    world.send(&shown_lease("k")).await.shown(200);
}

#[tokio::test(start_paused = true)]
async fn keys_and_names_have_the_alphabet_of_ids() {
    let world = World::new();
    let long = "x".repeat(129);
    for id in NO_IDS.into_iter().chain([long.as_str()]) {
        if !id.is_empty() && id != "." && id != ".." && id != "a/b" {
            for event in [acquire(id, "a", 1), renew(id, 1, 1), release(id, 1), shown_lease(id)] {
                world.bad_input(&event, "invalid_id", "path:leaseKey").await;
            }
            for event in [ensure(id, "u-1", &json!({})), shown_child(id, "u-1")] {
                world.bad_input(&event, "invalid_id", "path:parentId").await;
            }
        }
        world.bad_input(&acquire("k", id, 1), "invalid_id", "/holder").await;
        world.bad_input(&ensure("p", id, &json!({})), "invalid_id", "/parentUid").await;
        world.bad_input(&ensure_under("p", "u-1", &json!({}), (id, 1)), "invalid_id", "/lease/key").await;
        world.bad_input(&shown_child("p", id), "invalid_id", "query:parentUid").await;
    }
    let longest = "x".repeat(128);
    world.acquired(&longest, &longest, 1).await;
    world.send(&ensure(&longest, &longest, &json!({}))).await.shown(201);
}

#[tokio::test(start_paused = true)]
async fn what_a_request_does_not_know_is_refused() {
    let world = World::new();
    for (event, body, code, field) in [
        (acquire("k", "a", 1), r#"{"holder":"a","ttlSeconds":1,"token":1}"#, "unknown_field", "/token"),
        (acquire("k", "a", 1), r#"{"holder":"a","ttlSeconds":1,"_x":1}"#, "reserved_name", "/_x"),
        (acquire("k", "a", 1), r#"{"ttlSeconds":1}"#, "missing_field", "/holder"),
        (acquire("k", "a", 1), r#"{"holder":7,"ttlSeconds":1}"#, "invalid_type", "/holder"),
        (renew("k", 1, 1), r#"{"token":1,"ttlSeconds":1,"holder":"a"}"#, "unknown_field", "/holder"),
        (renew("k", 1, 1), "[]", "invalid_type", ""),
        (renew("k", 1, 1), "", "invalid_json", ""),
        (ensure("p", "u", &json!({})), r#"{"parentUid":"u","spec":{},"childId":"c"}"#, "unknown_field", "/childId"),
        (ensure("p", "u", &json!({})), r#"{"parentUid":"u"}"#, "missing_field", "/spec"),
        (ensure("p", "u", &json!({})), r#"{"spec":{}}"#, "missing_field", "/parentUid"),
        (ensure("p", "u", &json!({})), r#"{"parentUid":"u","spec":[]}"#, "invalid_type", "/spec"),
        (ensure("p", "u", &json!({})), r#"{"parentUid":"u","spec":{"_a":1}}"#, "reserved_name", "/spec/_a"),
        (ensure("p", "u", &json!({})), r#"{"parentUid":"u","spec":{},"lease":null}"#, "invalid_type", "/lease"),
    ] {
        world.bad_input(&event.text(body), code, field).await;
    }
    let lease = |lease: Value| json!({"parentUid": "u", "spec": {}, "lease": lease}).to_string();
    for (wrong, code, field) in [
        (json!({"key": "k"}), "missing_field", "/lease/token"),
        (json!({"token": 1}), "missing_field", "/lease/key"),
        (json!({"key": "k", "token": 1, "holder": "a"}), "unknown_field", "/lease/holder"),
    ] {
        world.bad_input(&ensure("p", "u", &json!({})).text(&lease(wrong)), code, field).await;
    }
    let more = shown_child("p", "u-1").asking([("parentUid", "u-1"), ("dryRun", "true")]);
    world.bad_input(&more, "unknown_parameter", "query:dryRun").await;
    world.bad_input(&shown_child("p", "u-1").asking([]), "missing_parameter", "query:parentUid").await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_taken_for_an_acquire_alone_and_must_be_a_good_one() {
    let world = World::new();
    let field = "header:idempotency-key";
    let others = [renew("k", 1, 1), release("k", 1), ensure("p", "u-1", &json!({}))];
    for event in others {
        for key in ["once", ""] {
            world.bad_input(&event.clone().key(key), "idempotency_key_unsupported", field).await;
        }
    }
    for key in ["", " ", "two words", "é", &"x".repeat(256)] {
        world.bad_input(&acquire("k", "a", 1).key(key), "invalid_idempotency_key", field).await;
    }
    world.send(&acquire("k", "a", 1).key(&"x".repeat(255))).await.shown(201);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_and_a_creation_take_no_tag() {
    let world = World::new();
    for tag in ["*", "\"1.0\"", "\"1.AAAAAAAAAAA\""] {
        for event in [acquire("k", "a", 1), ensure("p", "u-1", &json!({}))] {
            world.bad_input(&event.header("if-match", tag), "invalid_if_match", "header:if-match").await;
        }
        let field = "header:if-none-match";
        world.bad_input(&acquire("k", "a", 1).header("if-none-match", tag), "invalid_if_none_match", field).await;
        if tag != "*" {
            let event = ensure("p", "u-1", &json!({})).header("if-none-match", tag);
            world.bad_input(&event, "invalid_if_none_match", field).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_media_type_a_body_that_is_too_large_and_another_method_are_refused() {
    let world = World::new();
    world.engine.take_log();
    for event in [acquire("k", "a", 1), renew("k", 1, 1), ensure("p", "u-1", &json!({}))] {
        let answer = world.send(&event.clone().header("content-type", "text/plain")).await;
        assert_eq!(answer.says(415, "unsupported_media_type")["field"], "header:content-type");
        world.send(&event.text(&" ".repeat(512 * 1024 + 1))).await.says(413, "too_large");
    }
    for (method, path, allow) in
        [("POST", "/leases/k", "DELETE, GET, PATCH, PUT"), ("DELETE", "/parents/p/child", "GET, PUT")]
    {
        let answer = world.send(&shown_lease("k").unrouted(method, path)).await;
        answer.says(405, "method_not_allowed");
        let mut allowed: Vec<_> = answer.header("allow").expect("what is allowed").split(", ").collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(", "), allow);
    }
    world.send(&shown_lease("k").unrouted("GET", "/leases")).await.says(404, "no_such_route");
    world.send(&shown_lease("k").unrouted("GET", "/parents/p/children")).await.says(404, "no_such_route");
    assert_eq!(world.engine.take_counts(), (0, 0));
}
