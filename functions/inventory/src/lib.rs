//! The stock of products: created, read and adjusted, exactly once.
//!
//! Reading order: [`ROUTES`], [`handle`], one route's function, then its decision in [`product`].

pub mod product;
pub mod requests;

use aws_sdk_dynamodb::Client;
use fencepost::http::{IfMatch, Problem, Response};
use fencepost::once::Once;
use fencepost::request::{Id, Request, Routes};
use fencepost::timestamp::Timestamp;
use fencepost::transact::{Plan, Reads, Transactions};
use fencepost::{Call, CreateError, Decision, Key, Source, Table, UpdateError, Versioned, VersionedUpdateError};
use product::{Product, Refusal, decide_adjust, show};
use requests::{parse_adjustment, parse_product};
use serde_json::json;

/// What the function keeps between requests.
#[derive(Debug)]
pub struct App {
    products: Table<Product>,
    once: Once,
}

impl App {
    /// A function on this table, whose clock is the table's; adjustments with a key go through `once`.
    #[must_use]
    pub fn new(products: Table<Product>, once: Once) -> Self {
        App { products, once }
    }

    /// As the environment says: `PRODUCTS_TABLE` and `IDEMPOTENCY_RECORDS_TABLE`.
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let products = std::env::var("PRODUCTS_TABLE").map_err(|_| "PRODUCTS_TABLE must name the table of products")?;
        let records = std::env::var("IDEMPOTENCY_RECORDS_TABLE")
            .map_err(|_| "IDEMPOTENCY_RECORDS_TABLE must name the table of idempotency records")?;
        let once = Once::new(Transactions::new(client), Table::new(client, records));
        Ok(App::new(Table::new(client, products), once))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.products.ambient().now())
    }
}

/// What the function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Create a product.
    Create,
    /// Show a product.
    Get,
    /// Add to its stock, or take from it.
    Adjust,
}

const ADJUST: &str = "POST /products/{productId}/adjustments";

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> =
    &[("PUT /products/{productId}", Route::Create), ("GET /products/{productId}", Route::Get), (ADJUST, Route::Adjust)];

/// Answers one request.
///
/// # Errors
/// Every answer that is not the one hoped for is a [`Problem`].
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, parameters) = request.route(ROUTES)?;
    let id = parameters.id("productId")?;
    match route {
        Route::Create => create(app, &id, request, call).await,
        Route::Get => get(app, &id, request, call).await,
        Route::Adjust => match request.idempotency_key()? {
            Some(key) => adjust_once(app, &id, key, request, call).await,
            None => adjust(app, &id, request, call).await,
        },
    }
}

async fn create(app: &App, id: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    request.refuse_idempotency_key()?;
    let if_absent = request.if_absent()?;
    let product = parse_product(request, app.now())?;
    match app.products.create(&Key::from(id.as_str()), &product, call).await {
        Ok(created) => Ok(Response::created(format!("/products/{id}"), created.at, &show(id, &created))),
        Err(CreateError::Exists(current)) if if_absent => Err(Problem::version_conflict(current.at)),
        Err(CreateError::Exists(_)) => Err(Problem::refused("product_exists", "there is a product with this id")),
        Err(CreateError::Failed(failure)) => Err(failure.into()),
    }
}

async fn get(app: &App, id: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (if_match, if_none_match) = request.read_conditions()?;
    let product = app.products.get(&Key::from(id.as_str()), call).await?.ok_or_else(not_found)?;
    if_match.check(product.at)?;
    if if_none_match.matches(product.at) {
        return Ok(Response::not_modified(product.at));
    }
    Ok(Response::ok(product.at, &show(id, &product)))
}

/// Adjusts the stock as often as it is asked to: one item, one read and one write.
async fn adjust(app: &App, id: &Id, request: &Request, call: &Call) -> Result<Response, Problem> {
    let if_match = request.if_match()?;
    let by = parse_adjustment(request)?;
    let key = Key::from(id.as_str());
    let decide = |product: &Product| decide_adjust(product, by, app.now());
    let product = match if_match {
        IfMatch::Tag(at) => {
            let adjusted = app.products.update_at_version(&key, at, call, decide).await;
            adjusted.map_err(|error| versioned_problem(error, id))?
        }
        IfMatch::Any | IfMatch::None => {
            app.products.update_with_retry(&key, call, decide).await.map_err(|error| problem(error, id))?
        }
    };
    Ok(Response::ok(product.at, &show(id, &product)))
}

/// Adjusts the stock once for this key, however often it is asked to: the record of it commits with the change.
async fn adjust_once(app: &App, id: &Id, key: &str, request: &Request, call: &Call) -> Result<Response, Problem> {
    let if_match = request.if_match()?;
    let by = parse_adjustment(request)?;
    let mut reads = Reads::new();
    let item = reads.item("product", &app.products, &Key::from(id.as_str()));
    let shown = |product: &Versioned<Product>| Response::ok(product.at, &show(id, product));
    app.once
        .change(request, ADJUST, key, &json!({ "by": by }), reads, call, |attempt| {
            let Some(product) = attempt.get(item)? else { return Ok(Plan::Refuse(not_found())) };
            if let Err(conflict) = if_match.check(product.at) {
                return Ok(Plan::Refuse(conflict));
            }
            Ok(match decide_adjust(&product.value, by, app.now()) {
                Decision::Put(next) => {
                    let at = attempt.update_at(item, &next)?;
                    Plan::Commit(shown(&Versioned { value: next, at }))
                }
                Decision::Keep => Plan::Keep(shown(&product)),
                Decision::Refuse(refusal) => Plan::Refuse(refusal.problem(id)),
            })
        })
        .await
}

fn problem(error: UpdateError<Refusal>, id: &Id) -> Problem {
    match error {
        UpdateError::NotFound => not_found(),
        UpdateError::Refused(refusal) => refusal.problem(id),
        UpdateError::Failed(failure) => failure.into(),
    }
}

fn versioned_problem(error: VersionedUpdateError<Product, Refusal>, id: &Id) -> Problem {
    match error {
        VersionedUpdateError::NotFound => not_found(),
        VersionedUpdateError::Conflict(current) => Problem::version_conflict(current.at),
        VersionedUpdateError::Refused(refusal) => refusal.problem(id),
        VersionedUpdateError::Failed(failure) => failure.into(),
    }
}

fn not_found() -> Problem {
    Problem::not_found("product_not_found", "there is no product with this id")
}
