//! The function `lease`: leases with fencing tokens, for programs in any language.
//!
//! The function itself holds no lease. A holder keeps its token, renews before its time is over, and releases at the
//! end. A resource is protected only if its writer checks the token, as `ensure-child` does.

pub mod requests;

use crate::function::{
    Environment, Event, Function, LEASES_TABLE, Routes, Variable, honours_key, listed, reads, refuses_key, routed,
};
use axum::Router;
use fencepost::http::{Id, IfMatch, Preconditions, Problem, Request, Response};
use fencepost::lease::{Acquired, Lease, LeaseHeld, LeaseLost, LeaseTerms, LeaseVersion, Leases, NotHeldAt};
use fencepost::{Call, Error, IdempotencyClaim, IdempotencyError, Source, Store, Timestamp};
use requests::{Wanted, parse_acquire, parse_release, parse_renewal};
use serde_json::{Value, json};
use std::time::Duration;

/// The function.
pub const FUNCTION: Function = Function {
    name: "lease",
    event: Event::Http {
        routes: || listed(ROUTES),
        start: |store, environment| Ok(App::from_env(store, environment)?.into_router()),
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

    /// Creates the function from its environment.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing or wrong.
    pub fn from_env(store: &Store, environment: &Environment) -> Result<Self, Source> {
        let clock_skew = LEASE_CLOCK_SKEW_SECONDS.read_seconds(environment)?;
        Ok(App::new(store.leases(LEASES_TABLE.required(environment)?).with_clock_skew(clock_skew)))
    }

    /// The router of the function.
    pub fn into_router(self) -> Router {
        routed(self, ROUTES, |app, route, request, call| Box::pin(handle(app, route, request, call)))
    }
}

/// The operations of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Acquire a lease that is free.
    Acquire,
    /// Show a lease and its holder.
    Get,
    /// Renew a lease.
    Renew,
    /// Release a lease.
    Release,
}

const ROUTES: &Routes<Route> = &[
    ("PUT /leases/{leaseKey}", honours_key(Route::Acquire)),
    ("GET /leases/{leaseKey}", reads(Route::Get)),
    ("PATCH /leases/{leaseKey}", refuses_key(Route::Renew)),
    ("DELETE /leases/{leaseKey}", refuses_key(Route::Release)),
];

/// Answers a request for this operation.
///
/// # Errors
/// Returns a [`Problem`] for every response that is not a success.
pub async fn handle(app: &App, operation: Route, request: &Request, call: &Call) -> Result<Response, Problem> {
    let key = request.id("leaseKey")?;
    match operation {
        Route::Acquire => {
            request.refuse_preconditions("a lease is acquired if it is free")?;
            let wanted = parse_acquire(request)?;
            let payload = json!({ "holder": wanted.holder.as_str(), "ttlSeconds": wanted.ttl_seconds });
            let claim = request.idempotency_claim(&payload)?;
            acquire(app, &key, &wanted, claim.as_ref(), call).await
        }
        Route::Get => get(app, &key, &request.read_preconditions()?, call).await,
        Route::Renew => {
            request.refuse_idempotency_key()?;
            let if_match = request.if_match()?;
            let (token, terms) = parse_renewal(request)?;
            renew(app, &key, if_match, token, terms, call).await
        }
        Route::Release => {
            request.refuse_idempotency_key()?;
            let if_match = request.if_match()?;
            release(app, &key, if_match, parse_release(request)?, call).await
        }
    }
}

async fn acquire(
    app: &App,
    key: &Id,
    wanted: &Wanted,
    claim: Option<&IdempotencyClaim>,
    call: &Call,
) -> Result<Response, Problem> {
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
            leases.acquire_once(key.as_str(), holder, wanted.terms, claim).await.map_err(|error| match error {
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

async fn get(
    app: &App,
    key: &Id,
    preconditions: &Preconditions<LeaseVersion>,
    call: &Call,
) -> Result<Response, Problem> {
    let lease = app.leases.in_call(call).get(key.as_str()).await?.ok_or_else(not_found)?;
    preconditions.respond(lease.at(), || {
        let holder = lease.holder.as_deref().unwrap_or_default();
        let expires_at = Timestamp::from_epoch_millis(lease.expires_at);
        to_json(key, holder, lease.at(), expires_at, app.leases.remaining(&lease))
    })
}

async fn renew(
    app: &App,
    key: &Id,
    if_match: IfMatch<LeaseVersion>,
    token: u64,
    terms: LeaseTerms,
    call: &Call,
) -> Result<Response, Problem> {
    let at = renewals(app, key, if_match, token, call).await?;
    let token = app.leases.token(key.as_str(), token);
    let lease = app.leases.in_call(call).renew_at(&token, at, terms).await.map_err(problem)?;
    Ok(Response::ok(lease.at(), &lease_to_json(key, &lease)))
}

async fn release(
    app: &App,
    key: &Id,
    if_match: IfMatch<LeaseVersion>,
    token: u64,
    call: &Call,
) -> Result<Response, Problem> {
    let at = renewals(app, key, if_match, token, call).await?;
    app.leases.in_call(call).release_at(&app.leases.token(key.as_str(), token), at).await.map_err(problem)?;
    Ok(Response::no_content("released"))
}

/// The number of renewals that the lease must have. A tag also names a token. If that is not the token of the request,
/// the request cannot change anything, and the lease is read only to say what its state is.
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
    Problem::not_found("lease_not_found", "nobody holds this lease")
}
