//! The function `ensure-child`: exactly one child for each parent, however many leaders ask for it.
//!
//! The child's key is derived from the parent's name and uid, so a second create meets the first, whoever sends it. With
//! a lease given, the create is fenced as well: a leader that was replaced creates nothing. A child that is there answers
//! before the fence does.

pub mod child;
pub mod requests;

use aws_sdk_dynamodb::Client;
use child::{Child, child_id, same_spec, show};
use fencepost::error::TransactError;
use fencepost::http::{Problem, Response};
use fencepost::request::{Id, Request, Routes};
use fencepost::timestamp::Timestamp;
use fencepost::{
    Call, CreateError, Failure, FencingToken, Key, Leases, Plan, Reads, Source, Table, Transactions, Versioned,
};
use requests::{Wanted, parse_uid, parse_wanted};

/// What the function keeps between requests.
#[derive(Debug)]
pub struct App {
    children: Table<Child>,
    leases: Leases,
    transactions: Transactions,
}

impl App {
    /// A function on these tables, whose clock is that of the children's.
    #[must_use]
    pub fn new(children: Table<Child>, leases: Leases, transactions: Transactions) -> Self {
        App { children, leases, transactions }
    }

    /// As the environment says: `CHILDREN_TABLE` and `LEASES_TABLE`.
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let children = std::env::var("CHILDREN_TABLE").map_err(|_| "CHILDREN_TABLE must name the table of children")?;
        let leases = std::env::var("LEASES_TABLE").map_err(|_| "LEASES_TABLE must name the table of leases")?;
        Ok(App::new(Table::new(client, children), Leases::new(client, leases), Transactions::new(client)))
    }
}

/// What the function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Create the child, or find it.
    Ensure,
    /// Show it.
    Get,
}

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> =
    &[("PUT /parents/{parentId}/child", Route::Ensure), ("GET /parents/{parentId}/child", Route::Get)];

/// Answers one request.
///
/// # Errors
/// Every answer that is not the one hoped for is a [`Problem`].
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, parameters) = request.route(ROUTES)?;
    let parent = parameters.id("parentId")?;
    match route {
        Route::Ensure => ensure(app, &parent, request, call).await,
        Route::Get => get(app, &parent, request, call).await,
    }
}

/// A child, and whether it was there before.
enum Ensured {
    Created(Versioned<Child>),
    Found(Versioned<Child>),
}

async fn ensure(app: &App, parent: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    request.refuse_idempotency_key()?;
    let if_absent = request.if_absent()?;
    let Wanted { parent_uid, spec, lease } = parse_wanted(request)?;
    let id = child_id(parent, &parent_uid);
    let child = Child {
        parent_id: parent.to_string(),
        parent_uid: parent_uid.to_string(),
        spec,
        created_at: Timestamp::from(app.children.ambient().now()),
    };
    let ensured = match lease {
        None => create(app, &id, &child, call).await?,
        Some(lease) => {
            let token = app.leases.token(lease.key.as_str(), lease.token);
            create_under(app, &token, &id, &child, call).await?
        }
    };
    match ensured {
        Ensured::Created(Versioned { at, .. }) => {
            let location = format!("/parents/{parent}/child?parentUid={parent_uid}");
            Ok(Response::created(location, at, &show(&id, &child)))
        }
        Ensured::Found(there) if if_absent => Err(Problem::version_conflict(there.at)),
        Ensured::Found(there) => {
            let Versioned { value, at } = same_spec(&id, there, &child.spec)?;
            Ok(Response::ok(at, &show(&id, &value)))
        }
    }
}

/// Creates the child where none is: one write.
async fn create(app: &App, id: &str, child: &Child, call: &Call) -> Result<Ensured, Failure> {
    match app.children.create(&Key::from(id), child, call).await {
        Ok(created) => Ok(Ensured::Created(created)),
        Err(CreateError::Exists(there)) => Ok(Ensured::Found(*there)),
        Err(CreateError::Failed(failure)) => Err(failure),
    }
}

/// Creates the child where none is and the lease is held under this token: one read, and one transaction where none is.
/// A refusal reads once more.
async fn create_under(
    app: &App,
    token: &FencingToken,
    id: &str,
    child: &Child,
    call: &Call,
) -> Result<Ensured, Failure> {
    let mut reads = Reads::new();
    let item = reads.item("child", &app.children, &Key::from(id));
    let lease = reads.lease("lease", token);
    let ensured = app.transactions.transact_with_retry(reads, call, |attempt| {
        if let Some(there) = attempt.get(item)? {
            return Ok(Plan::<_, Failure>::Keep(Ensured::Found(there)));
        }
        attempt.require(lease)?;
        let at = attempt.put_if_absent(item, child)?;
        Ok(Plan::Commit(Ensured::Created(Versioned { value: child.clone(), at })))
    });
    match ensured.await {
        Ok(ensured) => Ok(ensured),
        // The child is not read in the moment in which the lease is looked at: it answers before the fence does.
        Err(TransactError::Failed(Failure::Fenced)) => {
            let there = app.children.get(&Key::from(id), call).await?;
            there.map(Ensured::Found).ok_or(Failure::Fenced)
        }
        Err(TransactError::Refused(failure) | TransactError::Failed(failure)) => Err(failure),
    }
}

async fn get(app: &App, parent: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (if_match, if_none_match) = request.read_conditions()?;
    let id = child_id(parent, &parse_uid(request)?);
    let child = app
        .children
        .get(&Key::from(id.as_str()), call)
        .await?
        .ok_or_else(|| Problem::not_found("child_not_found", "there is no child of this parent"))?;
    if_match.check(child.at)?;
    if if_none_match.matches(child.at) {
        return Ok(Response::not_modified(child.at));
    }
    Ok(Response::ok(child.at, &show(&id, &child.value)))
}
