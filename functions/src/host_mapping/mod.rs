//! The function `host-mapping`: maps an internal IP address to the instance behind it.
//!
//! Addresses are reused within minutes. Messages about them arrive late, twice and in any order. The newest instance
//! wins: a late register never replaces a newer instance and never revives a deleted one. A late delete never removes
//! the new owner. The function `delete-mapping` handles delayed deletes from a queue.

pub mod requests;
pub mod shown;

use crate::function::{Environment, Event, Function, Routes, listed, reads, refuses_key, routed};
use crate::mapping::{MAPPINGS_TABLE, Mapping};
use axum::Router;
use fencepost::http::{Ip, Preconditions, Problem, Request, Response};
use fencepost::lww::{LwwTable, OrderKey, Registration};
use fencepost::{Call, Key, Source, Store, Timestamp};
use requests::{parse_deletion, parse_mapping};
use shown::{MappingTag, order_key_to_json, to_json};

/// The function.
pub const FUNCTION: Function = Function {
    name: "host-mapping",
    event: Event::Http {
        routes: || listed(ROUTES),
        start: |store, environment| Ok(App::from_env(store, environment)?.into_router()),
    },
    variables: &[MAPPINGS_TABLE],
};

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    mappings: LwwTable<Mapping>,
}

impl App {
    /// Creates the function on this table.
    #[must_use]
    pub fn new(mappings: LwwTable<Mapping>) -> Self {
        App { mappings }
    }

    /// Creates the function from its environment.
    ///
    /// # Errors
    /// A sentence that names the missing variable.
    pub fn from_env(store: &Store, environment: &Environment) -> Result<Self, Source> {
        Ok(App::new(store.lww_table(MAPPINGS_TABLE.required(environment)?)))
    }

    /// The router of the function.
    pub fn into_router(self) -> Router {
        routed(self, ROUTES, |app, route, request, call| Box::pin(handle(app, route, request, call)))
    }

    fn now(&self) -> Timestamp {
        self.mappings.store().now()
    }
}

/// The operations of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Register the instance behind an address.
    Register,
    /// Show the instance behind an address.
    Get,
    /// Delete an instance that no longer exists.
    Delete,
}

const ROUTES: &Routes<Route> = &[
    ("PUT /mappings/{hostIp}", refuses_key(Route::Register)),
    ("GET /mappings/{hostIp}", reads(Route::Get)),
    ("DELETE /mappings/{hostIp}", refuses_key(Route::Delete)),
];

/// Answers a request for this operation.
///
/// # Errors
/// Returns a [`Problem`] for every response that is not a success.
pub async fn handle(app: &App, operation: Route, request: &Request, call: &Call) -> Result<Response, Problem> {
    let ip = request.ip("hostIp")?;
    match operation {
        Route::Register => {
            refuse_headers(request)?;
            register(app, ip, &parse_mapping(request, app.now())?, call).await
        }
        Route::Get => get(app, ip, &request.read_preconditions()?, call).await,
        Route::Delete => {
            refuse_headers(request)?;
            delete(app, ip, &parse_deletion(request, app.now())?, call).await
        }
    }
}

async fn register(app: &App, ip: Ip, mapping: &Mapping, call: &Call) -> Result<Response, Problem> {
    match app.mappings.in_call(call).register(&key(ip), mapping).await.map_err(Problem::from_repeatable)? {
        Registration::New => Ok(Response::created(format!("/mappings/{ip}"), mapping.tag(), &to_json(ip, mapping))),
        Registration::Same => Ok(Response::ok(mapping.tag(), &to_json(ip, mapping))),
        Registration::Differs(current) => {
            Err(Problem::refused("mapping_differs", "this instance is registered with another cell")
                .with("cellId", current.cell_id))
        }
        Registration::Superseded { by } => {
            let detail = "a newer instance has this address, or had it until it was deleted, or this one was deleted";
            let newer = order_key_to_json(&by).into_iter().filter(|(_, value)| !value.is_null());
            Err(newer.fold(Problem::refused("superseded", detail), |problem, (name, value)| problem.with(name, value)))
        }
    }
}

async fn get(app: &App, ip: Ip, preconditions: &Preconditions<MappingTag>, call: &Call) -> Result<Response, Problem> {
    let mapping = app.mappings.in_call(call).get(&key(ip)).await?;
    let mapping = mapping
        .ok_or_else(|| Problem::not_found("mapping_not_found", "no instance is registered with this address"))?;
    preconditions.respond(mapping.tag(), || to_json(ip, &mapping))
}

async fn delete(app: &App, ip: Ip, instance: &OrderKey, call: &Call) -> Result<Response, Problem> {
    let deletion = app.mappings.in_call(call).delete(&key(ip), instance).await.map_err(Problem::from_repeatable)?;
    Ok(Response::no_content(deletion.word()))
}

/// Refuses idempotency keys and preconditions. Registers and deletes need neither, because they can be repeated at any
/// time.
fn refuse_headers(request: &Request) -> Result<(), Problem> {
    request.refuse_idempotency_key()?;
    request.refuse_preconditions("creationTimestamp is its condition")
}

fn key(ip: Ip) -> Key {
    Key::from(ip.to_string())
}
