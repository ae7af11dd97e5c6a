//! Bad input at each route: a problem names the field, and `DynamoDB` is not asked.
//!
//! The tables have each field of each route once for each kind of mistake. A rule that holds for all routes is tested on all
//! routes. `limits.rs` has the values just outside a limit.

use super::Api;
use crate::harness::contract::resolve;
use crate::harness::events::{Event, sample};
use crate::harness::functions::all_routes;
use dev::openapi;
use functions::operation::{IdempotencyKey, Operation};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const CREATE_DEVICE: &str = "PUT /devices/{deviceId}";
pub const PATCH_STATE: &str = "PATCH /devices/{deviceId}/state";
const ADJUST_DEVICE: &str = "POST /devices/{deviceId}/adjustments";
const SET_STATUS: &str = "PUT /devices/{deviceId}/status";
const SET_CONFIG: &str = "PUT /devices/{deviceId}/config";
pub const CREATE_PRODUCT: &str = "PUT /products/{productId}";
const ADJUST_STOCK: &str = "POST /products/{productId}/adjustments";
pub const PLACE: &str = "POST /orders";
pub const LIST: &str = "GET /orders";
const CANCEL: &str = "POST /orders/{orderId}/cancellation";
pub const REGISTER: &str = "PUT /mappings/{hostIp}";
pub const DELETE_MAPPING: &str = "DELETE /mappings/{hostIp}";
pub const ACQUIRE: &str = "PUT /leases/{leaseKey}";
const RENEW: &str = "PATCH /leases/{leaseKey}";
const RELEASE: &str = "DELETE /leases/{leaseKey}";
pub const ENSURE: &str = "PUT /parents/{parentId}/child";
const SHOW_CHILD: &str = "GET /parents/{parentId}/child";

/// A route, a body, and the code and the field of the problem. `@` stands for a moment that has passed.
const BODIES: &[(&str, &str, &str, &str)] = &[
    (CREATE_DEVICE, "{}", "missing_field", "/state"),
    (CREATE_DEVICE, r#"{"state":[]}"#, "invalid_type", "/state"),
    (CREATE_DEVICE, r#"{"state":{},"config":null}"#, "invalid_type", "/config"),
    (CREATE_DEVICE, r#"{"state":{},"status":true}"#, "invalid_type", "/status"),
    (CREATE_DEVICE, r#"{"state":{},"status":"ONLINE"}"#, "invalid_value", "/status"),
    (CREATE_DEVICE, r#"{"state":{},"config":{"a":[0,{"~/":1e400}]}}"#, "number_out_of_range", "/config/a/1/~0~1"),
    (CREATE_DEVICE, r#"{"state":{"n":1e-131}}"#, "number_out_of_range", "/state/n"),
    (CREATE_DEVICE, r#"{"state":{"a":1,"a":1}}"#, "duplicate_name", "/state/a"),
    (CREATE_DEVICE, r#"{"state":{"_version":1}}"#, "reserved_name", "/state/_version"),
    (CREATE_DEVICE, r#"{"state":{},"config":{"__proto__":1}}"#, "reserved_name", "/config/__proto__"),
    (CREATE_DEVICE, r#"{"state":{},"_":1}"#, "reserved_name", "/_"),
    (CREATE_DEVICE, r#"{"state":{},"a/b~":1}"#, "unknown_field", "/a~1b~0"),
    (CREATE_DEVICE, r#"{"state":{},"createdAt":1}"#, "unknown_field", "/createdAt"),
    (CREATE_DEVICE, r#"{"state":{"":1}}"#, "invalid_name", "/state/"),
    (PATCH_STATE, r#"{"_purgeAt":null}"#, "reserved_name", "/_purgeAt"),
    (PATCH_STATE, r#"{"a":[{"":1}]}"#, "invalid_name", "/a/0/"),
    (PATCH_STATE, r#"{"n":{"m":1e126}}"#, "number_out_of_range", "/n/m"),
    (PATCH_STATE, r#"{"n":123456789012345678901234567890123456789}"#, "number_out_of_range", "/n"),
    (PATCH_STATE, r#"{"a":1,"b":{"c":1,"\u0063":2}}"#, "duplicate_name", "/b/c"),
    (ADJUST_DEVICE, r#"{"by":1}"#, "missing_field", "/attribute"),
    (ADJUST_DEVICE, r#"{"attribute":"a"}"#, "missing_field", "/by"),
    (ADJUST_DEVICE, r#"{"attribute":null,"by":1}"#, "invalid_type", "/attribute"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":"1"}"#, "invalid_type", "/by"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":{"$serde_json::private::Number":"1"}}"#, "invalid_type", "/by"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1e400}"#, "number_out_of_range", "/by"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"min":"0"}"#, "invalid_type", "/min"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"min":1e400}"#, "number_out_of_range", "/min"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"max":[]}"#, "invalid_type", "/max"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"max":1e400}"#, "number_out_of_range", "/max"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"min":2,"max":1}"#, "invalid_value", "/min"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"onLimit":"wrap"}"#, "invalid_value", "/onLimit"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"onLimit":0}"#, "invalid_type", "/onLimit"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"by":2}"#, "duplicate_name", "/by"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"deviceId":1}"#, "unknown_field", "/deviceId"),
    (ADJUST_DEVICE, r#"{"attribute":"a","by":1,"_x":1}"#, "reserved_name", "/_x"),
    (SET_STATUS, "{}", "missing_field", "/status"),
    (SET_STATUS, r#"{"status":"on"}"#, "invalid_value", "/status"),
    (SET_STATUS, r#"{"status":["online"]}"#, "invalid_type", "/status"),
    (SET_STATUS, r#"{"status":"offline","version":1}"#, "unknown_field", "/version"),
    (SET_STATUS, r#"{"status":"offline","_x":1}"#, "reserved_name", "/_x"),
    (SET_CONFIG, r#"{"_x":1}"#, "reserved_name", "/_x"),
    (SET_CONFIG, r#"{"n":1e400}"#, "number_out_of_range", "/n"),
    (SET_CONFIG, r#"{"":1}"#, "invalid_name", "/"),
    (CREATE_PRODUCT, "{}", "missing_field", "/stock"),
    (CREATE_PRODUCT, r#"{"stock":"1"}"#, "invalid_type", "/stock"),
    (CREATE_PRODUCT, r#"{"stock":1,"lowStockAt":-1}"#, "invalid_value", "/lowStockAt"),
    (CREATE_PRODUCT, r#"{"stock":1,"lowStockAt":null}"#, "invalid_type", "/lowStockAt"),
    (CREATE_PRODUCT, r#"{"stock":1,"lowStockAt":0.5}"#, "invalid_value", "/lowStockAt"),
    (CREATE_PRODUCT, r#"{"stock":1,"status":"in_stock"}"#, "unknown_field", "/status"),
    (ADJUST_STOCK, "{}", "missing_field", "/by"),
    (ADJUST_STOCK, r#"{"by":null}"#, "invalid_type", "/by"),
    (ADJUST_STOCK, r#"{"by":1.5}"#, "invalid_value", "/by"),
    (ADJUST_STOCK, r#"{"by":-1000000000000001}"#, "invalid_value", "/by"),
    (ADJUST_STOCK, r#"{"by":1e400}"#, "number_out_of_range", "/by"),
    (ADJUST_STOCK, r#"{"by":1,"min":0}"#, "unknown_field", "/min"),
    (PLACE, r#"{"lines":[]}"#, "missing_field", "/userId"),
    (PLACE, r#"{"userId":7,"lines":[]}"#, "invalid_type", "/userId"),
    (PLACE, r#"{"userId":"a b","lines":[]}"#, "invalid_id", "/userId"),
    (PLACE, r#"{"userId":"u"}"#, "missing_field", "/lines"),
    (PLACE, r#"{"userId":"u","lines":{}}"#, "invalid_type", "/lines"),
    (PLACE, r#"{"userId":"u","lines":["b"]}"#, "invalid_type", "/lines/0"),
    (PLACE, r#"{"userId":"u","lines":[{"quantity":1}]}"#, "missing_field", "/lines/0/productId"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a\n","quantity":1}]}"#, "invalid_id", "/lines/0/productId"),
    (
        PLACE,
        r#"{"userId":"u","lines":[{"productId":"a","quantity":1},{"productId":"a","quantity":2}]}"#,
        "invalid_value",
        "/lines/1/productId",
    ),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a"}]}"#, "missing_field", "/lines/0/quantity"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":"1"}]}"#, "invalid_type", "/lines/0/quantity"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":1.5}]}"#, "invalid_value", "/lines/0/quantity"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":-0}]}"#, "invalid_value", "/lines/0/quantity"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":1000001}]}"#, "invalid_value", "/lines/0/quantity"),
    (
        PLACE,
        r#"{"userId":"u","lines":[{"productId":"a","quantity":1e400}]}"#,
        "number_out_of_range",
        "/lines/0/quantity",
    ),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":1,"price":0}]}"#, "unknown_field", "/lines/0/price"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":1}],"orderId":1}"#, "unknown_field", "/orderId"),
    (PLACE, r#"{"userId":"u","lines":[{"productId":"a","quantity":1}],"_x":1}"#, "reserved_name", "/_x"),
    (CANCEL, r#"{"why":"late"}"#, "unknown_field", "/why"),
    (REGISTER, r#"{"instanceId":"i","creationTimestamp":@}"#, "missing_field", "/cellId"),
    (REGISTER, r#"{"cellId":1,"instanceId":"i","creationTimestamp":@}"#, "invalid_type", "/cellId"),
    (REGISTER, r#"{"cellId":"..","instanceId":"i","creationTimestamp":@}"#, "invalid_id", "/cellId"),
    (REGISTER, r#"{"cellId":"c","creationTimestamp":@}"#, "missing_field", "/instanceId"),
    (REGISTER, r#"{"cellId":"c","instanceId":null,"creationTimestamp":@}"#, "invalid_type", "/instanceId"),
    (REGISTER, r#"{"cellId":"c","instanceId":"","creationTimestamp":@}"#, "invalid_id", "/instanceId"),
    (REGISTER, r#"{"cellId":"c","instanceId":"i"}"#, "missing_field", "/creationTimestamp"),
    (REGISTER, r#"{"cellId":"c","instanceId":"i","creationTimestamp":1}"#, "invalid_type", "/creationTimestamp"),
    (
        REGISTER,
        r#"{"cellId":"c","instanceId":"i","creationTimestamp":@,"hostIp":"192.0.2.1"}"#,
        "unknown_field",
        "/hostIp",
    ),
    (ACQUIRE, r#"{"ttlSeconds":1}"#, "missing_field", "/holder"),
    (ACQUIRE, r#"{"holder":7,"ttlSeconds":1}"#, "invalid_type", "/holder"),
    (ACQUIRE, r#"{"holder":"a b","ttlSeconds":1}"#, "invalid_id", "/holder"),
    (ACQUIRE, r#"{"holder":"a"}"#, "missing_field", "/ttlSeconds"),
    (ACQUIRE, r#"{"holder":"a","ttlSeconds":"60"}"#, "invalid_type", "/ttlSeconds"),
    (ACQUIRE, r#"{"holder":"a","ttlSeconds":0}"#, "invalid_value", "/ttlSeconds"),
    (ACQUIRE, r#"{"holder":"a","ttlSeconds":900.5}"#, "invalid_value", "/ttlSeconds"),
    (ACQUIRE, r#"{"holder":"a","ttlSeconds":1e400}"#, "number_out_of_range", "/ttlSeconds"),
    (ACQUIRE, r#"{"holder":"a","ttlSeconds":1,"token":1}"#, "unknown_field", "/token"),
    (RENEW, r#"{"ttlSeconds":1}"#, "missing_field", "/token"),
    (RENEW, r#"{"token":"1","ttlSeconds":1}"#, "invalid_type", "/token"),
    (RENEW, r#"{"token":0,"ttlSeconds":1}"#, "invalid_value", "/token"),
    (RENEW, r#"{"token":9007199254740992,"ttlSeconds":1}"#, "invalid_value", "/token"),
    (RENEW, r#"{"token":1}"#, "missing_field", "/ttlSeconds"),
    (RENEW, r#"{"token":1,"ttlSeconds":901}"#, "invalid_value", "/ttlSeconds"),
    (RENEW, r#"{"token":1,"ttlSeconds":1,"holder":"a"}"#, "unknown_field", "/holder"),
    (ENSURE, r#"{"spec":{}}"#, "missing_field", "/parentUid"),
    (ENSURE, r#"{"parentUid":"","spec":{}}"#, "invalid_id", "/parentUid"),
    (ENSURE, r#"{"parentUid":"u"}"#, "missing_field", "/spec"),
    (ENSURE, r#"{"parentUid":"u","spec":[]}"#, "invalid_type", "/spec"),
    (ENSURE, r#"{"parentUid":"u","spec":{"_a":1}}"#, "reserved_name", "/spec/_a"),
    (ENSURE, r#"{"parentUid":"u","spec":{},"childId":"c"}"#, "unknown_field", "/childId"),
    (ENSURE, r#"{"parentUid":"u","spec":{},"lease":null}"#, "invalid_type", "/lease"),
    (ENSURE, r#"{"parentUid":"u","spec":{},"lease":{"token":1}}"#, "missing_field", "/lease/key"),
    (ENSURE, r#"{"parentUid":"u","spec":{},"lease":{"key":"a b","token":1}}"#, "invalid_id", "/lease/key"),
    (ENSURE, r#"{"parentUid":"u","spec":{},"lease":{"key":"k"}}"#, "missing_field", "/lease/token"),
    (ENSURE, r#"{"parentUid":"u","spec":{},"lease":{"key":"k","token":0}}"#, "invalid_value", "/lease/token"),
    (
        ENSURE,
        r#"{"parentUid":"u","spec":{},"lease":{"key":"k","token":1,"holder":"a"}}"#,
        "unknown_field",
        "/lease/holder",
    ),
];

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

/// The description of a route in `docs/openapi.yaml`.
fn described(route: &str) -> Value {
    let (method, path) = route.split_once(' ').expect("a method and a path");
    openapi::document()["paths"][path][method.to_lowercase()].clone()
}

/// Whether a route takes a header, by `docs/openapi.yaml`.
fn takes(route: &str, header: &str) -> bool {
    let (document, operation) = (openapi::document(), described(route));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.map(|parameter| resolve(&document, parameter)).any(|parameter| parameter["name"] == header)
}

/// The routes that take a body.
fn with_body() -> impl Iterator<Item = Operation> {
    all_routes().filter(|route| described(route.at)["requestBody"].is_object())
}

#[tokio::test]
async fn a_wrong_field_of_a_body_is_named() {
    let api = Api::start();
    for (route, body, code, field) in BODIES {
        let (event, body) = (event(route), &body.replace('@', r#""2026-03-07T10:00:00Z""#));
        api.of(route).bad_input(&event.clone().text(body), code, field).await;
        if *route == ACQUIRE || *route == ADJUST_STOCK {
            api.of(route).bad_input(&event.without_header("idempotency-key").text(body), code, field).await;
        }
    }
}

/// An order of so many lines.
pub fn order(lines: usize) -> Event {
    let line = |number| json!({"productId": format!("p-{number}"), "quantity": 1});
    event(PLACE).json(&json!({"userId": "u", "lines": (0..lines).map(line).collect::<Vec<_>>()}))
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
    for Operation { at, .. } in with_body() {
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
