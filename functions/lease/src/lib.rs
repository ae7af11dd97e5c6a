//! The function `lease`: leases with fencing tokens, for programs in any language.
//!
//! It holds nothing itself: a holder keeps its token, renews before its time is over and releases in the end. Whatever a
//! lease is to protect must look at the token; `ensure-child` does.

pub mod requests;

use aws_sdk_dynamodb::Client;
use fencepost::http::{IfMatch, Problem, Response};
use fencepost::idempotency::Claim;
use fencepost::lease::{AcquireError, Acquired, LeaseError, LeaseVersion};
use fencepost::request::{Id, Request, Routes};
use fencepost::timestamp::Timestamp;
use fencepost::{Call, Lease, Leases, Source};
use requests::{Wanted, parse_acquire, parse_release, parse_renewal};
use serde_json::{Value, json};
use std::time::Duration;

/// What the function keeps between requests.
#[derive(Debug)]
pub struct App {
    leases: Leases,
}

impl App {
    /// A function on this table, whose clock is the table's.
    #[must_use]
    pub fn new(leases: Leases) -> Self {
        App { leases }
    }

    /// As the environment says: `LEASES_TABLE` and `LEASE_CLOCK_SKEW_SECONDS` (default 1).
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let table = std::env::var("LEASES_TABLE").map_err(|_| "LEASES_TABLE must name the table of leases")?;
        let leases = Leases::new(client, table);
        let Ok(seconds) = std::env::var("LEASE_CLOCK_SKEW_SECONDS") else { return Ok(App::new(leases)) };
        let seconds = seconds.parse().map_err(|_| "LEASE_CLOCK_SKEW_SECONDS must be a whole number of seconds")?;
        Ok(App::new(leases.with_clock_skew(Duration::from_secs(seconds))))
    }
}

/// What the function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Acquire a lease that is free.
    Acquire,
    /// Show who holds it.
    Get,
    /// Hold it longer.
    Renew,
    /// Give it back.
    Release,
}

const ACQUIRE: &str = "PUT /leases/{leaseKey}";

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> = &[
    (ACQUIRE, Route::Acquire),
    ("GET /leases/{leaseKey}", Route::Get),
    ("PATCH /leases/{leaseKey}", Route::Renew),
    ("DELETE /leases/{leaseKey}", Route::Release),
];

/// Answers one request.
///
/// # Errors
/// Every answer that is not the one hoped for is a [`Problem`].
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, parameters) = request.route(ROUTES)?;
    let key = parameters.id("leaseKey")?;
    match route {
        Route::Acquire => acquire(app, &key, request, call).await,
        Route::Get => get(app, &key, request, call).await,
        Route::Renew => renew(app, &key, request, call).await,
        Route::Release => release(app, &key, request, call).await,
    }
}

async fn acquire(app: &App, key: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    request.refuse_conditions("a lease is acquired where it is free")?;
    let idempotency_key = request.idempotency_key()?;
    let Wanted { holder, ttl_seconds, terms } = parse_acquire(request)?;
    let acquired = match idempotency_key {
        None => app.leases.acquire(key.as_str(), holder.as_str(), terms, call).await.map(Acquired::Now),
        Some(idempotency_key) => {
            let payload = json!({ "holder": holder.as_str(), "ttlSeconds": ttl_seconds }).to_string();
            let claim = Claim::new(&[&request.caller, ACQUIRE, idempotency_key], &[ACQUIRE, &request.path, &payload]);
            app.leases.acquire_once(key.as_str(), holder.as_str(), terms, &claim, call).await
        }
    };
    let shown = |lease: &Lease| Response::created(format!("/leases/{key}"), lease.at(), &show(key, lease));
    match acquired {
        Ok(Acquired::Now(lease)) => Ok(shown(&lease)),
        Ok(Acquired::Before(lease)) => Ok(shown(&lease).replayed()),
        Err(AcquireError::Held { holder, until }) => {
            Err(Problem::refused("lease_held", "somebody holds this lease; it may be free when its time is over")
                .with("holder", holder)
                .with("until", until.to_string())
                .retry_after(app.leases.free_in(until)))
        }
        Err(AcquireError::KeyReused) => Err(Problem::key_reused()),
        Err(AcquireError::Failed(failure)) if idempotency_key.is_some() => Err(Problem::of_keyed(failure)),
        Err(AcquireError::Failed(failure)) => Err(failure.into()),
    }
}

async fn get(app: &App, key: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (if_match, if_none_match) = request.read_conditions()?;
    let lease = app.leases.get(key.as_str(), call).await?.ok_or_else(not_found)?;
    if_match.check(lease.at())?;
    if if_none_match.matches(lease.at()) {
        return Ok(Response::not_modified(lease.at()));
    }
    let expires_at = Timestamp::from_epoch_millis(lease.expires_at);
    let holder = lease.holder.as_deref().unwrap_or_default();
    let remaining = app.leases.remaining(&lease);
    Ok(Response::ok(lease.at(), &body(key, holder, lease.at(), expires_at, remaining)))
}

async fn renew(app: &App, key: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    request.refuse_idempotency_key()?;
    let if_match = request.if_match()?;
    let (token, terms) = parse_renewal(request)?;
    let at = renewals(app, key, if_match, token, call).await?;
    let token = app.leases.token(key.as_str(), token);
    let lease = app.leases.renew_at(&token, at, terms, call).await.map_err(problem)?;
    Ok(Response::ok(lease.at(), &show(key, &lease)))
}

async fn release(app: &App, key: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    request.refuse_idempotency_key()?;
    let if_match = request.if_match()?;
    let token = parse_release(request)?;
    let at = renewals(app, key, if_match, token, call).await?;
    app.leases.release_at(&app.leases.token(key.as_str(), token), at, call).await.map_err(problem)?;
    Ok(Response::no_content("released"))
}

/// How often the lease must have been renewed. A tag names a token too: one of another acquire than the request's matches
/// nothing that the request could change, and the lease is only read to say what is there.
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
            let stored = app.leases.stored(key.as_str(), call).await?.ok_or_else(not_found)?;
            Err(problem(if stored.token == token { LeaseError::Conflict(stored) } else { LeaseError::Fenced }))
        }
    }
}

fn show(key: &Id, lease: &Lease) -> Value {
    body(key, lease.holder(), lease.at(), Some(lease.expires_at()), lease.remaining())
}

fn body(key: &Id, holder: &str, at: LeaseVersion, expires_at: Option<Timestamp>, remaining: Duration) -> Value {
    json!({
        "leaseKey": key.as_str(),
        "holder": holder,
        "token": at.token,
        "renewals": at.renewals,
        "expiresAt": expires_at,
        "remainingMs": u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
    })
}

fn problem(error: LeaseError) -> Problem {
    match error {
        LeaseError::NotFound => not_found(),
        LeaseError::Fenced => {
            Problem::refused("fenced", "the lease is not held under this token; acquire it anew before anything else")
        }
        LeaseError::Conflict(stored) => Problem::version_conflict(stored.at()),
        LeaseError::Failed(failure) => failure.into(),
    }
}

fn not_found() -> Problem {
    Problem::not_found("lease_not_found", "nobody holds this lease")
}
