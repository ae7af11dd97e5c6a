//! The function `lease`: leases with fencing tokens, for programs in any language.
//!
//! The function itself holds no lease. A holder keeps its token, renews before its time is over, and releases at the
//! end. A resource is protected only if its writer checks the token, as `ensure-child` does.

pub mod requests;

use crate::function::{Environment, Event, Function, LEASES_TABLE, Route, Variable, handled, listed, routed};
use crate::operation::{COUNT, Conditions, ID, Operation, RETRY_AFTER, Schema, TIMESTAMP, TOKEN};
use axum::Router;
use fencepost::http::{Id, IfMatch, Problem, Request, Response};
use fencepost::lease::{Acquired, Lease, LeaseHeld, LeaseLost, LeaseVersion, Leases, NotHeldAt};
use fencepost::{Call, Error, Failure, IdempotencyError, Source, Store, Timestamp};
use requests::{ACQUISITION, RENEWAL, parse_acquire, parse_release, parse_renewal};
use serde_json::{Value, json};
use std::time::Duration;

/// The function.
pub const FUNCTION: Function = Function {
    name: "lease",
    event: Event::Http {
        tag: ("leases", "Timed claims with fencing tokens."),
        routes: || listed(ROUTES),
        start: App::router,
    },
    variables: &[LEASES_TABLE, LEASE_CLOCK_SKEW_SECONDS],
};

/// The time by which the clocks of functions may differ.
const LEASE_CLOCK_SKEW_SECONDS: Variable = Variable::seconds(
    "LEASE_CLOCK_SKEW_SECONDS",
    Leases::CLOCK_SKEW.as_secs(),
    "seconds by which the clocks of functions may differ",
);

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    leases: Leases,
}

impl App {
    /// Creates the function on this table.
    #[must_use]
    pub fn new(leases: Leases) -> Self {
        App { leases }
    }

    /// The router of the function, which reads this environment.
    pub fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
        let clock_skew = LEASE_CLOCK_SKEW_SECONDS.read_seconds(environment)?;
        Ok(routed(App::new(store.leases(LEASES_TABLE.required(environment)?).with_clock_skew(clock_skew)), ROUTES))
    }
}

const ROUTES: &[Route<App>] = &[
    handled!(
        acquire_lease,
        Operation::changes_once("PUT /leases/{leaseKey}", "Acquires a lease that is free or has expired.")
            .described(
                "The token is higher than every one before it. An `Idempotency-Key` counts while the lease is held."
            )
            .takes(ACQUISITION)
            .creates(LEASE)
            .refuses(
                &["lease_held"],
                "another holder has the lease, or the same holder by another request",
                &[("holder", ID), ("until", TIMESTAMP), RETRY_AFTER]
            )
    ),
    handled!(
        get_lease,
        Operation::reads("GET /leases/{leaseKey}", "Shows who holds a lease.").shows(LEASE).missing(NOT_FOUND)
    ),
    handled!(
        renew_lease,
        Operation::changes("PATCH /leases/{leaseKey}", "Renews a lease.")
            .conditions(Conditions::Change)
            .takes(RENEWAL)
            .shows(LEASE)
            .missing(NOT_FOUND)
            .refuses(FENCED, "the token is not current", &[])
    ),
    handled!(
        release_lease,
        Operation::changes("DELETE /leases/{leaseKey}", "Releases the lease that has this token. It can be repeated.")
            .conditions(Conditions::Change)
            .parameters(&[("token", TOKEN)])
            .ends(&["released"])
            .missing(NOT_FOUND)
            .refuses(FENCED, "the token is not current", &[])
    ),
];

const FENCED: &[&str] = &["fenced"];
const NOT_FOUND: (&str, &str) = ("lease_not_found", "nobody holds this lease");

/// The schema of a lease.
const LEASE: Schema = Schema::Named(
    "Lease",
    &Schema::Object(&[
        ("leaseKey", ID),
        ("holder", ID),
        ("token", TOKEN),
        ("renewals", COUNT),
        ("expiresAt", TIMESTAMP),
        ("remainingMs", COUNT),
    ]),
);

/// Acquires a lease that is free.
pub async fn acquire_lease(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let key = &request.id("leaseKey")?;
    request.refuse_preconditions("a lease is acquired if it is free")?;
    let wanted = parse_acquire(request)?;
    let claim =
        request.idempotency_claim(&json!({ "holder": wanted.holder.as_str(), "ttlSeconds": wanted.ttl_seconds }))?;
    let (leases, holder) = (app.leases.in_call(call), wanted.holder.as_str());
    let held = |LeaseHeld { holder, until }| {
        Problem::refused("lease_held", "another holder has this lease; it may be free when its time is over")
            .with("holder", holder)
            .with("until", until.to_string())
            .retry_after(leases.free_in(until))
    };
    let acquired = match claim {
        None => {
            leases.acquire(key.as_str(), holder, wanted.terms).await.map(Acquired::New).map_err(|error| match error {
                Error::Refused(reason) => held(reason),
                Error::Failed(failure) => failure.into(),
            })
        }
        Some(claim) => {
            leases.acquire_once(key.as_str(), holder, wanted.terms, &claim).await.map_err(|error| match error {
                IdempotencyError::KeyReused => Problem::key_reused(),
                IdempotencyError::Refused(reason) => held(reason),
                IdempotencyError::Failed(failure) => Problem::from_keyed(failure),
            })
        }
    };
    let shown = |lease: &Lease| Response::created(format!("/leases/{key}"), lease.at(), &lease_to_json(key, lease));
    match acquired? {
        Acquired::New(lease) => Ok(shown(&lease)),
        Acquired::Replayed(lease) => Ok(shown(&lease).replayed()),
    }
}

/// Shows a lease and its holder.
pub async fn get_lease(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (key, preconditions) = (&request.id("leaseKey")?, request.read_preconditions()?);
    let lease = app.leases.in_call(call).get(key.as_str()).await?.ok_or_else(not_found)?;
    preconditions.respond(lease.at(), || {
        let holder = lease.holder.as_deref().unwrap_or_default();
        let expires_at = Timestamp::from_epoch_millis(lease.expires_at);
        to_json(key, holder, lease.at(), expires_at, app.leases.remaining(&lease))
    })
}

/// Renews a lease.
pub async fn renew_lease(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let key = &request.id("leaseKey")?;
    request.refuse_idempotency_key()?;
    let if_match = request.if_match()?;
    let (token, terms) = parse_renewal(request)?;
    let at = renewals(app, key, if_match, token, call).await?;
    let token = app.leases.token(key.as_str(), token).map_err(Failure::from)?;
    let lease = app.leases.in_call(call).renew_at(&token, at, terms).await.map_err(problem)?;
    Ok(Response::ok(lease.at(), &lease_to_json(key, &lease)))
}

/// Releases a lease.
pub async fn release_lease(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let key = &request.id("leaseKey")?;
    request.refuse_idempotency_key()?;
    let if_match = request.if_match()?;
    let token = parse_release(request)?;
    let at = renewals(app, key, if_match, token, call).await?;
    let token = app.leases.token(key.as_str(), token).map_err(Failure::from)?;
    app.leases.in_call(call).release_at(&token, at).await.map_err(problem)?;
    Ok(Response::no_content("released"))
}

/// The number of renewals that the lease must have. A tag also names a token. If it is not the token of the request,
/// the request cannot change anything. The lease is then read only to report its state.
async fn renewals(
    app: &App,
    key: &Id,
    if_match: IfMatch<LeaseVersion>,
    token: u64,
    call: &Call,
) -> Result<Option<u64>, Problem> {
    match if_match {
        IfMatch::None | IfMatch::Any => Ok(None),
        IfMatch::Tag(at) if at.token == token => Ok(Some(at.renewals)),
        IfMatch::Tag(_) => {
            let stored = app.leases.in_call(call).stored(key.as_str()).await?.ok_or_else(not_found)?;
            Err(refused(if stored.token == token {
                NotHeldAt::Conflict(stored)
            } else {
                NotHeldAt::Lost(LeaseLost::Fenced)
            }))
        }
    }
}

fn lease_to_json(key: &Id, lease: &Lease) -> Value {
    to_json(key, lease.holder(), lease.at(), Some(lease.expires_at()), lease.remaining())
}

fn to_json(key: &Id, holder: &str, at: LeaseVersion, expires_at: Option<Timestamp>, remaining: Duration) -> Value {
    json!({
        "leaseKey": key.as_str(),
        "holder": holder,
        "token": at.token,
        "renewals": at.renewals,
        "expiresAt": expires_at,
        "remainingMs": u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
    })
}

fn problem(error: Error<NotHeldAt>) -> Problem {
    match error {
        Error::Refused(reason) => refused(reason),
        Error::Failed(failure) => failure.into(),
    }
}

fn refused(reason: NotHeldAt) -> Problem {
    match reason {
        NotHeldAt::Lost(LeaseLost::NotFound) => not_found(),
        NotHeldAt::Lost(LeaseLost::Fenced) => {
            Problem::refused("fenced", "the lease is not held under this token; acquire it anew before anything else")
        }
        NotHeldAt::Conflict(stored) => Problem::version_conflict(stored.at()),
    }
}

fn not_found() -> Problem {
    Problem::not_found(NOT_FOUND.0, NOT_FOUND.1)
}
