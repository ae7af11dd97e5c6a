//! Least privilege: what template.yaml allows a function is what the function does, no less and no more.
//!
//! "No less" is checked after every request of every scenario, "no more" by driving every route through every state.

mod alone;
mod devices;
mod drive;
mod leases;
mod mappings;
mod shop;

use crate::harness::engine::Use;
use crate::harness::permissions::{TEMPLATE, allowed, missing, unused};
use dev::template::Function;
use std::collections::BTreeSet;

/// What a function does; `None` for one with a queue that is not known here yet.
async fn used_by(name: &str) -> Option<BTreeSet<Use>> {
    match name {
        "delete-mapping" => Some(mappings::used().await.1),
        "device-state" => Some(devices::used().await),
        "host-mapping" => Some(mappings::used().await.0),
        "ensure-child" => Some(leases::used().await.1),
        "inventory" => Some(shop::used().await.0),
        "lease" => Some(leases::used().await.0),
        "place-order" => Some(shop::used().await.1),
        other => {
            let function = functions::ALL.iter().find(|function| function.name == other)?;
            if function.routes().is_empty() { None } else { Some(alone::used(function).await) }
        }
    }
}

#[tokio::test]
async fn every_function_may_do_what_it_does_and_nothing_else() {
    let mut complaints = Vec::new();
    for Function { name, .. } in &TEMPLATE.functions {
        let Some(used) = used_by(name).await else {
            complaints
                .push(format!("tests/repository/permissions/mod.rs: hand messages to {name}, to see what it uses"));
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
