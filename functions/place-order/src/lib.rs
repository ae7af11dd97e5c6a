//! Orders: placed and cancelled with their stock, exactly once, and read.
//!
//! Reading order: [`ROUTES`], [`handle`], one route's function, then its decision in [`order`].

pub mod order;
pub mod requests;
pub mod stock;

use aws_sdk_dynamodb::Client;
use fencepost::error::TransactError;
use fencepost::http::{IfMatch, Problem, Response};
use fencepost::idempotency::derived_id;
use fencepost::request::{Request, Routes};
use fencepost::timestamp::Timestamp;
use fencepost::transact::{Attempt, Item, Plan, Reads, Transactions};
use fencepost::{Call, Decision, Failure, ItemVersion, Key, Source, Table, Version, Versioned};
use order::{Effect, Line, Order, Placement, decide_cancel, decide_place, show};
use requests::{parse_cancellation, parse_placement};
use stock::Product;

/// What the function keeps between requests.
#[derive(Debug)]
pub struct App {
    orders: Table<Order>,
    products: Table<Product>,
    transactions: Transactions,
}

impl App {
    /// A function on these tables, whose clock is that of the orders.
    #[must_use]
    pub fn new(orders: Table<Order>, products: Table<Product>, transactions: Transactions) -> Self {
        App { orders, products, transactions }
    }

    /// As the environment says: `ORDERS_TABLE` and `PRODUCTS_TABLE`.
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let orders = std::env::var("ORDERS_TABLE").map_err(|_| "ORDERS_TABLE must name the table of orders")?;
        let products = std::env::var("PRODUCTS_TABLE").map_err(|_| "PRODUCTS_TABLE must name the table of products")?;
        Ok(App::new(Table::new(client, orders), Table::new(client, products), Transactions::new(client)))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.orders.ambient().now())
    }

    /// The products of these lines, in their order.
    fn products_of(&self, lines: &[Line], reads: &mut Reads) -> Vec<Item<Product>> {
        let product = |(index, line): (usize, &Line)| {
            reads.item(format!("product {index}"), &self.products, &Key::from(line.product_id.as_str()))
        };
        lines.iter().enumerate().map(product).collect()
    }
}

/// What the function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Place an order.
    Place,
    /// Show an order.
    Get,
    /// Cancel an order.
    Cancel,
}

/// The function's routes, as in `template.yaml`.
pub const ROUTES: &Routes<Route> = &[
    ("POST /orders", Route::Place),
    ("GET /orders/{orderId}", Route::Get),
    ("POST /orders/{orderId}/cancellation", Route::Cancel),
];

/// Answers one request.
///
/// # Errors
/// Every answer that is not the one hoped for is a [`Problem`].
pub async fn handle(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (route, parameters) = request.route(ROUTES)?;
    match route {
        Route::Place => place(app, request, call).await,
        Route::Get => get(app, parameters.id("orderId")?.as_str(), request, call).await,
        Route::Cancel => cancel(app, parameters.id("orderId")?.as_str(), request, call).await,
    }
}

/// Places the order of this caller, user and key: its id follows from the three, so it is placed once however often it
/// is asked for, and each time answered as it was placed.
async fn place(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let idempotency_key = request.required_idempotency_key()?;
    request.if_absent()?; // `*` asks for no more than the key gives
    let placement = parse_placement(request)?;
    let id = derived_id(&["order", &request.caller, &placement.user_id, idempotency_key]);
    let key = Key::from(id.as_str());
    let mut reads = Reads::new();
    let order = reads.item("order", &app.orders, &key);
    let products = app.products_of(&placement.lines, &mut reads);
    let placed = app.transactions.transact_with_retry(reads, call, |attempt| {
        if let Some(stored) = attempt.get(order)? {
            return Ok(answer_again(&id, &stored, &placement).map_or_else(Plan::Refuse, Plan::Keep));
        }
        Ok(match decide_place(&placement, &values(attempt, &products)?, app.now()) {
            Ok(effect) => {
                update_all(attempt, &products, &effect.products)?;
                let at = attempt.put_if_absent(order, &effect.order)?;
                Plan::Commit(answer(&id, &Versioned { value: effect.order, at }))
            }
            Err(refusal) => Plan::Refuse(refusal.into()),
        })
    });
    match placed.await {
        Ok(response) => Ok(response),
        // The reads were each consistent, but not of one moment: the same request, sent twice, may have placed the
        // order after it was looked for, and taken the stock before that was. No order now, none then.
        Err(TransactError::Refused(problem)) => match app.orders.get(&key, call).await? {
            Some(stored) => answer_again(&id, &stored, &placement),
            None => Err(problem),
        },
        Err(TransactError::Failed(failure)) => Err(Problem::of_keyed(failure)),
    }
}

fn answer(id: &str, order: &Versioned<Order>) -> Response {
    Response::created(format!("/orders/{id}"), order.at, &show(id, &order.value))
}

/// The first answer again, whatever became of the order since.
fn answer_again(id: &str, stored: &Versioned<Order>, placement: &Placement) -> Result<Response, Problem> {
    if !stored.value.is_of(placement) {
        return Err(Problem::key_reused());
    }
    let at = ItemVersion { version: Version::ABSENT.next(), incarnation: stored.at.incarnation };
    Ok(answer(id, &Versioned { value: stored.value.as_placed(), at }).replayed())
}

async fn get(app: &App, id: &str, request: &Request, call: &Call) -> Result<Response, Problem> {
    let (if_match, if_none_match) = request.read_conditions()?;
    let order = app.orders.get(&Key::from(id), call).await?.ok_or_else(not_found)?;
    if_match.check(order.at)?;
    if if_none_match.matches(order.at) {
        return Ok(Response::not_modified(order.at));
    }
    Ok(shown(id, &order))
}

/// Cancels the order, unless it is cancelled already: a key would promise nothing more.
async fn cancel(app: &App, id: &str, request: &Request, call: &Call) -> Result<Response, Problem> {
    request.idempotency_key()?;
    let if_match = request.if_match()?;
    parse_cancellation(request)?;
    let key = Key::from(id);
    let seen = app.orders.get(&key, call).await?.ok_or_else(not_found)?;
    if let Some(response) = cancelled_already(id, &seen, if_match)? {
        return Ok(response);
    }
    let mut reads = Reads::new();
    let order = reads.item("order", &app.orders, &key);
    let products = app.products_of(&seen.value.lines, &mut reads);
    let cancelled = app.transactions.transact_with_retry(reads, call, |attempt| {
        let Some(current) = attempt.get(order)? else { return Ok(Plan::Refuse(not_found())) };
        if let Err(conflict) = if_match.check(current.at) {
            return Ok(Plan::Refuse(conflict));
        }
        Ok(match decide_cancel(&current.value, &values(attempt, &products)?, app.now()) {
            Decision::Put(Effect { order: next, products: changed }) => {
                update_all(attempt, &products, &changed)?;
                let at = attempt.update_at(order, &next)?;
                Plan::Commit(shown(id, &Versioned { value: next, at }))
            }
            Decision::Keep => Plan::Keep(shown(id, &current)),
            Decision::Refuse(refusal) => Plan::Refuse(refusal.into()),
        })
    });
    match cancelled.await {
        Ok(response) => Ok(response),
        // As in `place`: another cancellation may have come between the reads.
        Err(TransactError::Refused(problem)) => {
            let now = app.orders.get(&key, call).await?.ok_or_else(not_found)?;
            cancelled_already(id, &now, if_match)?.ok_or(problem)
        }
        Err(TransactError::Failed(failure)) => Err(failure.into()),
    }
}

/// The answer where the order is cancelled: that is final.
fn cancelled_already(id: &str, order: &Versioned<Order>, if_match: IfMatch) -> Result<Option<Response>, Problem> {
    if_match.check(order.at)?;
    Ok((order.value.status == order::Status::Cancelled).then(|| shown(id, order)))
}

fn shown(id: &str, order: &Versioned<Order>) -> Response {
    Response::ok(order.at, &show(id, &order.value))
}

/// What is known of these products.
fn values(attempt: &Attempt, products: &[Item<Product>]) -> Result<Vec<Option<Product>>, Failure> {
    products.iter().map(|item| Ok(attempt.get(*item)?.map(|product| product.value))).collect()
}

/// Adds a step for each product: from the version that was seen to its new value.
fn update_all(attempt: &mut Attempt, items: &[Item<Product>], products: &[Product]) -> Result<(), Failure> {
    for (item, product) in items.iter().zip(products) {
        attempt.update_at(*item, product)?;
    }
    Ok(())
}

fn not_found() -> Problem {
    Problem::not_found("order_not_found", "there is no order with this id")
}
