//! Unusual events of API Gateway, a Function URL or a development server, and callers without a name. `odd_events.json` has the
//! answers to the events, byte for byte.

use super::Api;
use crate::harness::clock::{Clock, TEN_O_CLOCK};
use crate::harness::engine::{store, with_indexed_tables};
use crate::harness::events::{Event, authorizers_that_name_nobody, load, sample};
use crate::harness::functions::all_routes;
use crate::harness::functions::{Devices, Functions, Mappings, Shop};
use crate::harness::world::World;
use functions::operation::IdempotencyKey;
use serde_json::{Map, Value, json};

/// In base64.
const LAMP: &str = "eyJzdGF0ZSI6eyJuYW1lIjoiTMOkbXBjaGVuIn19";

fn of_bodies() -> Vec<(&'static str, Event)> {
    let of_38_digits = format!(r#"{{"state":{{"n":{}}}}}"#, "7".repeat(38));
    let padded = |bytes: usize| format!(r#"{{"state":{{}}}}{}"#, " ".repeat(bytes - 12));
    let create = Event::create;
    vec![
        ("create", create()),
        ("create again", create()),
        ("create if absent", create().header("if-none-match", "*")),
        ("base64", create().device("lamp-2").base64(LAMP)),
        ("base64 without its padding", create().base64(&LAMP[..LAMP.len() - 1])),
        ("base64 that is broken where no body is read", Event::get().base64("*")),
        ("600 kB", create().text(&padded(600_000))),
        ("600 kB of base64 that is broken", create().base64(&"*".repeat(600_000))),
        ("750 kB of base64 that is broken", create().base64(&"*".repeat(750_000))),
        ("512 KB", create().device("lamp-3").text(&padded(512 * 1024))),
        ("600 kB with a wrong key", create().text(&padded(600_000)).key("a b")),
        ("38 digits", create().device("lamp-4").text(&of_38_digits)),
        (
            "a media type in capitals",
            create().device("lamp-6").header("content-type", "Application/JSON; charset=utf-8"),
        ),
        ("no media type", create().device("lamp-7").without_header("content-type")),
    ]
}

fn of_paths() -> Vec<(&'static str, Event)> {
    let staged = |mut event: Event| {
        event.0["rawPath"] = json!(format!("/prod{}", event.path()));
        event.0["requestContext"]["stage"] = json!("prod");
        event
    };
    let default = |method: &str, path: &str| Event::create().unrouted(method, path);
    let mut raw_query = Event::get();
    raw_query.0["rawQueryString"] = json!("a b=c d&%zz=%&\u{e9}");
    raw_query.0["queryStringParameters"] = json!({"a b": "c d", "%zz": "%", "\u{e9}": ""});
    let mut function_url = default("GET", "/devices/lamp-1");
    function_url.0["requestContext"]["domainName"] = json!("abc.lambda-url.eu-west-1.on.aws");
    function_url.0["requestContext"].as_object_mut().expect("a context").remove("authorizer");
    let mut incomplete = Event::get();
    incomplete.0["pathParameters"] = json!({});
    let mut cookies = Event::get();
    cookies.0["cookies"] = json!(["a=1", "b=2"]);
    vec![
        ("a stage", staged(Event::get())),
        ("a base path", Event::get().under_base_path("/v1")),
        ("a stage that no route key excuses", staged(default("GET", "/devices/lamp-1"))),
        ("a Function URL", function_url),
        ("cargo lambda", Event::get().by_cargo_lambda()),
        ("cookies", cookies),
        ("a route key without its parameter", incomplete),
        ("%2F in the path", default("GET", "/devices/a%2Fb")),
        ("%2D in the path", default("GET", "/devices/lamp%2D1")),
        ("no ASCII in the path", default("GET", "/devices/l\u{e4}mp")),
        ("a space in the path", default("GET", "/devices/lamp 1")),
        ("a question mark in the path", default("GET", "/devices/lamp-1?a=b")),
        ("braces in the path", default("GET", "/devices/{deviceId}")),
        ("two dots in the path", default("PATCH", "/devices/../state")),
        ("an empty id", default("GET", "/devices/")),
        ("an empty id in the middle", default("PATCH", "/devices//state")),
        ("no slash", default("GET", "devices/lamp-1")),
        ("a whole URL", default("GET", "https://devices/lamp-1")),
        ("HEAD", default("HEAD", "/devices/lamp-1")),
        ("spaces in the raw query", raw_query),
    ]
}

fn of_conditions_and_keys() -> Vec<(&'static str, Event)> {
    let mut two_cases = Event::patch_state().header("If-Match", r#""1.x""#);
    two_cases = two_cases.header("if-match", r#""2.x""#);
    let create = Event::create;
    let patched = |tags: &str| Event::patch_state().header("if-match", tags);
    let shown = |tags: &str| Event::get().header("if-none-match", tags);
    vec![
        ("two tags", patched(r#""1.x", "2.x""#)),
        ("any tag", patched("*")),
        ("two headers of one name", two_cases),
        ("tags to show", shown(r#""1.x", W/"2.BwAAAAAAAAA""#)),
        ("any tag to show", shown("*")),
        ("both conditions", shown("*").header("if-match", "*")),
        ("a key", create().device("lamp-8").key("k-1")),
        ("the key again", create().device("lamp-8").key("k-1")),
        ("the key under a base path", create().device("lamp-8").key("k-1").under_base_path("/v1")),
        ("the key in base64", create().device("lamp-8").key("k-1").base64(LAMP)),
        ("the key of another caller", create().device("lamp-8").key("k-1").by("arn:aws:iam::1:user/two")),
        ("a deletion without a condition", Event::delete()),
        ("a deletion", Event::delete().header("if-match", "*")),
        ("what was deleted", Event::get()),
    ]
}

fn on_the_shop() -> Vec<(&'static str, Event)> {
    let listed = |query: &[(&'static str, &'static str)]| load("place-order-list").asking(query.iter().copied());
    let mut twice = listed(&[("userId", "u-1,u-2")]);
    twice.0["rawQueryString"] = json!("userId=u-1&userId=u-2");
    vec![
        ("product", load("inventory-create")),
        ("product with a key", load("inventory-create").key("k-1")),
        ("adjustment", load("inventory-adjust")),
        ("adjustment again", load("inventory-adjust")),
        ("order", load("place-order-place")),
        ("list", load("place-order-list")),
        ("list of two users", twice),
        ("list with a cursor that is none", listed(&[("userId", "u-1"), ("cursor", "a b&c=d%26+e")])),
        ("cancellation of what is not there", load("place-order-cancel")),
    ]
}

fn on_mappings() -> Vec<(&'static str, Event)> {
    let deleting = |moment: &'static str| load("host-mapping-delete").asking([("creationTimestamp", moment)]);
    let of = |ip: &str| load("host-mapping-register").of("hostIp", ip);
    vec![
        ("mapping", load("host-mapping-register")),
        ("mapping again", load("host-mapping-register")),
        ("mapping of IPv6", of("2001:DB8::1")),
        ("IPv6 in the path", of("x").unrouted("GET", "/mappings/2001:db8::1")),
        ("IPv6 that is encoded", of("x").unrouted("GET", "/mappings/2001%3Adb8%3A%3A1")),
        ("no address", of("x").unrouted("GET", "/mappings/")),
        ("deletion with a space for a plus", deleting("2026-03-07T11:00:00 01:00")),
        ("deletion with a plus", deleting("2026-03-07T11:00:00+01:00")),
    ]
}

/// The answers of the functions to these events, one after the other.
async fn answers<F: Functions>(events: Vec<(&'static str, Event)>) -> Map<String, Value> {
    let (engine, clock) = (with_indexed_tables(F::tables()), Clock::standing(TEN_O_CLOCK));
    let store = store(&engine.client(), clock.looks(), || 7);
    let world = World::<F>::under(&engine, clock, &store);
    let mut told = Map::new();
    for (name, event) in events {
        let answer = world.send(&event).await;
        let headers: Map<_, _> =
            answer.header_names().map(|name| (name.to_owned(), json!(answer.header(name)))).collect();
        let body = answer.body.as_deref().map(|body| body.chars().take(600).collect::<String>());
        let line = json!({"status": answer.status, "headers": headers, "body": body});
        assert_eq!(told.insert(name.to_owned(), line), None, "{name} is there twice");
    }
    told
}

#[tokio::test(start_paused = true)]
async fn events_of_every_kind_are_answered_as_before_byte_for_byte() {
    let on_devices = [of_bodies(), of_paths(), of_conditions_and_keys()].concat();
    let mut told = Box::pin(answers::<Devices>(on_devices)).await;
    told.append(&mut Box::pin(answers::<Shop>(on_the_shop())).await);
    told.append(&mut Box::pin(answers::<Mappings>(on_mappings())).await);
    let expected: Map<String, Value> = serde_json::from_str(include_str!("odd_events.json")).expect("JSON");
    let names: Vec<_> = told.keys().filter(|name| expected.get(*name) != told.get(*name)).collect();
    let differing: Vec<_> = names
        .iter()
        .map(|name| format!("{name}\n  was {}\n  is  {}", json!(expected.get(*name)), told[*name]))
        .collect();
    assert!(differing.is_empty() && told.len() == expected.len(), "{}", differing.join("\n"));
}

#[tokio::test]
async fn a_caller_without_a_name_has_no_keys_and_is_served_otherwise() {
    for authorizer in authorizers_that_name_nobody() {
        let (named, nameless) = (Api::start(), Api::start());
        for route in all_routes() {
            let event = sample(route.at, "192.0.2.1").without_header("idempotency-key");
            if route.key == IdempotencyKey::Honoured {
                let keyed = event.clone().key("k-1").authorized(&authorizer);
                let world = nameless.of(route.at);
                world.engine.take_log();
                world.send(&keyed).await.says(403, "caller_unknown");
                assert_eq!(world.engine.take_counts(), (0, 0), "{keyed:?}");
            }
            let expected = named.of(route.at).send(&event).await;
            let served = nameless.of(route.at).send(&event.authorized(&authorizer)).await;
            assert_eq!((served.status, served.code()), (expected.status, expected.code()), "{}", route.at);
        }
    }
}
