//! The routes of the functions, for what must say something of each.

use std::collections::{BTreeMap, BTreeSet};

/// The routes that each HTTP function says it answers. A function without HTTP routes is not listed.
pub fn routes_in_code() -> BTreeMap<&'static str, BTreeSet<String>> {
    fn routes<R>(routes: &[(&'static str, R)]) -> BTreeSet<String> {
        routes.iter().map(|(route, _)| (*route).to_owned()).collect()
    }
    BTreeMap::from([
        ("device-state", routes(functions::device_state::ROUTES)),
        ("ensure-child", routes(functions::ensure_child::ROUTES)),
        ("host-mapping", routes(functions::host_mapping::ROUTES)),
        ("inventory", routes(functions::inventory::ROUTES)),
        ("lease", routes(functions::lease::ROUTES)),
        ("place-order", routes(functions::place_order::ROUTES)),
    ])
}

/// The routes that honour an idempotency key. All other changing routes refuse it.
pub const HONOURED: &[&str] = &[
    "PATCH /devices/{deviceId}/state",
    "POST /devices/{deviceId}/adjustments",
    "POST /orders",
    "POST /products/{productId}/adjustments",
    "PUT /devices/{deviceId}",
    "PUT /devices/{deviceId}/config",
    "PUT /devices/{deviceId}/status",
    "PUT /leases/{leaseKey}",
];
