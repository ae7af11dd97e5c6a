//! Bad input: every kind is a 4xx problem that names the field, and nothing is written.

use crate::devices::world::World;
use crate::harness::events::Event;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Sends each of these bodies to each of these routes; each answer is this code for this field.
async fn refused(world: &World, events: &[Event], bodies: &[&str], code: &str, field: &str) {
    for event in events {
        for body in bodies {
            world.bad_input(&event.clone().text(body), code, field).await;
        }
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let (world, _) = World::with_lamp().await;
    let bodies = [
        "",
        " ",
        "{",
        "nul",
        "{}{}",
        "{} x",
        r#"{"a":1,}"#,
        "{'a':1}",
        r#"{"a":01}"#,
        r#"{"a":NaN}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":1.}"#,
        r#"{"a":1e}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\n\"}",
        "\u{feff}{}",
        "<a/>",
        "a=1",
    ];
    refused(&world, &Event::with_body(), &bodies, "invalid_json", "").await;
    for mut event in Event::with_body() {
        event.0["body"] = Value::Null;
        world.bad_input(&event, "invalid_json", "").await;
    }
}

#[tokio::test]
async fn a_body_in_base64_that_is_no_text_is_refused() {
    let (world, _) = World::with_lamp().await;
    for event in Event::with_body() {
        for body in ["*", "/w==", "e30", "e30=="] {
            world.bad_input(&event.clone().base64(body), "invalid_json", "").await;
        }
    }
}

#[tokio::test]
async fn another_media_type_is_refused() {
    let (world, _) = World::with_lamp().await;
    for event in Event::with_body() {
        for media_type in
            ["text/plain", "application/xml", "application/x-www-form-urlencoded", "application/jsonp", "json"]
        {
            let event = event.clone().header("content-type", media_type);
            world.unasked(&event, 415, "unsupported_media_type", "header:content-type").await;
        }
        if event.method() != "PATCH" {
            let event = event.header("content-type", "application/merge-patch+json");
            world.unasked(&event, 415, "unsupported_media_type", "header:content-type").await;
        }
    }
}

#[tokio::test]
async fn what_must_be_an_object_is_nothing_else() {
    let (world, _) = World::with_lamp().await;
    refused(&world, &Event::with_body(), &["[]", "[{}]", "1", "\"x\"", "true", "null"], "invalid_type", "").await;
    for other in ["[]", "[{}]", "1", "\"{}\"", "false", "null"] {
        let [create, ..] = Event::with_body();
        let (state, config) = (format!(r#"{{"state":{other}}}"#), format!(r#"{{"state":{{}},"config":{other}}}"#));
        refused(&world, std::slice::from_ref(&create), &[&state], "invalid_type", "/state").await;
        refused(&world, &[create], &[&config], "invalid_type", "/config").await;
    }
}

#[tokio::test]
async fn a_number_that_cannot_be_kept_exactly_is_refused() {
    let (world, _) = World::with_lamp().await;
    let [create, patch, adjust, _, config] = Event::with_body();
    let too_long = "123456789012345678901234567890123456789";
    for number in [
        "1e400",
        "-1e400",
        "1e126",
        "1e-131",
        "1e999999999999999999999",
        too_long,
        "0.123456789012345678901234567890123456789",
    ] {
        for (event, body, field) in [
            (&create, format!(r#"{{"state":{{"n":{number}}}}}"#), "/state/n"),
            (&create, format!(r#"{{"state":{{}},"config":{{"a":[0,{{"~/":{number}}}]}}}}"#), "/config/a/1/~0~1"),
            (&patch, format!(r#"{{"n":{{"m":{number}}}}}"#), "/n/m"),
            (&config, format!(r#"{{"n":{number}}}"#), "/n"),
            (&adjust, format!(r#"{{"attribute":"brightness","by":{number}}}"#), "/by"),
            (&adjust, format!(r#"{{"attribute":"brightness","by":1,"min":{number}}}"#), "/min"),
            (&adjust, format!(r#"{{"attribute":"brightness","by":1,"max":{number}}}"#), "/max"),
        ] {
            world.bad_input(&event.clone().text(&body), "number_out_of_range", field).await;
        }
    }
}

#[tokio::test]
async fn an_id_is_1_to_128_safe_characters() {
    let world = World::new();
    let longest = "x".repeat(128);
    for id in [longest.as_str(), "...", "A-Z.a_z:09"] {
        world.send(&Event::create().device(id)).await.shows(201, 1);
    }
    for id in [
        "",
        "a/b",
        "/",
        "a%2Fb",
        "%",
        "%41",
        "..",
        ".",
        "a b",
        " ",
        "a\nb",
        "\u{0}",
        "a\u{7f}",
        "é",
        "a+b",
        "a\\b",
        "a?b",
        "a#b",
        &"x".repeat(129),
    ] {
        for event in Event::all() {
            let event = if event.method() == "DELETE" { event.header("if-match", "*") } else { event };
            world.bad_input(&event.device(id), "invalid_id", "path:deviceId").await;
        }
    }
}

#[tokio::test]
async fn an_id_in_a_path_that_no_gateway_has_decoded_is_judged_as_it_stands() {
    let world = World::new();
    for path in ["/devices/a%2Fb", "/devices/%6Camp-1", "/devices/..", "/devices/.", "/devices/"] {
        world.bad_input(&Event::get().unrouted("GET", path), "invalid_id", "path:deviceId").await;
    }
    let event = Event::patch_state().unrouted("PATCH", "/devices/../state");
    world.bad_input(&event, "invalid_id", "path:deviceId").await;
}

#[tokio::test]
async fn a_name_that_is_ours_is_refused_at_the_top() {
    let (world, _) = World::with_lamp().await;
    let [create, patch, adjust, status, config] = Event::with_body();
    for name in ["_version", "_", "_purgeAt", "__proto__"] {
        let field = format!("/{name}");
        let bodies = [
            (&create, json!({"state": {}, name: 1}), field.clone()),
            (&create, json!({"state": {name: 1}}), format!("/state{field}")),
            (&create, json!({"state": {}, "config": {name: 1}}), format!("/config{field}")),
            (&patch, json!({name: 1}), field.clone()),
            (&patch, json!({name: null}), field.clone()),
            (&adjust, json!({"attribute": "brightness", "by": 1, name: 1}), field.clone()),
            (&status, json!({"status": "offline", name: 1}), field.clone()),
            (&config, json!({name: 1}), field),
        ];
        for (event, body, field) in bodies {
            world.bad_input(&event.clone().text(&body.to_string()), "reserved_name", &field).await;
        }
    }
    let nested = json!({"a": {"_b": 1}, "b": [{"_c": 2}]});
    assert_eq!(world.send(&patch.text(&nested.to_string())).await.shows(200, 2)["state"]["a"], nested["a"]);
}

#[tokio::test]
async fn a_field_that_the_route_does_not_know_is_refused() {
    let (world, _) = World::with_lamp().await;
    let [create, _, adjust, status, _] = Event::with_body();
    for name in ["version", "deviceId", "createdAt", "State", "STATE", "state ", "", "a/b~"] {
        let field = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        for (event, mut body) in [
            (&create, json!({"state": {}})),
            (&adjust, json!({"attribute": "brightness", "by": 1})),
            (&status, json!({"status": "offline"})),
        ] {
            body[name] = json!(1);
            world.bad_input(&event.clone().text(&body.to_string()), "unknown_field", &field).await;
        }
    }
}

#[tokio::test]
async fn a_name_that_occurs_twice_is_refused() {
    let (world, _) = World::with_lamp().await;
    let [create, patch, adjust, status, config] = Event::with_body();
    for (event, body, field) in [
        (create, r#"{"state":{"a":1,"a":1}}"#, "/state/a"),
        (patch, r#"{"a":1,"b":{"c":1,"\u0063":2}}"#, "/b/c"),
        (adjust, r#"{"attribute":"brightness","by":1,"by":2}"#, "/by"),
        (status, r#"{"status":"offline","status":"online"}"#, "/status"),
        (config, r#"{"a":null,"a":null}"#, "/a"),
    ] {
        world.bad_input(&event.text(body), "duplicate_name", field).await;
    }
}

#[tokio::test]
async fn names_have_1_to_255_bytes() {
    let (world, _) = World::with_lamp().await;
    let [create, patch, _, _, config] = Event::with_body();
    for name in [String::new(), "n".repeat(256), "é".repeat(128)] {
        for (event, body, field) in [
            (&create, json!({"state": {&name: 1}}), format!("/state/{name}")),
            (&create, json!({"state": {}, "config": {"a": {&name: 1}}}), format!("/config/a/{name}")),
            (&patch, json!({&name: 1}), format!("/{name}")),
            (&patch, json!({"a": [{&name: 1}]}), format!("/a/0/{name}")),
            (&config, json!({&name: 1}), format!("/{name}")),
        ] {
            world.bad_input(&event.clone().text(&body.to_string()), "invalid_name", &field).await;
        }
    }
    let longest = json!({"n".repeat(255): 1, "é".repeat(127): {"m".repeat(255): 2}});
    world.send(&patch.text(&longest.to_string())).await.shows(200, 2);
    let device = world.send(&Event::get()).await.shows(200, 2);
    assert_eq!(device["state"]["n".repeat(255)], 1);
}

#[tokio::test]
async fn every_wrong_field_is_named() {
    let (world, _) = World::with_lamp().await;
    let [create, _, adjust, status, _] = Event::with_body();
    for (event, body, code, field) in [
        (&create, "{}", "missing_field", "/state"),
        (&create, r#"{"state":{},"status":"ONLINE"}"#, "invalid_value", "/status"),
        (&create, r#"{"state":{},"status":""}"#, "invalid_value", "/status"),
        (&create, r#"{"state":{},"status":null}"#, "invalid_type", "/status"),
        (&create, r#"{"state":{},"status":true}"#, "invalid_type", "/status"),
        (&status, "{}", "missing_field", "/status"),
        (&status, r#"{"status":"on"}"#, "invalid_value", "/status"),
        (&status, r#"{"status":["online"]}"#, "invalid_type", "/status"),
        (&adjust, r#"{"by":1}"#, "missing_field", "/attribute"),
        (&adjust, r#"{"attribute":"brightness"}"#, "missing_field", "/by"),
        (&adjust, r#"{"attribute":1,"by":1}"#, "invalid_type", "/attribute"),
        (&adjust, r#"{"attribute":null,"by":1}"#, "invalid_type", "/attribute"),
        (&adjust, r#"{"attribute":"brightness","by":"1"}"#, "invalid_type", "/by"),
        (&adjust, r#"{"attribute":"brightness","by":null}"#, "invalid_type", "/by"),
        (&adjust, r#"{"attribute":"brightness","by":{"$serde_json::private::Number":"1"}}"#, "invalid_type", "/by"),
        (&adjust, r#"{"attribute":"brightness","by":1,"min":"0"}"#, "invalid_type", "/min"),
        (&adjust, r#"{"attribute":"brightness","by":1,"max":[]}"#, "invalid_type", "/max"),
        (&adjust, r#"{"attribute":"brightness","by":1,"min":2,"max":1}"#, "invalid_value", "/min"),
        (&adjust, r#"{"attribute":"brightness","by":1,"onLimit":"wrap"}"#, "invalid_value", "/onLimit"),
        (&adjust, r#"{"attribute":"brightness","by":1,"onLimit":0}"#, "invalid_type", "/onLimit"),
    ] {
        world.bad_input(&event.clone().text(body), code, field).await;
    }
}

#[tokio::test]
async fn every_malformed_if_match_is_refused() {
    let (world, created) = World::with_lamp().await;
    let tag = created.etag();
    let bare = tag.trim_matches('"');
    let headers = [
        String::new(),
        " ".to_owned(),
        bare.to_owned(),
        format!("W/{tag}"),
        format!("w/{tag}"),
        format!("{tag},{tag}"),
        format!("{tag}, \"2.AAAAAAAAAAA\""),
        format!("{tag},"),
        format!(",{tag}"),
        format!("{tag} {tag}"),
        format!("\"{bare}"),
        format!("{bare}\""),
        format!("'{bare}'"),
        format!("\"{tag}\""),
        "**".to_owned(),
        format!("*, {tag}"),
        "\"".to_owned(),
        "W/*".to_owned(),
    ];
    for event in Event::changes() {
        for header in &headers {
            let event = event.clone().header("if-match", header);
            world.bad_input(&event, "invalid_if_match", "header:if-match").await;
        }
    }
}

#[tokio::test]
async fn every_malformed_if_none_match_is_refused() {
    let (world, created) = World::with_lamp().await;
    let tag = created.etag();
    for header in
        [String::new(), tag.trim_matches('"').to_owned(), format!("{tag} {tag}"), format!("{tag},"), "\"".to_owned()]
    {
        for event in [Event::get(), Event::create().device("lamp-2")] {
            let event = event.header("if-none-match", &header);
            world.bad_input(&event, "invalid_if_none_match", "header:if-none-match").await;
        }
    }
    let event = Event::create().device("lamp-2").header("if-none-match", tag);
    world.bad_input(&event, "invalid_if_none_match", "header:if-none-match").await;
}

#[tokio::test]
async fn a_path_that_no_route_has_is_no_such_route() {
    let (world, _) = World::with_lamp().await;
    for path in [
        "",
        "/",
        "/devices",
        "/Devices/lamp-1",
        "/devices/lamp-1/",
        "/devices/lamp-1/unknown",
        "/devices/lamp-1/state/",
        "/devices/lamp-1/State",
        "//devices/lamp-1",
        "/devices//lamp-1",
        "/devices/lamp-1/state/brightness",
        "/products/lamp-1",
    ] {
        for event in Event::all() {
            let event = event.clone().unrouted(event.method(), path);
            world.refused(&event, 404, "no_such_route").await;
        }
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_told_those_that_it_does() {
    let (world, _) = World::with_lamp().await;
    for (path, methods, others) in [
        ("/devices/lamp-1", vec!["DELETE", "GET", "PUT"], vec!["POST", "PATCH", "OPTIONS", "put", "BREW"]),
        ("/devices/lamp-1/state", vec!["PATCH"], vec!["GET", "PUT", "POST", "DELETE"]),
        ("/devices/lamp-1/adjustments", vec!["POST"], vec!["GET", "PUT", "PATCH", "DELETE"]),
        ("/devices/lamp-1/status", vec!["PUT"], vec!["GET", "POST", "PATCH", "DELETE"]),
        ("/devices/lamp-1/config", vec!["PUT"], vec!["GET", "POST", "PATCH", "DELETE"]),
    ] {
        for method in others {
            let answer = world.refused(&Event::create().unrouted(method, path), 405, "method_not_allowed").await;
            let mut allowed: Vec<_> = answer.header("allow").expect("Allow").split(", ").collect();
            allowed.sort_unstable();
            assert_eq!(allowed, methods, "{path}");
        }
    }
    let head = world.send(&Event::create().unrouted("HEAD", "/devices/lamp-1")).await;
    assert_eq!((head.status, head.header("allow"), head.body.as_deref()), (405, Some("PUT, GET, DELETE"), None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_body_is_the_answer_is_no_fault(
        body in prop_oneof![
            any::<String>(),
            "[\\[\\]{}:,\"a-c0-9eE.+ \\\\-]{0,40}",
            "\\{\"(state|by|attribute|status|n)\":[\\[\\]{}:,\"a-c0-9eE.+-]{0,20}\\}",
        ],
        id in "[ -~]{0,12}",
        tag in "[ -~]{0,24}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (world, _) = World::with_lamp().await;
            for event in Event::all() {
                let event = if event.0["body"].is_null() { event } else { event.text(&body) };
                for event in [event.clone(), event.clone().device(&id), event.header("if-match", &tag)] {
                    let answer = world.send(&event).await;
                    assert!((200..500).contains(&answer.status), "{event:?} {answer:?}");
                }
            }
        });
    }
}
