//! The routes of the functions, for tests that need a statement about each.

use functions::operation::{IdempotencyKey, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// The routes of each HTTP function, from its code. A function without HTTP routes is not listed.
pub fn routes_in_code() -> BTreeMap<&'static str, BTreeSet<String>> {
    let of = |function: &functions::function::Function| -> BTreeSet<String> {
        function.routes().iter().map(|route| route.at.to_owned()).collect()
    };
    let all = functions::ALL.iter().map(|function| (function.name, of(function)));
    all.filter(|(_, routes)| !routes.is_empty()).collect()
}

/// Every route of every function.
pub fn all_routes() -> impl Iterator<Item = Operation> {
    functions::ALL.iter().flat_map(functions::function::Function::routes)
}

/// Whether a route honours an idempotency key. All other changing routes refuse it.
pub fn honours_key(route: &str) -> bool {
    all_routes().any(|known| known.at == route && known.key == IdempotencyKey::Honoured)
}
