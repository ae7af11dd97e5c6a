//! The function `ensure-child`: exactly one child for each parent, with any number of leaders.
//!
//! The key of the child is derived from the name and the uid of the parent. So a second create meets the first, from
//! any caller. If the request names a lease, the create also demands this lease. So a replaced leader creates nothing.
//! An existing child answers before the fence does.

pub mod child;
pub mod requests;

use crate::function::{Environment, Event, Function, LEASES_TABLE, Route, Variable, handled, listed, routed};
use crate::operation::{Conditions, ID, Operation};
use axum::Router;
use child::{CHILD, Child, child_id, same_spec};
use fencepost::http::{Items, Problem, Request, Resource, Response};
use fencepost::lease::Leases;
use fencepost::{Call, Error, Exists, Failure, FailureKind, FencingToken, Reads, Source, Store, Table, Versioned};
use requests::{Held, WANTED, parse_uid, parse_wanted};

/// The function.
pub const FUNCTION: Function = Function {
    name: "ensure-child",
    event: Event::Http {
        tag: ("children", "One child for each parent."),
        routes: || listed(ROUTES),
        start: App::router,
    },
    variables: &[CHILDREN_TABLE, LEASES_TABLE],
};

/// The table of children.
const CHILDREN_TABLE: Variable = Variable::table("CHILDREN_TABLE", "the table of children");

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    children: Items<Child>,
    leases: Leases,
}

impl App {
    /// Creates the function on these tables, which must belong to one store.
    #[must_use]
    pub fn new(children: Table<Child>, leases: Leases) -> Self {
        App { children: Items::new(children), leases }
    }

    /// The router of the function, which reads this environment.
    pub fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
        Ok(routed(
            App::new(
                store.table(CHILDREN_TABLE.required(environment)?),
                store.leases(LEASES_TABLE.required(environment)?),
            ),
            ROUTES,
        ))
    }
}

const ROUTES: &[Route<App>] = &[
    handled!(
        ensure_child,
        Operation::changes(
            "PUT /parents/{parentId}/child",
            "Makes the one child of a parent, or shows it. It can be repeated."
        )
        .described("With a lease, the child is made only if the token is current. A child that is there answers first.")
        .conditions(Conditions::Create)
        .takes(WANTED)
        .shows(CHILD)
        .creates(CHILD)
        .refuses(
            &["spec_differs", "fenced"],
            "the child that is there has another spec (`child`), or there is none and the token is not current",
            &[("child?", CHILD)]
        )
    ),
    handled!(
        get_child,
        Operation::reads("GET /parents/{parentId}/child", "Shows the child of a parent.")
            .parameters(&[("parentUid", ID)])
            .shows(CHILD)
            .missing(Child::NOT_FOUND)
    ),
];

/// Creates the child, or shows the existing one. A second request gets the existing child.
pub async fn ensure_child(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let parent = request.id("parentId")?;
    request.refuse_idempotency_key()?;
    let if_absent = request.if_absent()?;
    let wanted = parse_wanted(request)?;
    ensure(app, wanted.into_child(&parent, app.children.table().store().now()), if_absent, call).await
}

/// Shows the child.
pub async fn get_child(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let parent = request.id("parentId")?;
    let preconditions = request.read_preconditions()?;
    let id = child_id(parent.as_str(), parse_uid(request)?.as_str());
    app.children.in_call(call).get(&id, &preconditions).await
}

/// A child, created now or already there.
enum Ensured {
    Created(Versioned<Child>),
    Existing(Versioned<Child>),
}

/// Creates the child if its parent has none. Otherwise answers with the existing child.
async fn ensure(
    app: &App,
    (child, lease): (Child, Option<Held>),
    if_absent: bool,
    call: &Call,
) -> Result<Response, Problem> {
    let id = child_id(&child.parent_id, &child.parent_uid);
    let ensured = match lease {
        None => create(app, &id, &child, call).await?,
        Some(lease) => {
            let token = app.leases.token(lease.key.as_str(), lease.token).map_err(Failure::from)?;
            create_under(app, &token, &id, &child, call).await?
        }
    };
    match ensured {
        Ensured::Created(created) => Ok(Items::created(&id, &created)),
        Ensured::Existing(there) if if_absent => Err(Problem::version_conflict(there.at)),
        Ensured::Existing(there) => Ok(Items::ok(&id, &same_spec(&id, there, &child.spec)?)),
    }
}

/// Creates the child if the key is free. Sends one write.
async fn create(app: &App, id: &str, child: &Child, call: &Call) -> Result<Ensured, Failure> {
    match app.children.table().in_call(call).create(id, child).await {
        Ok(created) => Ok(Ensured::Created(created)),
        Err(Error::Refused(Exists(there))) => Ok(Ensured::Existing(*there)),
        Err(Error::Failed(failure)) => Err(failure),
    }
}

/// Creates the child if the key is free and the lease is held under this token. Sends one read. If there is no child,
/// also sends one transaction. A refusal by the fence costs one more read.
async fn create_under(
    app: &App,
    token: &FencingToken,
    id: &str,
    child: &Child,
    call: &Call,
) -> Result<Ensured, Failure> {
    let mut reads = Reads::new();
    let item = reads.item("child", app.children.table(), id);
    let lease = reads.lease("lease", token);
    let store = app.children.table().store().in_call(call);
    let ensured = store.transact_with_retry(reads, |attempt| {
        if let Some(there) = attempt.get(item)? {
            return Ok(Ensured::Existing(there));
        }
        attempt.require(lease)?;
        let at = attempt.put_if_absent(item, child)?;
        Ok(Ensured::Created(Versioned { value: child.clone(), at }))
    });
    match ensured.await.map_err(Failure::from) {
        // The child and the lease are not looked at in one moment. The child may exist by now. It then answers before
        // the fence does.
        Err(Failure { kind: FailureKind::Fenced, .. }) => {
            let there = app.children.table().in_call(call).get(id).await?;
            there.map(Ensured::Existing).ok_or(Failure::of(FailureKind::Fenced))
        }
        ensured => ensured,
    }
}
