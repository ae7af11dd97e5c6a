//! Least privilege: what template.yaml allows a function is what the function does, no less and no more.
//!
//! "No less" is checked after every request of every scenario, "no more" by driving every route through every state.

mod leases;
mod mappings;
mod shop;

use crate::devices::world::{Event, World};
use crate::harness::engine::Use;
use dev::template::{Function, Template};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static TEMPLATE: LazyLock<Template> =
    LazyLock::new(|| Template::load(dev::workspace()).unwrap_or_else(|failure| panic!("{failure}")));

/// The operations that the template allows a function. Outside AWS a table is called by its logical id.
fn allowed(name: &str) -> BTreeSet<Use> {
    let allowed_to = |function: &Function| {
        let of_dynamodb = function.permissions.iter().filter_map(|permission| {
            let operation = permission.action.strip_prefix("dynamodb:")?.to_owned();
            Some(Use { operation, table: permission.resource.clone() })
        });
        of_dynamodb.collect::<BTreeSet<_>>()
    };
    TEMPLATE.functions.iter().filter(|function| function.name == name).flat_map(allowed_to).collect()
}

/// What a function does although it may not.
fn missing(name: &str, allowed: &BTreeSet<Use>, used: &BTreeSet<Use>) -> Vec<String> {
    let missing = used.difference(allowed);
    missing
        .map(|Use { operation, table }| {
            format!("template.yaml: {name} does dynamodb:{operation} on {table}, which its Policies do not allow")
        })
        .collect()
}

/// What a function may do although it never does.
fn unused(name: &str, allowed: &BTreeSet<Use>, used: &BTreeSet<Use>) -> Vec<String> {
    let unused = allowed.difference(used);
    unused
        .map(|Use { operation, table }| {
            format!(
                "template.yaml: {name} was never seen to do dynamodb:{operation} on {table}; drive the state that needs it \
                 (a key's repeat, its expired record, a keyed change that changes nothing), or take it out of its Policies"
            )
        })
        .collect()
}

/// Fails where a function did what the template does not allow it.
pub fn assert_allowed(name: &str, used: &BTreeSet<Use>) {
    let complaints = missing(name, &allowed(name), used);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// What a function does; `None` for one that is not known here yet.
async fn used_by(name: &str) -> Option<BTreeSet<Use>> {
    match name {
        "delete-mapping" => Some(mappings::used().await.1),
        "device-state" => Some(used_by_device_state().await),
        "host-mapping" => Some(mappings::used().await.0),
        "ensure-child" => Some(leases::used().await.1),
        "inventory" => Some(shop::used().await.0),
        "lease" => Some(leases::used().await.0),
        "place-order" => Some(shop::used().await.1),
        _ => None,
    }
}

/// What device-state does: every route on a device that never was, one that is and one that was deleted.
async fn used_by_device_state() -> BTreeSet<Use> {
    let world = World::new();
    let mut succeeded = BTreeSet::new();
    for (number, event) in Event::changes().into_iter().chain([Event::create(), Event::get()]).enumerate() {
        for state in ["absent", "live", "deleted"] {
            let id = format!("{state}-{number}");
            if state != "absent" {
                assert_eq!(world.send(&Event::create().device(&id)).await.status, 201);
            }
            if state == "deleted" {
                assert_eq!(world.send(&Event::delete().device(&id).header("if-match", "*")).await.status, 204);
            }
            let event = event.clone().device(&id);
            for event in [event.clone(), event.header("if-match", "*")] {
                if world.send(&event).await.status < 300 {
                    succeeded.insert(event.0["routeKey"].as_str().expect("a route").to_owned());
                }
            }
        }
    }
    drive_keyed_changes(&world).await;
    let routes = device_state::ROUTES.iter().map(|(route, _)| (*route).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(succeeded, routes, "every route was seen to do its work");
    world.engine.uses()
}

/// What a key adds: a first request, a repeat, a refusal, a change that changes nothing, and a record that has expired.
async fn drive_keyed_changes(world: &World) {
    let keep = Event::adjust().text(r#"{"attribute":"brightness","by":0}"#);
    for hours in [0, 26] {
        world.pass(hours * 3_600_000);
        for (event, key, status) in [
            (Event::create(), "created", if hours == 0 { 201 } else { 409 }),
            (Event::create(), "refused", 409),
            (Event::adjust(), "changed", 200),
            (Event::adjust(), "changed", 200),
            (keep.clone(), "kept", 200),
        ] {
            let answer = world.send(&event.device("keyed").key(key)).await;
            assert_eq!(answer.status, status, "{key}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn every_function_may_do_what_it_does_and_nothing_else() {
    let mut complaints = Vec::new();
    for Function { name, .. } in &TEMPLATE.functions {
        let Some(used) = used_by(name).await else {
            complaints.push(format!(
                "tests/repository/permissions/mod.rs: used_by does not know {name}; drive every route of it in a file beside"
            ));
            continue;
        };
        complaints.extend(missing(name, &allowed(name), &used));
        complaints.extend(unused(name, &allowed(name), &used));
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_permission_too_few_and_one_too_many_are_named() {
    let uses = |operations: &[&str]| -> BTreeSet<Use> {
        let on_devices = |operation: &&str| Use { operation: (*operation).to_owned(), table: "Devices".to_owned() };
        operations.iter().map(on_devices).collect()
    };
    let used = uses(&["GetItem", "PutItem", "UpdateItem"]);
    let said = |allowed: &[&str]| (missing("f", &uses(allowed), &used), unused("f", &uses(allowed), &used));
    assert_eq!(said(&["GetItem", "PutItem", "UpdateItem"]), (vec![], vec![]));
    let removed = "template.yaml: f does dynamodb:PutItem on Devices, which its Policies do not allow";
    assert_eq!(said(&["GetItem", "UpdateItem"]), (vec![removed.to_owned()], vec![]));
    let (missing, unused) = said(&["DeleteItem", "GetItem", "PutItem", "UpdateItem"]);
    assert!(missing.is_empty() && unused.len() == 1);
    assert!(
        unused[0].starts_with("template.yaml: f was never seen to do dynamodb:DeleteItem on Devices;"),
        "{unused:?}"
    );
    let (missing, unused) = said(&["*"]);
    assert_eq!((missing.len(), unused.len()), (3, 1), "a wildcard allows nothing that could be checked");
}
