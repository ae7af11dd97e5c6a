//! The caller that an authorizer names: a key counts for one caller, and for nobody who has no name.

use super::process;
use super::world::{TABLES, World};
use crate::harness::events::{Event, authorizers_that_name_nobody};
use crate::harness::server::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn a_caller_without_a_name_is_served_but_has_no_keys() {
    for authorizer in authorizers_that_name_nobody() {
        let world = World::new();
        let changes = [
            (Event::create(), 201),
            (Event::patch_state(), 200),
            (Event::adjust(), 200),
            (Event::set_config(), 200),
            (Event::set_status().text(r#"{"status":"offline"}"#), 200),
        ];
        for (event, status) in changes {
            let event = event.authorized(&authorizer);
            world.engine.take_counts();
            world.refused(&event.clone().key("k-1"), 403, "caller_unknown").await;
            assert_eq!(world.engine.take_counts(), (0, 0), "{authorizer}");
            assert_eq!(world.send(&event).await.status, status, "{event:?}");
        }
        world.send(&Event::get().authorized(&authorizer)).await.shows(200, 5);
        let delete = Event::delete().authorized(&authorizer).header("if-match", "*");
        world.bad_input(&delete.clone().key("k-1"), "idempotency_key_unsupported", "header:idempotency-key").await;
        assert_eq!(world.send(&delete).await.status, 204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tenants_of_a_lambda_authorizer_have_keys_of_their_own() {
    let server = Server::start(TABLES).await;
    let process = process::start(&server, &[("AUTHORIZER_CALLER", "tenantId")]).await;
    let create = |tenant: Value, device: &str| {
        Event::create().device(device).key("k-1").authorized(&json!({"lambda": {"tenantId": tenant}}))
    };
    let mut created = Vec::new();
    for (tenant, device) in [(json!("acme"), "lamp-1"), (json!("globex"), "lamp-2"), (json!(7), "lamp-3")] {
        let answer = process.answer(&create(tenant.clone(), device)).await;
        assert_eq!((answer.status, answer.json()["deviceId"].as_str()), (201, Some(device)), "{answer:?}");
        created.push((tenant, device, answer));
    }
    for (tenant, device, first) in created {
        let again = process.answer(&create(tenant, device)).await;
        assert_eq!((again.status, again.is_replay(), &again.body), (201, true, &first.body));
    }
    let nobody = process.answer(&create(json!(""), "lamp-4")).await;
    assert_eq!((nobody.status, nobody.code().as_str()), (403, "caller_unknown"));
}
