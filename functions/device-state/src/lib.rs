//! The state of devices: created, read, patched, adjusted, configured and deleted, exactly once.
//!
//! Reading order: [`ROUTES`], [`handle`], one route's function, then its decision in [`device`].

pub mod device;
pub mod requests;

use aws_sdk_dynamodb::Client;
use device::{Device, Refusal, decide_adjust, decide_config, decide_patch, decide_status, show};
use fencepost::http::{IfMatch, Problem, Response};
use fencepost::once::Once;
use fencepost::request::{Id, Request, Routes};
use fencepost::timestamp::Timestamp;
use fencepost::transact::{Plan, Reads, Transactions};
use fencepost::{
    Call, CreateError, Decision, DeleteError, ItemVersion, Key, Source, Table, UpdateError, Versioned,
    VersionedUpdateError,
};
use requests::{parse_adjustment, parse_device, parse_status, payload_of_adjustment, payload_of_device};
use serde_json::Value;
use std::time::Duration;

/// What the function keeps between requests.
#[derive(Debug)]
pub struct App {
    devices: Table<Device>,
    once: Once,
    config_min_interval: Duration,
}

impl App {
    /// A function on this table, whose clock is the table's; `once` makes the changes that have an idempotency key.
    #[must_use]
    pub fn new(devices: Table<Device>, once: Once, config_min_interval: Duration) -> Self {
        App { devices, once, config_min_interval }
    }

    /// As the environment says: `DEVICES_TABLE`, `IDEMPOTENCY_RECORDS_TABLE` and `CONFIG_MIN_INTERVAL_SECONDS`
    /// (default 300).
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let devices = std::env::var("DEVICES_TABLE").map_err(|_| "DEVICES_TABLE must name the table of devices")?;
        let records = std::env::var("IDEMPOTENCY_RECORDS_TABLE")
            .map_err(|_| "IDEMPOTENCY_RECORDS_TABLE must name the table of idempotency records")?;
        let seconds = match std::env::var("CONFIG_MIN_INTERVAL_SECONDS") {
            Ok(text) => text.parse().map_err(|_| "CONFIG_MIN_INTERVAL_SECONDS must be a whole number of seconds")?,
            Err(_) => 300,
        };
        let once = Once::new(Transactions::new(client), Table::new(client, records));
        Ok(App::new(Table::new(client, devices), once, Duration::from_secs(seconds)))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.devices.ambient().now())
    }
}

/// What the function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Create a device.
    Create,
    /// Show a device.
    Get,
    /// Delete a device, at the version that the client knows.
    Delete,
    /// Merge a patch into its state.
    PatchState,
    /// Add to a number of its state.
    Adjust,
    /// Set its status.
    SetStatus,
    /// Replace its configuration.
    SetConfig,
}

const CREATE: &str = "PUT /devices/{deviceId}";
const ADJUST: &str = "POST /devices/{deviceId}/adjustments";

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> = &[
    (CREATE, Route::Create),
    ("GET /devices/{deviceId}", Route::Get),
    ("DELETE /devices/{deviceId}", Route::Delete),
    ("PATCH /devices/{deviceId}/state", Route::PatchState),
    (ADJUST, Route::Adjust),
    ("PUT /devices/{deviceId}/status", Route::SetStatus),
    ("PUT /devices/{deviceId}/config", Route::SetConfig),
];

/// Answers one request.
///
/// # Errors
/// Every answer that is not the one hoped for is a [`Problem`].
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, parameters) = request.route(ROUTES)?;
    let id = parameters.id("deviceId")?;
    match route {
        Route::Create => create(app, &id, request, call).await,
        Route::Get => get(app, &id, request, call).await,
        Route::Delete => delete(app, &id, request, call).await,
        Route::PatchState => {
            let patch = request.merge_patch()?;
            change(app, &id, request, call, |device| decide_patch(device, &patch, app.now())).await
        }
        Route::Adjust => {
            let adjustment = parse_adjustment(request)?;
            let decide = |device: &Device| decide_adjust(device, &adjustment, app.now());
            match request.idempotency_key()? {
                None => change(app, &id, request, call, decide).await,
                Some(key) => {
                    let payload = payload_of_adjustment(&adjustment);
                    change_once(app, &id, request, call, Keyed { route: ADJUST, key, payload }, decide).await
                }
            }
        }
        Route::SetStatus => {
            let status = parse_status(request)?;
            change(app, &id, request, call, |device| decide_status(device, status, app.now())).await
        }
        Route::SetConfig => {
            let config = request.object()?;
            let interval = app.config_min_interval;
            change(app, &id, request, call, |device| decide_config(device, &config, interval, app.now())).await
        }
    }
}

async fn create(app: &App, id: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let if_absent = request.if_absent()?;
    let device = parse_device(request, app.now())?;
    if let Some(key) = request.idempotency_key()? {
        let payload = payload_of_device(&device);
        return keyed(app, id, request, call, Keyed { route: CREATE, key, payload }, |current| match current {
            None => Decision::Put(device.clone()),
            Some(current) => Decision::Refuse(exists(current.at, if_absent)),
        })
        .await;
    }
    match app.devices.create(&Key::from(id.as_str()), &device, call).await {
        Ok(created) => Ok(show_created(id, &created)),
        Err(CreateError::Exists(current)) => Err(exists(current.at, if_absent)),
        Err(CreateError::Failed(failure)) => Err(failure.into()),
    }
}

fn show_created(id: &Id, created: &Versioned<Device>) -> Response {
    Response::created(format!("/devices/{id}"), created.at, &show(id, created))
}

/// The key is taken: a failed condition where the client made it one, else a refusal.
fn exists(current: ItemVersion, if_absent: bool) -> Problem {
    if if_absent {
        Problem::version_conflict(current)
    } else {
        Problem::refused("device_exists", "there is a device with this id")
    }
}

async fn get(app: &App, id: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (if_match, if_none_match) = request.read_conditions()?;
    let device = app.devices.get(&Key::from(id.as_str()), call).await?.ok_or_else(not_found)?;
    if_match.check(device.at)?;
    if if_none_match.matches(device.at) {
        return Ok(Response::not_modified(device.at));
    }
    Ok(Response::ok(device.at, &show(id, &device)))
}

async fn delete(app: &App, id: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let key = Key::from(id.as_str());
    let deleted = match request.if_match()? {
        IfMatch::Tag(at) => app.devices.delete_at_version(&key, at, call).await,
        IfMatch::Any => app.devices.delete(&key, call).await,
        IfMatch::None => {
            let detail = "send If-Match with the ETag of the device that you mean, or *";
            return Err(Problem::condition_required(detail));
        }
    };
    match deleted {
        Ok(tombstone) => Ok(Response::deleted(tombstone)),
        Err(DeleteError::NotFound) => Err(not_found()),
        Err(DeleteError::Conflict(current)) => Err(Problem::version_conflict(current.at)),
        Err(DeleteError::Failed(failure)) => Err(failure.into()),
    }
}

/// Changes a device as `decide` says: at the version that the client names, where a conflict is its
/// answer, or else at whatever version is there, where a conflict is decided again.
async fn change(
    app: &App,
    id: &Id,
    request: &Request,
    call: &Call,
    decide: impl Fn(&Device) -> Decision<Device, Refusal>,
) -> Result<Response, Problem> {
    let key = Key::from(id.as_str());
    let device = match request.if_match()? {
        IfMatch::Tag(at) => app.devices.update_at_version(&key, at, call, decide).await.map_err(versioned_problem)?,
        IfMatch::Any | IfMatch::None => app.devices.update_with_retry(&key, call, decide).await.map_err(problem)?,
    };
    Ok(Response::ok(device.at, &show(id, &device)))
}

/// What a request with an idempotency key is remembered by.
struct Keyed<'a> {
    route: &'static str,
    key: &'a str,
    payload: Value,
}

/// As [`change`], and once however often it is asked for: then what was answered first is answered again, before
/// `If-Match` is even looked at.
async fn change_once(
    app: &App,
    id: &Id,
    request: &Request,
    call: &Call,
    once: Keyed<'_>,
    decide: impl Fn(&Device) -> Decision<Device, Refusal>,
) -> Result<Response, Problem> {
    let if_match = request.if_match()?;
    keyed(app, id, request, call, once, |current| {
        let Some(current) = current else { return Decision::Refuse(not_found()) };
        // Also after a lost race: at another version than the client's it is never decided again.
        if let Err(stale) = if_match.check(current.at) {
            return Decision::Refuse(stale);
        }
        match decide(&current.value) {
            Decision::Put(next) => Decision::Put(next),
            Decision::Keep => Decision::Keep,
            Decision::Refuse(refusal) => Decision::Refuse(refusal.into()),
        }
    })
    .await
}

/// Creates or changes a device as `decide` says, together with the record of the answer.
async fn keyed(
    app: &App,
    id: &Id,
    request: &Request,
    call: &Call,
    Keyed { route, key, payload }: Keyed<'_>,
    decide: impl Fn(Option<&Versioned<Device>>) -> Decision<Device, Problem>,
) -> Result<Response, Problem> {
    let mut reads = Reads::new();
    let device = reads.item("device", &app.devices, &Key::from(id.as_str()));
    app.once
        .change(request, route, key, &payload, reads, call, |attempt| {
            let current = attempt.get(device)?;
            Ok(match (decide(current.as_ref()), current) {
                (Decision::Put(value), None) => {
                    let at = attempt.put_if_absent(device, &value)?;
                    Plan::Commit(show_created(id, &Versioned { value, at }))
                }
                (Decision::Put(value), Some(_)) => {
                    let at = attempt.update_at(device, &value)?;
                    Plan::Commit(Response::ok(at, &show(id, &Versioned { value, at })))
                }
                (Decision::Keep, Some(current)) => Plan::Keep(Response::ok(current.at, &show(id, &current))),
                (Decision::Keep, None) => Plan::Refuse(not_found()),
                (Decision::Refuse(problem), _) => Plan::Refuse(problem),
            })
        })
        .await
}

fn problem(error: UpdateError<Refusal>) -> Problem {
    match error {
        UpdateError::NotFound => not_found(),
        UpdateError::Refused(refusal) => refusal.into(),
        UpdateError::Failed(failure) => failure.into(),
    }
}

fn versioned_problem(error: VersionedUpdateError<Device, Refusal>) -> Problem {
    match error {
        VersionedUpdateError::NotFound => not_found(),
        VersionedUpdateError::Conflict(current) => Problem::version_conflict(current.at),
        VersionedUpdateError::Refused(refusal) => refusal.into(),
        VersionedUpdateError::Failed(failure) => failure.into(),
    }
}

fn not_found() -> Problem {
    Problem::not_found("device_not_found", "there is no device with this id")
}
