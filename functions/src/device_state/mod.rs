//! The function `device-state`: creates, reads, patches, adjusts, configures and deletes devices exactly once.
//!
//! Reading order: [`ROUTES`], [`handle`], then the decisions in [`device`].

pub mod device;
pub mod requests;

use device::{Device, adjustment_as_add, decide_adjust, decide_config, decide_patch, decide_status};
use fencepost::http::{AddPlan, Items, Problem, Request, Response, Routes};
use fencepost::lambda::env;
use fencepost::timestamp::Timestamp;
use fencepost::{Call, Idempotency, Source, Store, Table};
use requests::{parse_adjustment, parse_device, parse_status, payload_of_adjustment, payload_of_device};
use std::time::Duration;

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

    /// Creates the function from the environment: `DEVICES_TABLE`, `IDEMPOTENCY_RECORDS_TABLE` and
    /// `CONFIG_MIN_INTERVAL_SECONDS` (default 300).
    ///
    /// # Errors
    /// A sentence that names the variable that is missing or wrong.
    pub fn from_env(store: &Store) -> Result<Self, Source> {
        Ok(App::new(
            store.table(env::required("DEVICES_TABLE")?),
            store.idempotency(env::required("IDEMPOTENCY_RECORDS_TABLE")?),
            env::seconds_or("CONFIG_MIN_INTERVAL_SECONDS", 300)?,
        ))
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

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> = &[
    ("PUT /devices/{deviceId}", Route::Create),
    ("GET /devices/{deviceId}", Route::Get),
    ("DELETE /devices/{deviceId}", Route::Delete),
    ("PATCH /devices/{deviceId}/state", Route::PatchState),
    ("POST /devices/{deviceId}/adjustments", Route::Adjust),
    ("PUT /devices/{deviceId}/status", Route::SetStatus),
    ("PUT /devices/{deviceId}/config", Route::SetConfig),
];

/// Answers one request.
///
/// # Errors
/// Returns a [`Problem`] for every response that is not a success.
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, matched) = request.route(ROUTES)?;
    let id = matched.id("deviceId")?;
    match route {
        Route::Create => {
            let device = parse_device(request, app.now())?;
            let create = request.create_request(&matched, &payload_of_device(&device))?;
            app.devices.create(&id, &device, &create, call).await
        }
        Route::Get => app.devices.get(&id, &request.read_preconditions()?, call).await,
        Route::Delete => app.devices.delete(&id, request.delete_request()?, call).await,
        Route::PatchState => {
            let patch = request.merge_patch()?;
            let change = request.change_request(&matched, &patch)?;
            app.devices.change(&id, &change, call, |device| decide_patch(device, &patch, app.now())).await
        }
        Route::Adjust => {
            let adjustment = parse_adjustment(request)?;
            let change = request.change_request(&matched, &payload_of_adjustment(&adjustment))?;
            let add = adjustment_as_add(&adjustment, app.now()).map_or(AddPlan::Decide, AddPlan::Add);
            app.devices
                .add_or_change(&id, &change, call, add, |device| decide_adjust(device, &adjustment, app.now()))
                .await
        }
        Route::SetStatus => {
            let status = parse_status(request)?;
            let change = request.change_request(&matched, &status)?;
            app.devices.change(&id, &change, call, |device| decide_status(device, status, app.now())).await
        }
        Route::SetConfig => {
            let config = request.object()?;
            let change = request.change_request(&matched, &config)?;
            let interval = app.config_min_interval;
            app.devices.change(&id, &change, call, |device| decide_config(device, &config, interval, app.now())).await
        }
    }
}
