//! A key is never ignored: each changing route honours `Idempotency-Key` or refuses it.

use super::files::{Complaints, events, read, routes_in_template, template};
use crate::harness::events::Event;
use crate::harness::functions::{Devices, Functions, Leasing, Mappings, Shop};
use crate::harness::routes::HONOURED;
use crate::harness::world::World;
use serde_json::json;
use std::collections::BTreeSet;

/// The code of the answer of these functions to an event. No table is even asked.
async fn code_of<F: Functions>(event: &Event) -> String {
    let world = World::<F>::new();
    let answer = world.send(event).await;
    assert_eq!(world.engine.take_counts(), (0, 0), "a refused key costs no request");
    answer.code()
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
        let event = Event(event);
        let code = match function.as_str() {
            "device-state" => code_of::<Devices>(&event).await,
            "inventory" | "place-order" => code_of::<Shop>(&event).await,
            "host-mapping" => code_of::<Mappings>(&event).await,
            "lease" | "ensure-child" => code_of::<Leasing>(&event).await,
            other => panic!("tests/repository/idempotency_keys.rs: say how {other} is driven"),
        };
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
