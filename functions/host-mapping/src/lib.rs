//! The function `host-mapping`: which instance is behind an internal IP address.
//!
//! Addresses are reused within minutes, and what is said about them arrives late, twice and in any order. The newest
//! instance wins: a late register never replaces a newer one or revives a deleted one, and a late delete never removes
//! the new owner. Delayed deletes that come through a queue are the function `delete-mapping`.

pub mod mapping;
pub mod requests;

use aws_sdk_dynamodb::Client;
use fencepost::http::{Problem, Response};
use fencepost::newest::{Newest, Registration};
use fencepost::request::{Ip, Request, Routes};
use fencepost::timestamp::Timestamp;
use fencepost::{Call, Key, Source};
use mapping::{Mapping, show, show_fence};
use requests::{parse_deletion, parse_mapping};

/// What the function keeps between requests.
#[derive(Debug)]
pub struct App {
    mappings: Newest<Mapping>,
}

impl App {
    /// A function on this table, whose clock is the table's.
    #[must_use]
    pub fn new(mappings: Newest<Mapping>) -> Self {
        App { mappings }
    }

    /// As the environment says: `MAPPINGS_TABLE`.
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let table = std::env::var("MAPPINGS_TABLE").map_err(|_| "MAPPINGS_TABLE must name the table of mappings")?;
        Ok(App::new(Newest::new(client, table)))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.mappings.ambient().now())
    }
}

/// What the function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Say which instance is behind an address.
    Register,
    /// Show which one is.
    Get,
    /// Say that an instance is no more.
    Delete,
}

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> = &[
    ("PUT /mappings/{hostIp}", Route::Register),
    ("GET /mappings/{hostIp}", Route::Get),
    ("DELETE /mappings/{hostIp}", Route::Delete),
];

/// Answers one request.
///
/// # Errors
/// Every answer that is not the one hoped for is a [`Problem`].
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, parameters) = request.route(ROUTES)?;
    let ip = parameters.ip("hostIp")?;
    match route {
        Route::Register => register(app, ip, request, call).await,
        Route::Get => get(app, ip, request, call).await,
        Route::Delete => delete(app, ip, request, call).await,
    }
}

async fn register(app: &App, ip: Ip, request: &Request, call: &Call) -> Result<Response, Problem> {
    refuse_headers(request)?;
    let mapping = parse_mapping(request, app.now())?;
    match app.mappings.register(&key(ip), &mapping, call).await.map_err(Problem::of_repeatable)? {
        Registration::New => Ok(Response::created(format!("/mappings/{ip}"), mapping.at(), &show(ip, &mapping))),
        Registration::Same => Ok(Response::ok(mapping.at(), &show(ip, &mapping))),
        Registration::Differs(current) => {
            Err(Problem::refused("mapping_differs", "this instance is registered with another cell")
                .with("cellId", current.cell_id))
        }
        Registration::Superseded { by } => {
            let detail = "a newer instance has this address, or had it until it was deleted, or this one was deleted";
            let newer = show_fence(&by).into_iter().filter(|(_, value)| !value.is_null());
            Err(newer.fold(Problem::refused("superseded", detail), |problem, (name, value)| problem.with(name, value)))
        }
    }
}

async fn get(app: &App, ip: Ip, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (if_match, if_none_match) = request.read_conditions()?;
    let mapping = app
        .mappings
        .get(&key(ip), call)
        .await?
        .ok_or_else(|| Problem::not_found("mapping_not_found", "no instance is registered with this address"))?;
    if_match.check(mapping.at())?;
    if if_none_match.matches(mapping.at()) {
        return Ok(Response::not_modified(mapping.at()));
    }
    Ok(Response::ok(mapping.at(), &show(ip, &mapping)))
}

async fn delete(app: &App, ip: Ip, request: &Request, call: &Call) -> Result<Response, Problem> {
    refuse_headers(request)?;
    let fence = parse_deletion(request, app.now())?;
    let deletion = app.mappings.delete(&key(ip), &fence, call).await.map_err(Problem::of_repeatable)?;
    Ok(Response::no_content(deletion.word()))
}

/// Refuses the headers of other promises: registers and deletes can be repeated at any time without them.
fn refuse_headers(request: &Request) -> Result<(), Problem> {
    request.refuse_idempotency_key()?;
    request.refuse_conditions("creationTimestamp is its condition")
}

fn key(ip: Ip) -> Key {
    Key::from(ip.to_string().as_str())
}
