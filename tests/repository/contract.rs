//! A `docs/openapi.yaml` that says too little is noticed. All other tests compare their answers with it.

use crate::devices::world::World;
use crate::harness::answers::Answer;
use crate::harness::contract::Contract;
use crate::harness::events::Event;
use dev::openapi;
use serde_json::{Value, json};

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
    let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    // The path, the method, a node, and what stands there instead. Null removes it.
    let mutilations = [
        ("/devices/{deviceId}", "put", "/responses/201", Value::Null),
        ("/devices/{deviceId}", "get", "/responses", Value::Null),
        ("/devices/{deviceId}", "delete", "/responses/204", response("NotModified")),
        ("/devices/{deviceId}/state", "patch", "/responses/412", response("KeyReused")),
        ("/devices/{deviceId}/adjustments", "post", "/responses/400", response("TooLarge")),
        ("/devices/{deviceId}/status", "put", "/responses/200/content/application~1json/schema", schema("Product")),
        ("/devices/{deviceId}/config", "put", "/responses/409/headers", Value::Null),
        ("/devices/{deviceId}/config", "put", "/requestBody/content/application~1json/schema", schema("Product")),
    ];
    for (path, method, node, instead) in mutilations {
        let mut mutilated = document.clone();
        *mutilated["paths"][path][method].pointer_mut(node).expect("it is described") = instead;
        assert_eq!(undescribed(mutilated), [format!("{} {path}", method.to_uppercase())], "{node}");
    }
}
