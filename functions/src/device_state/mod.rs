//! The function `device-state`: creates, reads, patches, adjusts, configures and deletes devices exactly once.
//!
//! Reading order: [`FUNCTION`], its routes and their handlers, then the decisions in [`device`], and the same as edits.

pub mod device;
mod edits;
pub mod requests;

use crate::function::{
    Environment, Event, Function, IDEMPOTENCY_RECORDS_TABLE, Route, Variable, handled, listed, routed,
};
use crate::operation::{Conditions, NUMBER, OWN_NAMES, Operation, RETRY_AFTER};
use axum::Router;
use device::{DEVICE, Device, decide_adjust, decide_config, decide_patch, decide_status};
use edits::{adjustment_as_edit, config_as_edit, patch_as_edit, status_as_edit};
use fencepost::http::{Items, Problem, Request, Resource, Response};
use fencepost::{Call, Idempotency, Source, Store, Table, Timestamp};
use requests::{
    ADJUSTMENT, NEW_DEVICE, NEW_STATUS, parse_adjustment, parse_device, parse_status, payload_of_adjustment,
    payload_of_device,
};
use std::time::Duration;

/// The function.
pub const FUNCTION: Function = Function {
    name: "device-state",
    event: Event::Http {
        tag: ("devices", "State that many callers update."),
        routes: || listed(ROUTES),
        start: App::router,
    },
    variables: &[DEVICES_TABLE, IDEMPOTENCY_RECORDS_TABLE, CONFIG_MIN_INTERVAL_SECONDS],
};

/// The table of devices.
const DEVICES_TABLE: Variable = Variable::table("DEVICES_TABLE", "the table of devices");

/// The least time between two changes of the configuration of a device.
const CONFIG_MIN_INTERVAL_SECONDS: Variable =
    Variable::seconds("CONFIG_MIN_INTERVAL_SECONDS", 300, "seconds between two changes of one device's config");

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    devices: Items<Device>,
    config_min_interval: Duration,
}

impl App {
    /// Creates the function on these tables.
    #[must_use]
    pub fn new(devices: Table<Device>, records: Idempotency<Response>, config_min_interval: Duration) -> Self {
        App { devices: Items::with_idempotency(devices, records), config_min_interval }
    }

    /// The router of the function, which reads this environment.
    pub fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
        Ok(routed(
            App::new(
                store.table(DEVICES_TABLE.required(environment)?),
                store.idempotency(IDEMPOTENCY_RECORDS_TABLE.required(environment)?),
                CONFIG_MIN_INTERVAL_SECONDS.read_seconds(environment)?,
            ),
            ROUTES,
        ))
    }

    fn now(&self) -> Timestamp {
        self.devices.now()
    }
}

const ROUTES: &[Route<App>] = &[
    handled!(
        create_device,
        Operation::changes_once("PUT /devices/{deviceId}", "Creates a device.")
            .conditions(Conditions::Create)
            .takes(NEW_DEVICE)
            .creates(DEVICE)
            .refuses(&[Device::EXISTS.0], Device::EXISTS.1, &[])
    ),
    handled!(
        get_device,
        Operation::reads("GET /devices/{deviceId}", "Shows a device.").shows(DEVICE).missing(Device::NOT_FOUND)
    ),
    handled!(
        delete_device,
        Operation::changes("DELETE /devices/{deviceId}", "Deletes the version in `If-Match`, or any version with `*`.")
            .conditions(Conditions::ChangeKnown)
            .missing(Device::NOT_FOUND)
    ),
    handled!(
        patch_state,
        change(
            "PATCH /devices/{deviceId}/state",
            "Merges a patch into the state (RFC 7396). A patch that changes nothing keeps the version."
        )
        .takes(OWN_NAMES)
    ),
    handled!(
        adjust_device,
        change("POST /devices/{deviceId}/adjustments", "Adds to one number of the state, within limits.")
            .described("Without a key, without `If-Match` and without `clamp`, an adjustment demands no version.")
            .takes(ADJUSTMENT)
            .refuses(
                &["limit_reached", "not_a_number", "not_representable"],
                "the number would pass a limit (`current` is its value), is no number, or has too many digits",
                &[("current?", NUMBER)]
            )
    ),
    handled!(set_status, change("PUT /devices/{deviceId}/status", "Sets the status.").takes(NEW_STATUS)),
    handled!(
        set_config,
        change(
            "PUT /devices/{deviceId}/config",
            "Replaces the configuration, while the device is online and not too soon after the last change (300 s by \
             default)."
        )
        .takes(OWN_NAMES)
        .refuses(
            &["device_offline", "changed_too_recently"],
            "the device is offline, or its configuration was changed too recently",
            &[RETRY_AFTER]
        )
    ),
];

/// A change of a device that exists.
const fn change(at: &'static str, summary: &'static str) -> Operation {
    Operation::changes_once(at, summary).conditions(Conditions::Change).shows(DEVICE).missing(Device::NOT_FOUND)
}

/// Creates a device.
pub async fn create_device(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("deviceId")?;
    let device = parse_device(request, app.now())?;
    let create = request.create_request(&payload_of_device(&device))?;
    app.devices.in_call(call).create(&id, &device, &create).await
}

/// Shows a device.
pub async fn get_device(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    app.devices.in_call(call).get(&request.id("deviceId")?, &request.read_preconditions()?).await
}

/// Deletes a device at the version that the client knows.
pub async fn delete_device(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    app.devices.in_call(call).delete(&request.id("deviceId")?, request.delete_request()?).await
}

/// Merges a patch into the state.
pub async fn patch_state(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("deviceId")?;
    let patch = request.merge_patch()?;
    let change = request.change_request(&patch)?;
    let decide = |device: &Device| decide_patch(device, &patch, app.now());
    let edit = || patch_as_edit(&patch, app.now());
    app.devices.in_call(call).edit_or_change(&id, &change, edit, decide).await
}

/// Adds to a number of the state.
pub async fn adjust_device(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("deviceId")?;
    let adjustment = parse_adjustment(request)?;
    let change = request.change_request(&payload_of_adjustment(&adjustment))?;
    let edit = || adjustment_as_edit(&adjustment, app.now());
    let decide = |device: &Device| decide_adjust(device, &adjustment, app.now());
    app.devices.in_call(call).edit_or_change(&id, &change, edit, decide).await
}

/// Sets the status.
pub async fn set_status(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("deviceId")?;
    let status = parse_status(request)?;
    let change = request.change_request(&status)?;
    let edit = || Some(status_as_edit(status, app.now()));
    let decide = |device: &Device| decide_status(device, status, app.now());
    app.devices.in_call(call).edit_or_change(&id, &change, edit, decide).await
}

/// Replaces the configuration.
pub async fn set_config(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("deviceId")?;
    let config = request.object()?;
    let change = request.change_request(&config)?;
    let edit = || config_as_edit(&config, app.config_min_interval, app.now());
    let decide = |device: &Device| decide_config(device, &config, app.config_min_interval, app.now());
    app.devices.in_call(call).edit_or_change(&id, &change, edit, decide).await
}
