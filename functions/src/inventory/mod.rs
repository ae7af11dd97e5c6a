//! The function `inventory`: creates, reads and adjusts the stock of products exactly once.
//!
//! Reading order: [`ROUTES`], [`handle`], then the decision in [`adjustment`].

pub mod adjustment;
pub mod requests;

use crate::product::Product;
use adjustment::decide_adjust;
use fencepost::http::{AddPlan, Items, Problem, Request, Response, Routes};
use fencepost::lambda::env;
use fencepost::timestamp::Timestamp;
use fencepost::{Call, Idempotency, Source, Store, Table};
use requests::{parse_adjustment, parse_product};
use serde_json::json;

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    products: Items<Product>,
}

impl App {
    /// Creates the function on these tables.
    #[must_use]
    pub fn new(products: Table<Product>, records: Idempotency<Response>) -> Self {
        App { products: Items::with_idempotency(products.remembering_items(), records) }
    }

    /// Creates the function from the environment: `PRODUCTS_TABLE` and `IDEMPOTENCY_RECORDS_TABLE`.
    ///
    /// # Errors
    /// A sentence that names the missing variable.
    pub fn from_env(store: &Store) -> Result<Self, Source> {
        Ok(App::new(
            store.table(env::required("PRODUCTS_TABLE")?),
            store.idempotency(env::required("IDEMPOTENCY_RECORDS_TABLE")?),
        ))
    }

    fn now(&self) -> Timestamp {
        self.products.now()
    }
}

/// The operations of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Create a product.
    Create,
    /// Show a product.
    Get,
    /// Add to the stock of a product, or take from it.
    Adjust,
}

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> = &[
    ("PUT /products/{productId}", Route::Create),
    ("GET /products/{productId}", Route::Get),
    ("POST /products/{productId}/adjustments", Route::Adjust),
];

/// Answers one request.
///
/// # Errors
/// Returns a [`Problem`] for every response that is not a success.
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, matched) = request.route(ROUTES)?;
    let id = matched.id("productId")?;
    match route {
        Route::Create => {
            // A second creation gets a 409, so a key would add nothing. `device-state` honours one.
            let create = request.unkeyed_create_request()?;
            let product = parse_product(request, app.now())?;
            app.products.create(&id, &product, &create, call).await
        }
        Route::Get => app.products.get(&id, &request.read_preconditions()?, call).await,
        Route::Adjust => {
            let by = parse_adjustment(request)?;
            let change = request.change_request(&matched, &json!({ "by": by }))?;
            let decide =
                |product: &Product| decide_adjust(product, by, app.now()).map_refusal(|refusal| refusal.problem(&id));
            let add = |product: &Product| product.add(by, app.now());
            let plan = if by == 0 { AddPlan::Decide } else { AddPlan::FromItem(&add) };
            app.products.add_or_change(&id, &change, call, plan, decide).await
        }
    }
}
