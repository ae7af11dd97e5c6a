//! The function `device-state`: creates, reads, patches, adjusts, configures and deletes devices exactly once.
//!
//! Reading order: [`FUNCTION`], [`handle`], then the decisions in [`device`].

pub mod device;
pub mod requests;

use crate::function::{
    Environment, Event, Function, IDEMPOTENCY_RECORDS_TABLE, Routes, Variable, honours_key, listed, reads, refuses_key,
    routed,
};
use axum::Router;
use device::{Device, adjustment_as_add, decide_adjust, decide_config, decide_patch, decide_status};
use fencepost::http::{Items, Problem, Request, Response};
use fencepost::{Call, Idempotency, Source, Store, Table, Timestamp};
use requests::{parse_adjustment, parse_device, parse_status, payload_of_adjustment, payload_of_device};
use std::time::Duration;

/// The function.
pub const FUNCTION: Function = Function {
    name: "device-state",
    event: Event::Http {
        routes: || listed(ROUTES),
        start: |store, environment| Ok(App::from_env(store, environment)?.into_router()),
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

    /// Creates the function from its environment.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing or wrong.
    pub fn from_env(store: &Store, environment: &Environment) -> Result<Self, Source> {
        Ok(App::new(
            store.table(DEVICES_TABLE.required(environment)?),
            store.idempotency(IDEMPOTENCY_RECORDS_TABLE.required(environment)?),
            CONFIG_MIN_INTERVAL_SECONDS.read_seconds(environment)?,
        ))
    }

    /// The router of the function.
    pub fn into_router(self) -> Router {
        routed(self, ROUTES, |app, route, request, call| Box::pin(handle(app, route, request, call)))
    }

    fn now(&self) -> Timestamp {
        self.devices.now()
    }
}

/// The operations of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Create a device.
    Create,
    /// Show a device.
    Get,
    /// Delete a device at the version that the client knows.
    Delete,
    /// Merge a patch into the state.
    PatchState,
    /// Add to a number of the state.
    Adjust,
    /// Set the status.
    SetStatus,
    /// Replace the configuration.
    SetConfig,
}

const ROUTES: &Routes<Route> = &[
    ("PUT /devices/{deviceId}", honours_key(Route::Create)),
    ("GET /devices/{deviceId}", reads(Route::Get)),
    ("DELETE /devices/{deviceId}", refuses_key(Route::Delete)),
    ("PATCH /devices/{deviceId}/state", honours_key(Route::PatchState)),
    ("POST /devices/{deviceId}/adjustments", honours_key(Route::Adjust)),
    ("PUT /devices/{deviceId}/status", honours_key(Route::SetStatus)),
    ("PUT /devices/{deviceId}/config", honours_key(Route::SetConfig)),
];

/// Answers a request for this operation.
///
/// # Errors
/// Returns a [`Problem`] for every response that is not a success.
pub async fn handle(app: &App, operation: Route, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("deviceId")?;
    let devices = app.devices.in_call(call);
    match operation {
        Route::Create => {
            let device = parse_device(request, app.now())?;
            let create = request.create_request(&payload_of_device(&device))?;
            devices.create(&id, &device, &create).await
        }
        Route::Get => devices.get(&id, &request.read_preconditions()?).await,
        Route::Delete => devices.delete(&id, request.delete_request()?).await,
        Route::PatchState => {
            let patch = request.merge_patch()?;
            let change = request.change_request(&patch)?;
            devices.change(&id, &change, |device| decide_patch(device, &patch, app.now())).await
        }
        Route::Adjust => {
            let adjustment = parse_adjustment(request)?;
            let change = request.change_request(&payload_of_adjustment(&adjustment))?;
            let add = adjustment_as_add(&adjustment, app.now());
            devices.add_or_change(&id, &change, add, |device| decide_adjust(device, &adjustment, app.now())).await
        }
        Route::SetStatus => {
            let status = parse_status(request)?;
            let change = request.change_request(&status)?;
            devices.change(&id, &change, |device| decide_status(device, status, app.now())).await
        }
        Route::SetConfig => {
            let config = request.object()?;
            let change = request.change_request(&config)?;
            let interval = app.config_min_interval;
            devices.change(&id, &change, |device| decide_config(device, &config, interval, app.now())).await
        }
    }
}
