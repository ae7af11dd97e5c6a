//! A key is never ignored: each changing route honours `Idempotency-Key` or refuses it.

use super::files::{Complaints, events, read, routes_in_template, template};
use crate::harness::engine::{Engine, store};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use fencepost::Store;
use fencepost::lambda::respond;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// The routes that honour a key. All other changing routes refuse it.
const HONOURED: &[&str] = &[
    "PATCH /devices/{deviceId}/state",
    "POST /devices/{deviceId}/adjustments",
    "POST /orders",
    "POST /products/{productId}/adjustments",
    "PUT /devices/{deviceId}",
    "PUT /devices/{deviceId}/config",
    "PUT /devices/{deviceId}/status",
    "PUT /leases/{leaseKey}",
];

/// The code of the answer to an event, on tables without items. No table is even asked.
async fn code_of(function: &str, event: &Value) -> String {
    let engine = Engine::with_tables(&[]);
    let now = || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    let store: Store = store(&engine.client(), now, || 7);
    let payload: ApiGatewayV2httpRequest = serde_json::from_value(event.clone()).expect("an event");
    let event = LambdaEvent::new(payload, Context::default());
    let answer = match function {
        "device-state" => {
            let app = device_state::App::new(store.table("D"), store.idempotency("R"), Duration::from_mins(5));
            Box::pin(respond(&app, &device_state::handle, event)).await
        }
        "inventory" => {
            let app = inventory::App::new(store.table("P"), store.idempotency("R"));
            Box::pin(respond(&app, &inventory::handle, event)).await
        }
        "place-order" => {
            let app = place_order::App::new(store.table("O"), store.table("P"));
            Box::pin(respond(&app, &place_order::handle, event)).await
        }
        "host-mapping" => {
            let app = host_mapping::App::new(store.lww_table("H"));
            Box::pin(respond(&app, &host_mapping::handle, event)).await
        }
        "lease" => {
            let app = lease::App::new(store.leases("L"));
            Box::pin(respond(&app, &lease::handle, event)).await
        }
        "ensure-child" => {
            let app = ensure_child::App::new(store.table("C"), store.leases("L"));
            Box::pin(respond(&app, &ensure_child::handle, event)).await
        }
        other => panic!("tests/repository/idempotency_keys.rs: say how {other} is driven"),
    };
    assert_eq!(engine.take_counts(), (0, 0), "a refused key costs no request");
    let body = serde_json::to_value(&answer).expect("an answer")["body"].as_str().unwrap_or_default().to_owned();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    body["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn each_changing_route_honours_an_idempotency_key_or_refuses_it() {
    let mut found = Complaints::default();
    for (file, event) in events() {
        let Some(route) = event["routeKey"].as_str().filter(|route| !route.starts_with("GET ")) else { continue };
        let owner = template().functions.into_iter().find(|function| {
            let routes: BTreeSet<String> =
                function.routes.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
            routes.contains(route)
        });
        let function = owner.unwrap_or_else(|| panic!("{file}: no function has {route}")).name;
        // A malformed key: a route that honours keys reads it, and one that does not refuses any.
        let mut event = event.clone();
        event["headers"]["idempotency-key"] = json!("two words");
        let expected =
            if HONOURED.contains(&route) { "invalid_idempotency_key" } else { "idempotency_key_unsupported" };
        let code = code_of(&function, &event).await;
        found.unless(code == expected, || format!("{route}: a key is answered `{code}`, not `{expected}`"));
    }
    found.report();
}

#[test]
fn the_page_about_http_lists_which_routes_honour_a_key_and_which_refuse_it() {
    let page = read("docs/http-api.md");
    let template = template();
    let rows: Vec<(&str, &str)> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once(" | `")).collect();
    let listed = |honours: bool, route: &str| {
        let named =
            |(left, right): &(&str, &str)| if honours { left.starts_with(route) } else { right.starts_with(route) };
        rows.iter().any(|row| named(row) && row.1.contains('`'))
    };
    let mut missing = Complaints::default();
    for function in &template.functions {
        for route in routes_in_template(&template, &function.name) {
            if !route.starts_with("GET ") {
                let honours = HONOURED.contains(&route.as_str());
                let column = if honours { "honoured by" } else { "refused by" };
                missing.unless(listed(honours, &format!("{route}`")), || {
                    format!("docs/http-api.md, Idempotency-Key: {route} is not in the column `{column}`")
                });
            }
        }
    }
    missing.report();
}
