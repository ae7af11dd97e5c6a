//! The function `inventory`: creates, reads and adjusts the stock of products exactly once.
//!
//! Reading order: [`FUNCTION`], [`handle`], then the decision in [`adjustment`].

pub mod adjustment;
pub mod requests;

use crate::function::{
    Environment, Event, Function, IDEMPOTENCY_RECORDS_TABLE, Routes, honours_key, listed, reads, refuses_key, routed,
};
use crate::product::{PRODUCTS_TABLE, Product};
use adjustment::decide_adjust;
use axum::Router;
use fencepost::http::{Items, Problem, Request, Response};
use fencepost::{Call, Idempotency, Source, Store, Table, Timestamp};
use requests::{parse_adjustment, parse_product};
use serde_json::json;

/// The function.
pub const FUNCTION: Function = Function {
    name: "inventory",
    event: Event::Http {
        routes: || listed(ROUTES),
        start: |store, environment| Ok(App::from_env(store, environment)?.into_router()),
    },
    variables: &[PRODUCTS_TABLE, IDEMPOTENCY_RECORDS_TABLE],
};

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

    /// Creates the function from its environment.
    ///
    /// # Errors
    /// A sentence that names the missing variable.
    pub fn from_env(store: &Store, environment: &Environment) -> Result<Self, Source> {
        Ok(App::new(
            store.table(PRODUCTS_TABLE.required(environment)?),
            store.idempotency(IDEMPOTENCY_RECORDS_TABLE.required(environment)?),
        ))
    }

    /// The router of the function.
    pub fn into_router(self) -> Router {
        routed(self, ROUTES, |app, route, request, call| Box::pin(handle(app, route, request, call)))
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

const ROUTES: &Routes<Route> = &[
    ("PUT /products/{productId}", refuses_key(Route::Create)),
    ("GET /products/{productId}", reads(Route::Get)),
    ("POST /products/{productId}/adjustments", honours_key(Route::Adjust)),
];

/// Answers a request for this operation.
///
/// # Errors
/// Returns a [`Problem`] for every response that is not a success.
pub async fn handle(app: &App, operation: Route, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("productId")?;
    let products = app.products.in_call(call);
    match operation {
        Route::Create => {
            // A second creation gets a 409, so a key would add nothing. `device-state` honours one.
            let create = request.unkeyed_create_request()?;
            let product = parse_product(request, app.now())?;
            products.create(&id, &product, &create).await
        }
        Route::Get => products.get(&id, &request.read_preconditions()?).await,
        Route::Adjust => {
            let by = parse_adjustment(request)?;
            let change = request.change_request(&json!({ "by": by }))?;
            let decide =
                |product: &Product| decide_adjust(product, by, app.now()).map_err(|refusal| refusal.problem(&id));
            let add = |product: &Product| product.add(by, app.now());
            products.add_from_item_or_change(&id, &change, (by != 0).then_some(add), decide).await
        }
    }
}
