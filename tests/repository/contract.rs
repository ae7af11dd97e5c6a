//! `docs/openapi.yaml` against the template, the events and the routes. All other tests compare their answers with it.

use super::files::{Complaints, events, routes_in_template, template};
use crate::devices::world::World;
use crate::harness::answers::Answer;
use crate::harness::contract::{Contract, resolve};
use crate::harness::events::Event;
use crate::harness::routes::honours_key;
use dev::openapi;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Each operation of the document with its route, such as `PUT /devices/{deviceId}`.
fn operations(document: &Value) -> Vec<(String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("a path").iter().filter(|(name, _)| *name != "parameters") {
            let mut operation = operation.clone();
            let of_path = item["parameters"].as_array().cloned().unwrap_or_default();
            let own = operation["parameters"].as_array().cloned().unwrap_or_default();
            let all: Vec<_> = of_path.iter().chain(&own).map(|node| resolve(document, node).clone()).collect();
            operation["parameters"] = json!(all);
            operations.push((format!("{} {path}", method.to_uppercase()), operation));
        }
    }
    operations
}

#[test]
fn the_document_describes_the_routes_of_the_template_and_no_others() {
    let template = template();
    let routes: BTreeSet<String> =
        template.functions.iter().flat_map(|function| routes_in_template(&template, &function.name)).collect();
    let described: BTreeSet<String> = operations(&openapi::document()).into_iter().map(|(route, _)| route).collect();
    assert_eq!(described, routes);
}

#[test]
fn the_parameters_of_a_route_are_those_of_its_path_and_the_key_if_it_honours_one() {
    let mut found = Complaints::default();
    for (route, operation) in operations(&openapi::document()) {
        let parameters = operation["parameters"].as_array().expect("parameters").clone();
        let named = |place: &str| -> BTreeSet<String> {
            let of_place = parameters.iter().filter(|parameter| parameter["in"] == place);
            of_place.map(|parameter| parameter["name"].as_str().expect("a name").to_owned()).collect()
        };
        let in_path: BTreeSet<String> =
            route.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0.to_owned())).collect();
        found.unless(named("path") == in_path, || format!("{route}: describe the path parameters {in_path:?}"));
        let takes_key = named("header").contains("Idempotency-Key");
        found.unless(takes_key == honours_key(&route), || format!("{route}: a key is described wrongly"));
    }
    found.report();
}

#[test]
fn the_example_of_a_body_is_that_of_an_event() {
    let mut found = Complaints::default();
    for (route, operation) in operations(&openapi::document()) {
        let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
        let bodies: Vec<Value> = events()
            .values()
            .filter(|event| event["routeKey"] == json!(route))
            .filter_map(|event| serde_json::from_str(event["body"].as_str()?).ok())
            .collect();
        for (media_type, body) in content.iter().filter(|(_, body)| !bodies.is_empty() || body.get("example").is_some())
        {
            found.unless(bodies.contains(&body["example"]), || {
                format!("{route}, {media_type}: the example is the body of no event in events/")
            });
        }
    }
    found.report();
}

/// Answers of each route of `device-state`.
async fn answers() -> Vec<(Event, Answer)> {
    let world = World::new();
    let events = [
        (Event::create(), 201),
        (Event::get(), 200),
        (Event::set_status(), 200),
        (Event::set_config(), 200),
        (Event::set_config().text(r#"{"fadeMs":1}"#), 409),
        (Event::patch_state().header("if-match", "\"9.AAAAAAAAAAA\""), 412),
        (Event::adjust().text("{"), 400),
        (Event::delete().header("if-match", "*"), 204),
    ];
    let mut answers = Vec::new();
    for (event, status) in events {
        let answer = world.send(&event).await;
        assert_eq!(answer.status, status, "{answer:?}");
        answers.push((event, answer));
    }
    answers
}

#[tokio::test]
async fn a_route_that_is_mutilated_in_the_document_is_noticed() {
    let answers = answers().await;
    let undescribed = |document: Value| {
        let contract = Contract::of(document);
        let routes = answers.iter().filter(|(event, answer)| contract.check(event, answer).is_err());
        routes.map(|(event, _)| event.0["routeKey"].as_str().expect("a route").to_owned()).collect::<Vec<_>>()
    };
    let document = openapi::document();
    assert!(undescribed(document.clone()).is_empty());
    let response = |name: &str| json!({"$ref": format!("#/components/responses/{name}")});
    // The path, the method, a node of its responses, and what stands there instead. Null removes it.
    let mutilations = [
        ("/devices/{deviceId}", "put", "/201", Value::Null),
        ("/devices/{deviceId}", "get", "", Value::Null),
        ("/devices/{deviceId}", "delete", "/204", response("Device")),
        ("/devices/{deviceId}/state", "patch", "/412", response("KeyReused")),
        ("/devices/{deviceId}/adjustments", "post", "/400", response("TooLarge")),
        ("/devices/{deviceId}/status", "put", "/200", response("Product")),
        ("/devices/{deviceId}/config", "put", "/409/headers", Value::Null),
    ];
    for (path, method, node, instead) in mutilations {
        let mut mutilated = document.clone();
        let responses = &mut mutilated["paths"][path][method]["responses"];
        *responses.pointer_mut(node).expect("it is described") = instead;
        assert_eq!(undescribed(mutilated), [format!("{} {path}", method.to_uppercase())], "{node}");
    }
}
