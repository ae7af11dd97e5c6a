//! The function `inventory`: creates, reads and adjusts the stock of products exactly once.
//!
//! Reading order: [`FUNCTION`], its routes and their handlers, then the decision in [`adjustment`].

pub mod adjustment;
pub mod requests;

use crate::function::{Environment, Event, Function, IDEMPOTENCY_RECORDS_TABLE, Route, handled, listed, routed};
use crate::operation::{Conditions, Operation, RETRY_AFTER};
use crate::order::ORDERS_TABLE;
use crate::product::{HELD, PRODUCTS_TABLE, Product, SHORT_LINES, STOCK, naming_held_stock, products_in};
use adjustment::{HELD_PRODUCT, HeldProduct, PRODUCT, decide_adjust};
use axum::Router;
use fencepost::http::{Items, Problem, Request, Resource, Response};
use fencepost::{Call, Idempotency, Source, Store, Table, Timestamp};
use requests::{ADJUSTMENT, NEW_PRODUCT, parse_adjustment, parse_product};
use serde_json::json;

/// The function.
pub const FUNCTION: Function = Function {
    name: "inventory",
    event: Event::Http { tag: ("products", "Stock."), routes: || listed(ROUTES), start: App::router },
    variables: &[PRODUCTS_TABLE, ORDERS_TABLE, IDEMPOTENCY_RECORDS_TABLE],
};

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    products: Items<Product>,
}

impl App {
    /// Creates the function on these tables. If the products are not [held for](Table::held_for) their orders, stock that
    /// orders hold is never given back here.
    #[must_use]
    pub fn new(products: Table<Product>, records: Idempotency<Response>) -> Self {
        App { products: Items::with_idempotency(products.remembering_items(), records) }
    }

    /// The router of the function, which reads this environment.
    pub fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
        let records = store.idempotency(IDEMPOTENCY_RECORDS_TABLE.required(environment)?);
        Ok(routed(App::new(products_in(store, environment)?, records), ROUTES))
    }

    fn now(&self) -> Timestamp {
        self.products.now()
    }
}

const ROUTES: &[Route<App>] = &[
    handled!(
        create_product,
        Operation::changes("PUT /products/{productId}", "Creates a product with its stock.")
            .conditions(Conditions::Create)
            .takes(NEW_PRODUCT)
            .creates(PRODUCT)
            .refuses(&[Product::EXISTS.0], Product::EXISTS.1, &[])
    ),
    handled!(
        get_product,
        Operation::reads("GET /products/{productId}", "Shows a product, with what is held of it.")
            .shows(HELD_PRODUCT)
            .missing(Product::NOT_FOUND)
    ),
    handled!(
        adjust_stock,
        Operation::changes_once("POST /products/{productId}/adjustments", "Adds to the stock, or takes from it.")
            .conditions(Conditions::Change)
            .takes(ADJUSTMENT)
            .shows(PRODUCT)
            .missing(Product::NOT_FOUND)
            .refuses(
                &["insufficient_stock", "stock_limit_reached", HELD.0],
                "the stock is too small (`lines` says what is available), would pass 10^15 (`current`), or is held for \
                 orders that are not decided yet",
                &[("lines?", SHORT_LINES), ("current?", STOCK), RETRY_AFTER]
            )
    ),
];

/// Creates a product. A second creation gets a 409. So a key would add nothing. `device-state` honours one.
pub async fn create_product(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("productId")?;
    let create = request.unkeyed_create_request()?;
    let product = parse_product(request, app.now())?;
    app.products.in_call(call).create(&id, &product, &create).await
}

/// Shows a product, with what is held of it.
pub async fn get_product(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (id, preconditions) = (request.id("productId")?, request.read_preconditions()?);
    let products = app.products.table().in_call(call);
    let (product, held) = products.get_with_held(id.as_str()).await?.ok_or_else(Product::not_found)?;
    preconditions.respond(product.at, || HeldProduct { product: product.value.to_json(id.as_str(), product.at), held })
}

/// Adds to the stock of a product, or takes from it.
pub async fn adjust_stock(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("productId")?;
    let by = parse_adjustment(request)?;
    let change = request.change_request(&json!({ "by": by }))?;
    let decide = |product: &Product| decide_adjust(product, by, app.now()).map_err(|refusal| refusal.problem(&id));
    let edit = |product: &Product| product.edit(by, app.now());
    let products = app.products.in_call(call);
    let adjusted = products.edit_from_item_or_change(&id, &change, (by != 0).then_some(edit), decide).await;
    adjusted.map_err(naming_held_stock)
}
