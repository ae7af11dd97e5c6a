//! Bad input at each route: a problem names the field, and `DynamoDB` is not asked.
//!
//! Each field of each route is wrong once in each way that its schema has. A rule that holds for all routes is tested on all
//! routes. `limits.rs` has the values just outside a limit.

use super::Api;
use crate::harness::contract::resolve;
use crate::harness::events::{Event, sample};
use crate::harness::functions::all_routes;
use dev::openapi;
use functions::operation::{IdempotencyKey, Operation, Schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub const CREATE_DEVICE: &str = "PUT /devices/{deviceId}";
pub const PATCH_STATE: &str = "PATCH /devices/{deviceId}/state";
const ADJUST_DEVICE: &str = "POST /devices/{deviceId}/adjustments";
pub const CREATE_PRODUCT: &str = "PUT /products/{productId}";
const ADJUST_STOCK: &str = "POST /products/{productId}/adjustments";
pub const PLACE: &str = "POST /orders";
pub const LIST: &str = "GET /orders";
const CANCEL: &str = "POST /orders/{orderId}/cancellation";
pub const DELETE_MAPPING: &str = "DELETE /mappings/{hostIp}";
pub const ACQUIRE: &str = "PUT /leases/{leaseKey}";
const RELEASE: &str = "DELETE /leases/{leaseKey}";
pub const ENSURE: &str = "PUT /parents/{parentId}/child";
const SHOW_CHILD: &str = "GET /parents/{parentId}/child";

/// A route, a body, and the code and the field of the problem, beside those that follow from the schemas.
const BODIES: &[(&str, &str, &str, &str)] = &[
    (CREATE_DEVICE, r#"{"state":{},"config":{"a":[0,{"~/":1e400}]}}"#, "number_out_of_range", "/config/a/1/~0~1"),
    (CREATE_DEVICE, r#"{"state":{"n":1e-131}}"#, "number_out_of_range", "/state/n"),
    (CREATE_DEVICE, r#"{"state":{"a":1,"a":1}}"#, "duplicate_name", "/state/a"),
    (CREATE_DEVICE, r#"{"state":{},"config":{"__proto__":1}}"#, "reserved_name", "/config/__proto__"),
    (CREATE_DEVICE, r#"{"state":{},"a/b~":1}"#, "unknown_field", "/a~1b~0"),
    (PATCH_STATE, r#"{"_purgeAt":null}"#, "reserved_name", "/_purgeAt"),
    (PATCH_STATE, r#"{"a":[{"":1}]}"#, "invalid_name", "/a/0/"),
    (PATCH_STATE, r#"{"\u0024serde_json::private::Number":"5"}"#, "reserved_name", "/$serde_json::private::Number"),
    (PATCH_STATE, r#"{"a":1,"b":{"c":1,"\u0063":2}}"#, "duplicate_name", "/b/c"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":{"$serde_json::private::Number":"1"}}"#, "invalid_type", "/by"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"min":2,"max":1}"#, "invalid_value", "/min"),
    (
        PLACE,
        r#"{"userId":"u","lines":[{"productId":"a","quantity":1},{"productId":"a","quantity":2}]}"#,
        "invalid_value",
        "/lines/1/productId",
    ),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":-0}]}"#, "invalid_value", "/lines/0/quantity"),
];

/// A wrong value, with the code of its problem and the way from the value to the field.
type Wrong = (Value, &'static str, String);

/// A value as its schema wants it, with all members, and the values with one mistake.
fn values(schema: &Schema) -> (Value, Vec<Wrong>) {
    const TYPE: &str = "invalid_type";
    const VALUE: &str = "invalid_value";
    const RANGE: &str = "number_out_of_range";
    let wide: Value = serde_json::from_str("1e400").expect("JSON");
    let mut inside: Vec<Wrong> = Vec::new();
    let (right, wrong) = match schema {
        Schema::Named(_, of) | Schema::With(_, of) => return values(of),
        Schema::Shared("Token") => return values(&Schema::Whole(1, (1 << 53) - 1)),
        Schema::Shared("Id") => (json!("a"), vec![(json!(7), TYPE), (json!("a b"), "invalid_id")]),
        Schema::Shared("GivenTimestamp") => {
            (json!("2026-03-07T10:00:00Z"), vec![(json!(1), TYPE), (json!("2026"), "invalid_timestamp")])
        }
        Schema::Shared(_) => {
            let members = [("_x", json!(1), "reserved_name"), ("", json!(1), "invalid_name"), ("n", wide, RANGE)];
            inside.extend(members.map(|(name, value, code)| (json!({name: value}), code, format!("/{name}"))));
            (json!({}), vec![])
        }
        Schema::Whole(least, most) => {
            let outside = [json!(least - 1), json!(most + 1), json!(0.5)].map(|value| (value, VALUE));
            (json!(least), [&outside[..], &[(json!("1"), TYPE), (wide, RANGE)]].concat())
        }
        Schema::OneOf(texts) => (json!(texts[0]), vec![(json!(true), TYPE), (json!("other"), VALUE)]),
        Schema::Json(text) if text.contains(r#""string""#) => (json!("a"), vec![(json!(1), TYPE)]),
        Schema::Json(_) => (json!(1), vec![(json!("1"), TYPE), (wide, RANGE)]),
        Schema::List(.., of) => {
            let (one, wrong) = values(of);
            inside.extend(wrong.into_iter().map(|(value, code, at)| (json!([value]), code, format!("/0{at}"))));
            (json!([one]), vec![(json!({}), TYPE), (json!([]), VALUE)])
        }
        Schema::Object(members) => {
            let known = |name: &'static str| name.trim_end_matches('?');
            let of_members: Vec<_> = members.iter().map(|(name, of)| (*name, values(of))).collect();
            let right: Map<_, _> =
                of_members.iter().map(|(name, (right, _))| (known(name).to_owned(), right.clone())).collect();
            let with = |name: &str, value: Value| {
                let mut object = right.clone();
                object.insert(name.to_owned(), value);
                json!(object)
            };
            inside.push((with("more", json!(1)), "unknown_field", "/more".to_owned()));
            for (name, (_, wrong)) in of_members {
                let (mut without, at) = (right.clone(), format!("/{}", known(name)));
                without.remove(name);
                if without != right {
                    inside.push((json!(without), "missing_field", at.clone()));
                }
                inside.extend(
                    wrong.into_iter().map(|(value, code, on)| (with(known(name), value), code, format!("{at}{on}"))),
                );
            }
            (json!(right), vec![])
        }
    };
    inside.extend(wrong.into_iter().chain([(Value::Null, TYPE)]).map(|(value, code)| (value, code, String::new())));
    (right, inside)
}

/// A route, a query, and the code and the field of the problem.
type Query = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

const QUERIES: &[Query] = &[
    (LIST, &[("limit", "5")], "missing_parameter", "query:userId"),
    (LIST, &[("userId", "u"), ("offset", "5")], "unknown_parameter", "query:offset"),
    (
        DELETE_MAPPING,
        &[("creationTimestamp", "2026-03-07T10:00:00Z"), ("instanceId", "")],
        "invalid_id",
        "query:instanceId",
    ),
    (
        DELETE_MAPPING,
        &[("creationTimestamp", "2026-03-07T10:00:00Z"), ("instanceid", "i")],
        "unknown_parameter",
        "query:instanceid",
    ),
    (RELEASE, &[("token", "0")], "invalid_value", "query:token"),
    (RELEASE, &[("token", "1e3")], "invalid_value", "query:token"),
    (RELEASE, &[("token", "9007199254740992")], "invalid_value", "query:token"),
    // Two values of one parameter: none of them counts.
    (RELEASE, &[("token", "1,2")], "invalid_value", "query:token"),
    (RELEASE, &[("token", "1"), ("holder", "a")], "unknown_parameter", "query:holder"),
    (SHOW_CHILD, &[], "missing_parameter", "query:parentUid"),
    (SHOW_CHILD, &[("parentUid", "a/b")], "invalid_id", "query:parentUid"),
    (SHOW_CHILD, &[("parentUid", "u"), ("dryRun", "true")], "unknown_parameter", "query:dryRun"),
];

/// The event of `events/` for a route, without preconditions.
pub fn event(route: &str) -> Event {
    sample(route, "192.0.2.1").without_header("if-match").without_header("if-none-match")
}

/// Whether a route takes a header, by `docs/openapi.yaml`.
fn takes(route: &str, header: &str) -> bool {
    let (document, (method, path)) = (openapi::document(), route.split_once(' ').expect("a method and a path"));
    let parameters = &document["paths"][path][method.to_lowercase()]["parameters"];
    let parameters = parameters.as_array().into_iter().flatten();
    parameters.map(|parameter| resolve(&document, parameter)).any(|parameter| parameter["name"] == header)
}

#[tokio::test]
async fn a_wrong_field_of_a_body_is_named() {
    let api = Api::start();
    let mut all: Vec<_> = BODIES
        .iter()
        .map(|(route, body, code, field)| (*route, (*body).to_owned(), *code, (*field).to_owned()))
        .collect();
    for Operation { at, body, .. } in all_routes() {
        let Some((mut body, wrong)) = body.as_ref().map(values) else { continue };
        all.extend(wrong.into_iter().map(|(body, code, field)| (at, body.to_string(), code, field)));
        body["_x"] = json!(1);
        all.push((at, body.to_string(), "reserved_name", "/_x".to_owned()));
    }
    for (route, body, code, field) in all {
        let event = event(route).text(&body);
        api.of(route).bad_input(&event, code, &field).await;
        if route == ACQUIRE || route == ADJUST_STOCK {
            api.of(route).bad_input(&event.without_header("idempotency-key"), code, &field).await;
        }
    }
}

#[tokio::test]
async fn a_wrong_parameter_of_a_query_is_named() {
    let api = Api::start();
    for (route, query, code, field) in QUERIES {
        let event = event(route).asking(query.iter().copied());
        api.of(route).bad_input(&event, code, field).await;
    }
    for (route, without) in [(RELEASE, &[][..]), (DELETE_MAPPING, &[("instanceId", "i")])] {
        let (world, event) = (api.of(route), event(route).asking(without.iter().copied()));
        world.engine.take_log();
        world.send(&event).await.says(428, "condition_required");
        assert_eq!(world.engine.take_counts(), (0, 0), "{route}");
    }
}

#[tokio::test]
async fn a_body_is_one_json_object_of_at_most_512_kb_with_its_media_type() {
    let api = Api::start();
    let large = " ".repeat(512 * 1024 + 1);
    for Operation { at, .. } in all_routes().filter(|route| route.body.is_some()) {
        let (world, event) = (api.of(at), event(at));
        let not_json = ["{", "nul", "{} x", "{'a':1}", r#"{"a":01}"#, r#"{"a":"\ud800"}"#, "\u{feff}{}", "a=1"];
        for body in not_json.into_iter().chain((at != CANCEL).then_some("")) {
            world.bad_input(&event.clone().text(body), "invalid_json", "").await;
        }
        for body in ["*", "/w==", "e30"] {
            world.bad_input(&event.clone().base64(body), "invalid_json", "").await;
        }
        for body in ["[]", "1", "\"x\"", "null"] {
            world.bad_input(&event.clone().text(body), "invalid_type", "").await;
        }
        world.bad_input(&event.clone().text(r#"{"a":1,"a":1}"#), "duplicate_name", "/a").await;
        let patch = (!at.starts_with("PATCH ")).then_some("application/merge-patch+json");
        let event = event.text("{}");
        for media_type in ["text/plain", "application/jsonp", "json"].into_iter().chain(patch) {
            let event = event.clone().header("content-type", media_type);
            world.unasked(&event, 415, "unsupported_media_type", "header:content-type").await;
        }
        for encoding in ["gzip", "br", "identity, gzip"] {
            let event = event.clone().header("content-encoding", encoding);
            world.unasked(&event, 415, "unsupported_media_type", "header:content-encoding").await;
        }
        world.unasked(&event.text(&large), 413, "too_large", "").await;
    }
    let ignores_it = |at: &str| at.starts_with("GET ") || at.starts_with("DELETE ");
    for Operation { at, .. } in all_routes().filter(|operation| ignores_it(operation.at)) {
        let status = api.of(at).send(&event(at).header("content-encoding", "gzip").text("{")).await.status;
        assert!(![400, 413, 415].contains(&status), "{at}: {status}");
    }
}

#[tokio::test]
async fn a_parameter_of_a_path_is_an_id_or_an_address() {
    let api = Api::start();
    for Operation { at, .. } in all_routes() {
        let Some(parameter) = at.split(['{', '}']).nth(1) else { continue };
        let code = if parameter == "hostIp" { "invalid_ip" } else { "invalid_id" };
        for id in ["", ".", "..", "a/b", "a%2Fb", "a b", "a\n", "\u{0}", "é", "a+b", "a#b", &"x".repeat(129)] {
            api.of(at).bad_input(&event(at).of(parameter, id), code, &format!("path:{parameter}")).await;
        }
    }
}

#[tokio::test]
async fn a_malformed_tag_is_refused_and_so_is_a_tag_that_the_route_does_not_take() {
    let api = Api::start();
    let malformed =
        ["", "1.AAAAAAAAAAA", "W/", "\"1", "\"1.AAAAAAAAAAA\" \"1.AAAAAAAAAAA\"", "\"1.AAAAAAAAAAA\",", "**"];
    for Operation { at, .. } in all_routes().filter(|route| route.at != LIST) {
        for (header, code) in [("If-Match", "invalid_if_match"), ("If-None-Match", "invalid_if_none_match")] {
            let others = ["*", "\"1.AAAAAAAAAAA\"", "\"1.0\""].into_iter().filter(|_| !takes(at, header));
            let (header, field) = (header.to_lowercase(), format!("header:{}", header.to_lowercase()));
            for tag in malformed.into_iter().chain(others) {
                api.of(at).bad_input(&event(at).header(&header, tag), code, &field).await;
            }
        }
    }
}

#[tokio::test]
async fn a_key_is_1_to_255_visible_characters_where_it_is_honoured_and_refused_elsewhere() {
    let (api, field) = (Api::start(), "header:idempotency-key");
    for Operation { at, key, .. } in all_routes() {
        let (world, event) = (api.of(at), event(at));
        match key {
            IdempotencyKey::Ignored => assert!(at.starts_with("GET "), "{at} ignores a key"),
            IdempotencyKey::Refused => {
                for key in ["k-1", ""] {
                    world.bad_input(&event.clone().key(key), "idempotency_key_unsupported", field).await;
                }
            }
            IdempotencyKey::Honoured => {
                for key in ["", " ", "two words", "é", "two,keys", ",", &"x".repeat(256)] {
                    world.bad_input(&event.clone().key(key), "invalid_idempotency_key", field).await;
                }
                for key in ["!", "+-.~", &"x".repeat(255)] {
                    assert_ne!(world.send(&event.clone().key(key)).await.status, 400, "{at}: {key}");
                }
            }
        }
    }
    let without = event(PLACE).without_header("idempotency-key");
    api.of(PLACE).bad_input(&without, "idempotency_key_required", field).await;
}

#[tokio::test]
async fn a_path_of_no_route_is_not_found_and_another_method_is_told_those_of_the_path() {
    let api = Api::start();
    let paths: BTreeSet<_> = all_routes().map(|route| route.at.split_once(' ').expect("a path").1).collect();
    for path in paths {
        let of_path: Vec<_> =
            all_routes().filter(|route| route.at.split_once(' ').expect("a path").1 == path).collect();
        let methods: BTreeSet<_> = of_path.iter().map(|route| route.at.split_once(' ').expect("a method").0).collect();
        let (world, event) = (api.of(of_path[0].at), event(of_path[0].at));
        let own = event.path().to_owned();
        if path.contains('{') {
            // Without a parameter, it would be a path with an empty one.
            let slash = event.clone().unrouted(event.method(), &format!("{own}/"));
            world.refused(&slash, 404, "no_such_route").await;
        }
        for other in [format!("{own}/a/b"), format!("/{own}"), own.to_uppercase(), "/".to_owned()] {
            world.refused(&event.clone().unrouted(event.method(), &other), 404, "no_such_route").await;
        }
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "BREW", "put"] {
            if methods.contains(method) {
                continue;
            }
            let answer = world.refused(&event.clone().unrouted(method, &own), 405, "method_not_allowed").await;
            let allowed: BTreeSet<_> = answer.header("allow").expect("Allow").split(", ").collect();
            assert_eq!(allowed, methods, "{method} {own}");
        }
    }
}
