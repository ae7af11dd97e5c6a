//! The permissions of a function in template.yaml, compared with its actions.

use super::engine::Use;
use dev::template::{Function, Template};
use std::collections::BTreeSet;
use std::sync::LazyLock;

pub static TEMPLATE: LazyLock<Template> =
    LazyLock::new(|| Template::load(dev::workspace()).unwrap_or_else(|failure| panic!("{failure}")));

/// The operations allowed to a function by the template. Outside AWS a table is called by its logical id.
pub fn allowed(name: &str) -> BTreeSet<Use> {
    let allowed_to = |function: &Function| {
        let of_dynamodb = function.permissions.iter().filter_map(|permission| {
            let operation = permission.action.strip_prefix("dynamodb:")?.to_owned();
            Some(Use { operation, table: permission.resource.clone() })
        });
        of_dynamodb.collect::<BTreeSet<_>>()
    };
    TEMPLATE.functions.iter().filter(|function| function.name == name).flat_map(allowed_to).collect()
}

/// Each action that was taken without permission.
pub fn missing(name: &str, allowed: &BTreeSet<Use>, used: &BTreeSet<Use>) -> Vec<String> {
    let missing = used.difference(allowed);
    missing
        .map(|Use { operation, table }| {
            format!("template.yaml: {name} does dynamodb:{operation} on {table}, which its Policies do not allow")
        })
        .collect()
}

/// Each permission that was never used.
pub fn unused(name: &str, allowed: &BTreeSet<Use>, used: &BTreeSet<Use>) -> Vec<String> {
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

/// Fails on an action that the template allows to none of these functions.
pub fn assert_allowed(names: &[&str], used: &BTreeSet<Use>) {
    let allowed = names.iter().flat_map(|name| allowed(name)).collect();
    let complaints = missing(&names.join(" or "), &allowed, used);
    assert!(complaints.is_empty(), "{complaints:#?}");
}
