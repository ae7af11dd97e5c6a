//! The function `host-mapping`: maps an internal IP address to the instance behind it.
//!
//! Addresses are reused within minutes. Messages about them arrive late, twice and in any order. The newest instance
//! wins: a late register never replaces a newer instance and never revives a deleted one. A late delete never removes
//! the new owner. The function `delete-mapping` handles delayed deletes from a queue.

pub mod requests;
pub mod shown;

use crate::function::{Environment, Event, Function, Route, handled, listed, routed};
use crate::mapping::{MAPPINGS_TABLE, Mapping};
use crate::operation::{ID, Operation, TIMESTAMP};
use axum::Router;
use fencepost::http::{Ip, Problem, Request, Response};
use fencepost::lww::{LwwTable, Registration};
use fencepost::{Call, Key, Source, Store, Timestamp};
use requests::{DELETION, IP, NEW_MAPPING, parse_deletion, parse_mapping};
use shown::{MAPPING, order_key_to_json, to_json};

/// The function.
pub const FUNCTION: Function = Function {
    name: "host-mapping",
    event: Event::Http {
        tag: ("mappings", "The instance behind an address; the newest one wins."),
        routes: || listed(ROUTES),
        start: App::router,
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

    /// The router of the function, which reads this environment.
    pub fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
        Ok(routed(App::new(store.lww_table(MAPPINGS_TABLE.required(environment)?)), ROUTES))
    }

    fn now(&self) -> Timestamp {
        self.mappings.store().now()
    }
}

const ROUTES: &[Route<App>] = &[
    handled!(
        register_mapping,
        Operation::changes(
            "PUT /mappings/{hostIp}",
            "Registers the instance that has an address. It can be repeated."
        )
        .parameters(&[("hostIp", IP)])
        .takes(NEW_MAPPING)
        .shows(MAPPING)
        .creates(MAPPING)
        .refuses(
            &["superseded", "mapping_differs"],
            "a newer instance has the address, or this one was deleted (`superseded`), or this instance is registered \
             with another cell (`mapping_differs`)",
            &[("creationTimestamp?", TIMESTAMP), ("instanceId?", ID), ("cellId?", ID)]
        )
    ),
    handled!(
        get_mapping,
        Operation::reads("GET /mappings/{hostIp}", "Shows the instance that has an address.")
            .parameters(&[("hostIp", IP)])
            .shows(MAPPING)
            .missing(NOT_FOUND)
    ),
    handled!(
        delete_mapping,
        Operation::changes("DELETE /mappings/{hostIp}", "Deletes an instance, never a newer one. It can be repeated.")
            .parameters(DELETION)
            .ends(&["deleted", "already_gone", "superseded"])
    ),
];

const NOT_FOUND: (&str, &str) = ("mapping_not_found", "no instance is registered with this address");

/// Registers the instance behind an address.
pub async fn register_mapping(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let ip = request.ip("hostIp")?;
    refuse_headers(request)?;
    let mapping = &parse_mapping(request, app.now())?;
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

/// Shows the instance behind an address.
pub async fn get_mapping(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (ip, preconditions) = (request.ip("hostIp")?, request.read_preconditions()?);
    let mapping = app.mappings.in_call(call).get(&key(ip)).await?;
    let mapping = mapping.ok_or_else(|| Problem::not_found(NOT_FOUND.0, NOT_FOUND.1))?;
    preconditions.respond(mapping.tag(), || to_json(ip, &mapping))
}

/// Deletes an instance that no longer exists.
pub async fn delete_mapping(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let ip = request.ip("hostIp")?;
    refuse_headers(request)?;
    let instance = parse_deletion(request, app.now())?;
    let deletion = app.mappings.in_call(call).delete(&key(ip), &instance).await.map_err(Problem::from_repeatable)?;
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
